import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PING_WARNINGS, parsePingMetadata, parsePingPath } from '../../../src/http/ping/request.ts'

const ID = '0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f'

describe('the path of a ping', () => {
  it.each([
    ['', 'success', 0],
    ['/', 'success', 0],
    ['/start', 'start', null],
    ['/start/', 'start', null],
    ['/fail', 'fail', null],
    ['/log', 'log', null],
    ['/0', 'success', 0],
    ['/00', 'success', 0],
    ['/0001', 'fail', 1],
    ['/1', 'fail', 1],
    ['/255', 'fail', 255],
    ['/255/', 'fail', 255],
  ])('%s is a %s ping with exit code %s', (rest, type, exitCode) => {
    expect(parsePingPath(`/ping/${ID}${rest}`)).toEqual({ publicId: ID, type, exitCode })
  })

  it.each(['/256', '/-1', '/+1', '/1000', '/007777', '/99999999999999999999', '/-0'])(
    '%s is an integer, but not an exit code',
    (rest) => {
      expect(parsePingPath(`/ping/${ID}${rest}`)).toBe('invalid_exit_code')
    },
  )

  it.each(['/stop', '/START', '//', '/start//', '/1.5', '/0x1', '/1e1', '/start/1', '/%73tart', '?', ' '])(
    '%s is not a ping',
    (rest) => {
      expect(parsePingPath(`/ping/${ID}${rest}`)).toBe('not_found')
    },
  )

  it.each([
    '',
    '/',
    '/ping',
    '/ping/',
    `/ping/${ID.slice(1)}`,
    `/ping/${ID.replaceAll('-', '')}`,
    `/pings/${ID}`,
    `/ping//${ID}`,
    `/ping/${ID}x`,
    `//ping/${ID}`,
    `/PING/${ID}`,
    `/ping/%7b${ID}%7d`,
    `/api/v1/ping/${ID}`,
    '*',
    '/ping/gggggggg-6f0c-4f6e-9d0e-0a4b4c3d2e1f',
  ])('%s is not a ping', (path) => {
    expect(parsePingPath(path)).toBe('not_found')
  })

  it('takes ids in either case', () => {
    expect(parsePingPath(`/ping/${ID.toUpperCase()}/start`)).toMatchObject({ publicId: ID, type: 'start' })
  })

  it('is parsed or rejected, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary-ascii' }),
          fc.string().map((rest) => `/ping/${ID}${rest}`),
        ),
        (path) => {
          const target = parsePingPath(path)
          if (typeof target === 'string') expect(['not_found', 'invalid_exit_code']).toContain(target)
          else expect(target.exitCode === null || (target.exitCode >= 0 && target.exitCode <= 255)).toBe(true)
        },
      ),
    )
  })
})

describe('the duration', () => {
  it.each(['0', '1', '604800000'])('%s is taken from the header', (given) => {
    expect(parsePingMetadata('success', given, '')).toEqual({ durationMs: Number(given), runId: null, warnings: [] })
  })

  it.each(['', '-1', '1.5', '604800001', '1e3', ' 5', '1 2', 'abc', '0x10', '１２', '9'.repeat(20), '5, 6'])(
    '%j is ignored, with a warning',
    (given) => {
      expect(parsePingMetadata('fail', given, '')).toEqual({
        durationMs: null,
        runId: null,
        warnings: ['duration_invalid'],
      })
    },
  )

  it('of the header wins, even if it is invalid', () => {
    expect(parsePingMetadata('success', '5', 'duration=nonsense').durationMs).toBe(5)
    expect(parsePingMetadata('success', 'nonsense', 'duration=5')).toMatchObject({
      durationMs: null,
      warnings: ['duration_invalid'],
    })
    expect(parsePingMetadata('success', undefined, 'duration=5').durationMs).toBe(5)
  })

  it('given twice in the query is invalid', () => {
    expect(parsePingMetadata('success', undefined, 'duration=5&duration=6')).toMatchObject({
      durationMs: null,
      warnings: ['duration_invalid'],
    })
  })

  it.each(['start', 'log'] as const)('does not belong to a %s ping', (type) => {
    expect(parsePingMetadata(type, '5', '')).toEqual({
      durationMs: null,
      runId: null,
      warnings: ['duration_unexpected'],
    })
    expect(parsePingMetadata(type, undefined, 'duration=5').warnings).toEqual(['duration_unexpected'])
  })
})

describe('the run id', () => {
  it('is a UUID in either case', () => {
    expect(parsePingMetadata('start', undefined, `rid=${ID.toUpperCase()}`)).toEqual({
      durationMs: null,
      runId: ID,
      warnings: [],
    })
  })

  it.each(['', 'x', ID.slice(1), ID.replaceAll('-', ''), ID.replace('0', 'z'), `${ID}&rid=${ID}`])(
    '%j is ignored, with a warning',
    (rid) => {
      expect(parsePingMetadata('start', undefined, `rid=${rid}`)).toEqual({
        durationMs: null,
        runId: null,
        warnings: ['run_id_invalid'],
      })
    },
  )
})

it('metadata of any shape never throws, and warns only from the closed list', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('success', 'start', 'fail', 'log'),
      fc.option(fc.string({ unit: 'binary-ascii' }), { nil: undefined }),
      fc.string({ unit: 'binary-ascii' }),
      (type, header, query) => {
        const { durationMs, warnings } = parsePingMetadata(type, header, query)
        expect(durationMs === null || Number.isSafeInteger(durationMs)).toBe(true)
        for (const warning of warnings) expect(PING_WARNINGS).toHaveProperty(warning)
      },
    ),
  )
})
