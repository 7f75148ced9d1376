import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  PING_WARNINGS,
  parsePingMetadata,
  parsePingPath,
  parsePushMetadata,
  type Signal,
} from '../../../src/http/ping/request.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

const ID = '0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f'
const KEY = 'Ab3defghijklmnopqrst90'

function signalOf(rest: string): Signal | null {
  const path = parsePingPath(`/ping/${ID}${rest}`)
  if (path?.kind !== 'ping') throw new Error(`${rest} is not a ping`)
  return path.signal
}

/** Of a completion without an exit code, unless `rest` names another signal. */
const read = (header: string | undefined, query: string, rest = '/fail') =>
  parsePingMetadata(signalOf(rest), header, query)

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
    const { signal } = parsePingMetadata(signalOf(rest), undefined, '')
    expect(signal).toEqual({ type, exitCode })
  })

  it.each(['/256', '/-1', '/+1', '/1000', '/007777', '/99999999999999999999', '/-0'])(
    '%s is an integer, but not an exit code',
    (rest) => {
      expect(parsePingPath(`/ping/${ID}${rest}`)).toEqual({
        kind: 'invalid_exit_code',
        publicId: ID,
        given: rest.slice(1),
      })
    },
  )

  it.each([
    ['/stop', 'stop'],
    ['/stop/', 'stop'],
    ['/START', 'START'],
    ['//', ''],
    ['/start//', 'start/'],
    ['/1.5', '1.5'],
    ['/0x1', '0x1'],
    ['/start/1', 'start/1'],
    ['/%73tart', '%73tart'],
  ])('%s is an unknown signal', (rest, given) => {
    expect(parsePingPath(`/ping/${ID}${rest}`)).toEqual({ kind: 'unknown_signal', publicId: ID, given })
  })

  it.each([
    '',
    '/',
    ID,
    `x${ID}`,
    `//${ID}`,
    `/${ID}x`,
    `/ping/ping/${ID}`,
    `/${KEY}`,
    `/${KEY}/`,
    `/${KEY}//`,
    `/ping/${KEY}`,
    `/ping/${KEY}/`,
    `/ping/${KEY}//job`,
    `/ping/${KEY.slice(1)}/job`,
    `/ping/${KEY}x/job`,
    `/ping/${KEY.replace('A', '-')}/job`,
    `/ping/${KEY.replace('A', 'É')}/job`,
    `x${KEY}/job`,
    `/api/push`,
    `/ping/api/push/token`,
    '/ping',
    '/ping/',
    `/ping/${ID.slice(1)}`,
    `/ping/${ID.replaceAll('-', '')}`,
    `/pings/${ID}`,
    `/ping//${ID}`,
    `/ping/${ID}x`,
    `/ping/${ID}?`,
    `/ping/${ID} `,
    `//ping/${ID}`,
    `/PING/${ID}`,
    `/ping/%7b${ID}%7d`,
    `/api/v1/ping/${ID}`,
    '*',
    '/ping/gggggggg-6f0c-4f6e-9d0e-0a4b4c3d2e1f',
  ])('%s names no check', (path) => {
    expect(parsePingPath(path)).toBeNull()
  })

  it('has its id in either case', () => {
    expect(parsePingPath(`/ping/${ID.toUpperCase()}/start`)).toMatchObject({ publicId: ID, signal: { type: 'start' } })
  })

  it.each(['', '/', '/start', '/fail/', '/log', '/0', '/255', '/256', '/-1', '/stop', '//', '/start/1'])(
    'is the same with %j behind a public id and behind a name, with and without /ping',
    (rest) => {
      const { publicId, ...parsed } = { publicId: undefined, ...parsePingPath(`/ping/${ID}${rest}`) }
      expect(publicId).toBe(ID)
      expect(parsePingPath(`/${ID}${rest}`)).toEqual({ publicId, ...parsed })
      for (const prefix of ['/ping', ''])
        for (const slug of ['job', 'a', '7', 'start', 'a_b-c', 'x'.repeat(100)])
          expect(parsePingPath(`${prefix}/${KEY}/${slug}${rest}`)).toEqual({ name: { pingKey: KEY, slug }, ...parsed })
    },
  )

  it.each(['-job', 'job_', 'Job', 'a b', 'a%20b', 'x'.repeat(101), 'é', '.', '?'])(
    'knows that %j is no slug',
    (slug) => {
      expect(parsePingPath(`/${KEY}/${slug}/start`)).toEqual({ kind: 'invalid_slug', name: { pingKey: KEY, slug } })
    },
  )

  it.each([
    ['/api/push/aB3_-', 'aB3_-'],
    ['/api/push/aB3/', 'aB3'],
    [`/api/push/${'x'.repeat(64)}`, 'x'.repeat(64)],
    [`/api/push/${'x'.repeat(65)}`, null],
    ['/api/push/', null],
    ['/api/push/a/b', null],
    ['/api/push/a//', null],
    ['/api/push/%61', null],
  ])('%s is a push with the token %j', (path, token) => {
    expect(parsePingPath(path)).toEqual({ kind: 'push', token })
  })

  it('is parsed or rejected, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary-ascii' }),
          fc.string().map((rest) => `/ping/${ID}${rest}`),
          fc.string().map((rest) => `/${ID}${rest}`),
          fc.string().map((rest) => `/ping/${KEY}/${rest}`),
          fc.string().map((rest) => `/${KEY}/job/${rest}`),
          fc.string().map((rest) => `/api/push/${rest}`),
        ),
        (path) => {
          const parsed = parsePingPath(path)
          if (parsed !== null && 'name' in parsed && parsed.name !== undefined) {
            expect(path).toContain(`${parsed.name.pingKey}/${parsed.name.slug}`)
            if (parsed.kind !== 'invalid_slug') expect(parsed.name.slug).toMatch(/^[a-z0-9][a-z0-9_-]{0,99}$/)
          }
          if (parsed?.kind === 'push' && parsed.token !== null) expect(parsed.token).toMatch(/^[\w-]{1,64}$/)
          if (parsed?.kind !== 'ping' || parsed.signal === null) return
          const { exitCode } = parsed.signal
          expect(exitCode === null || (exitCode >= 0 && exitCode <= 255)).toBe(true)
        },
      ),
    )
  })
})

describe('the duration', () => {
  it.each(['0', '1', '604800000'])('%s is taken from the header', (given) => {
    expect(read(given, '')).toMatchObject({ durationMs: Number(given), runId: null, warnings: [] })
  })

  it.each(['', '-1', '1.5', '604800001', '1e3', ' 5', '1 2', 'abc', '0x10', '１２', '9'.repeat(20), '5, 6'])(
    '%j is ignored, with a warning',
    (given) => {
      expect(read(given, '')).toMatchObject({ durationMs: null, runId: null, warnings: ['duration_invalid'] })
    },
  )

  it('of the header wins, even if it is invalid', () => {
    expect(read('5', 'duration=nonsense').durationMs).toBe(5)
    expect(read('nonsense', 'duration=5')).toMatchObject({ durationMs: null, warnings: ['duration_invalid'] })
    expect(read(undefined, 'duration=5').durationMs).toBe(5)
  })

  it('given twice in the query is invalid', () => {
    expect(read(undefined, 'duration=5&duration=6')).toMatchObject({ durationMs: null, warnings: ['duration_invalid'] })
  })

  it.each(['/start', '/log'])('does not belong to %s', (rest) => {
    expect(read('5', '', rest)).toMatchObject({ durationMs: null, warnings: ['duration_unexpected'] })
    expect(read(undefined, 'duration=5', rest).warnings).toEqual(['duration_unexpected'])
  })

  it('does not belong to a start that the query makes', () => {
    expect(read('5', 'state=run', '')).toMatchObject({ durationMs: null, warnings: ['duration_unexpected'] })
  })
})

describe('the run id', () => {
  it('is a UUID in either case', () => {
    expect(read(undefined, `rid=${ID.toUpperCase()}`)).toMatchObject({ durationMs: null, runId: ID, warnings: [] })
  })

  it.each(['', 'x', ID.slice(1), ID.replaceAll('-', ''), ID.replace('0', 'z'), `${ID}&rid=${ID}`])(
    '%j is ignored, with a warning',
    (rid) => {
      expect(read(undefined, `rid=${rid}`)).toMatchObject({
        durationMs: null,
        runId: null,
        warnings: ['run_id_invalid'],
      })
    },
  )
})

describe('clients: the signal of other services', () => {
  const SUCCESS = { type: 'success', exitCode: 0 }
  const START = { type: 'start', exitCode: null }
  const FAIL = { type: 'fail', exitCode: null }
  const WARN = { type: 'warn', exitCode: null }

  it.each([
    ['state=run', START],
    ['state=warn', WARN],
    ['state=Warning', WARN],
    ['status=warn', WARN],
    ['state=complete', SUCCESS],
    ['state=fail', FAIL],
    ['status=up', SUCCESS],
    ['status=down', FAIL],
    ['status=up&msg=OK&ping=', SUCCESS],
    ['state=fail&status=down', FAIL],
  ])('?%s on a path without one', (query, signal) => {
    expect(read(undefined, query, '')).toMatchObject({ signal, warnings: [] })
    expect(read(undefined, query, '/')).toMatchObject({ signal, warnings: [] })
  })

  it.each([
    ['/fail', 'state=complete', FAIL],
    ['/fail', 'status=up', FAIL],
    ['/warn', 'state=fail', WARN],
    ['/fail', 'state=warn', FAIL],
    ['/0', 'state=fail', SUCCESS],
    ['/log', 'status=down', { type: 'log', exitCode: null }],
    ['/7', 'state=run', { type: 'fail', exitCode: 7 }],
  ])('of the path %s takes precedence over ?%s, with a warning', (rest, query, signal) => {
    expect(read(undefined, query, rest)).toMatchObject({ signal, warnings: ['signal_overridden'] })
  })

  it('that is also the one of the path gets no warning', () => {
    expect(read(undefined, 'state=fail', '/7')).toMatchObject({ signal: { exitCode: 7 }, warnings: [] })
  })

  const PAIRS: [string, string, typeof SUCCESS | typeof FAIL, string?][] = [
    ['complete', 'up', SUCCESS],
    ['complete', 'run', SUCCESS, 'status_overridden'],
    ['complete', 'down', FAIL, 'state_overridden'],
    ['complete', '0', FAIL, 'state_overridden'],
    ['complete', 'killed', FAIL, 'word_unknown'],
    ['complete', '', SUCCESS, 'status_invalid'],
    ['run', 'up', START, 'status_overridden'],
    ['run', 'run', START],
    ['run', 'down', FAIL, 'state_overridden'],
    ['run', 'false', FAIL, 'state_overridden'],
    ['run', 'killed', FAIL, 'word_unknown'],
    ['run', '', START, 'status_invalid'],
    ['fail', 'up', FAIL, 'status_overridden'],
    ['fail', 'run', FAIL, 'status_overridden'],
    ['warn', 'up', WARN, 'status_overridden'],
    ['warn', 'down', FAIL, 'state_overridden'],
    ['fail', '0', FAIL],
    ['fail', 'killed', FAIL, 'word_unknown'],
    ['fail', '', FAIL, 'status_invalid'],
    ['killed', 'up', FAIL, 'word_unknown'],
    ['killed', 'run', FAIL, 'word_unknown'],
    ['killed', 'down', FAIL, 'word_unknown'],
    ['killed', 'over', FAIL, 'word_unknown'],
    ['killed', '', FAIL, 'word_unknown'],
    ['', 'up', SUCCESS, 'state_invalid'],
    ['', 'run', START, 'state_invalid'],
    ['', '0', FAIL, 'state_invalid'],
    ['', 'killed', FAIL, 'word_unknown'],
  ]
  it.each(PAIRS)(
    'of state %j and status %j: a failure of either wins, and otherwise state',
    (state, status, signal, ...warnings) => {
      expect(read(undefined, `state=${state}&status=${status}`, '')).toMatchObject({ signal, warnings })
      expect(read(undefined, `status=${status}&state=${state}`, '')).toMatchObject({ signal, warnings })
    },
  )

  it.each([
    ['', 'state=', 'state_invalid', SUCCESS],
    ['', 'status=', 'status_invalid', SUCCESS],
    ['', 'status=%20%09', 'status_invalid', SUCCESS],
    ['/start', 'state=over', 'state_invalid', START],
    ['/fail', 'status=1', 'status_invalid', FAIL],
    ['/0', 'status=killed', 'status_invalid', SUCCESS],
    ['/log', 'state=killed', 'state_invalid', { type: 'log', exitCode: null }],
  ])('%j with ?%s counts as the path says, with the warning %s', (rest, query, warning, signal) => {
    expect(read(undefined, query, rest)).toMatchObject({ signal, text: null, warnings: [warning] })
  })

  const KNOWN = [
    ...['fail', 'failed', 'failure', 'error', 'err', 'down', 'critical', 'crit', 'timeout', 'ko'].map(
      (word) => [word, FAIL] as const,
    ),
    ...['ok', 'up', 'complete', 'success'].map((word) => [word, SUCCESS] as const),
    ...['run', 'start', 'in_progress'].map((word) => [word, START] as const),
  ]
  it.each([
    ...KNOWN.flatMap(([word, signal]) => [['state', word, signal] as const, ['status', word, signal] as const]),
    ['status', '0', FAIL],
    ['status', 'false', FAIL],
  ] as const)('?%s=%s is known in any case, with white space around it', (name, word, signal) => {
    for (const given of [word, word.toUpperCase(), `%20${word}+%0d%0a`, `${word[0]!.toUpperCase()}${word.slice(1)}`])
      expect(read(undefined, `${name}=${given}`, '')).toMatchObject({ signal, text: null, warnings: [] })
  })

  it.each([
    ['status=killed', 'killed'],
    ['state=FINISHED', 'FINISHED'],
    ['status=1', '1'],
    ['status=true', 'true'],
    ['state=0', '0'],
    ['status=okay', 'okay'],
    ['status=not%20ok', 'not ok'],
    ['status=unfailed', 'unfailed'],
    ['status=__proto__', '__proto__'],
    ['status=up&status=down', 'up, down'],
    ['state=complete&state=fail', 'complete, fail'],
    ['state=complete&status=killed', 'killed'],
    ['state=x&status=y', 'x, y'],
    [`status=${'x'.repeat(5_000)}`, 'x'.repeat(100)],
    ['status=a%0ab%1b[31m', 'a b'],
    ['status=%1b]8;;http://x%07killed%1b]8;;%1b\\', 'killed'],
  ])('?%s is a failure that says why, with a warning', (query, word) => {
    expect(read(undefined, query, '')).toMatchObject({
      signal: FAIL,
      text: `unknown status "${word}"`,
      warnings: ['word_unknown'],
    })
  })

  it('of one word twice is that of the word', () => {
    expect(read(undefined, 'status=up&status=up', '')).toMatchObject({ signal: SUCCESS, warnings: [] })
  })

  it('of an unknown word has the text that came with it, which may say that all is fine', () => {
    const text = 'OK\nunknown status "killed"'
    expect(read(undefined, 'status=killed&msg=OK', '')).toMatchObject({ signal: FAIL, text })
  })

  it('of Uptime Kuma comes with a duration and a text', () => {
    expect(read(undefined, 'status=down&msg=disk%20full&ping=17', '')).toMatchObject({
      signal: FAIL,
      durationMs: 17,
      text: 'disk full',
      warnings: [],
    })
    expect(read(undefined, 'status=up&msg=OK&ping=12.6', '')).toMatchObject({ durationMs: 13, text: null })
    expect(read(undefined, 'status=up&ping=soon', '')).toMatchObject({ warnings: ['duration_invalid'] })
    expect(read('5', 'status=up&ping=17', '').durationMs).toBe(5)
  })

  it('is as fast to find in a query as long as a head can be', () => {
    for (const [repeated, warnings] of [
      ['a&', ['parameter_unknown']],
      ['state=a&state=b&', ['word_unknown']],
      ['state=complete&', ['word_unknown']],
    ] as const) {
      const query = `${repeated.repeat(16_000 / repeated.length)}state=fail`
      const cpuMs = startCpuTimer()
      expect(read(undefined, query, '')).toMatchObject({ signal: FAIL, warnings })
      expect(cpuMs()).toBeLessThan(200)
    }
  })
})

describe('a query of thousands of parameters', () => {
  /** How many are decoded. */
  function countDecoded(query: string): number {
    let decoded = 0
    class Counted extends URLSearchParams {
      constructor(text: string) {
        super(text)
        decoded += this.size
      }
    }
    vi.stubGlobal('URLSearchParams', Counted)
    read(undefined, query)
    vi.unstubAllGlobals()
    return decoded
  }

  it.each(['rid&', 'state=up&', 'ping=1&', 'a&', 'state=%75p&status=up&rid=1&create&'])(
    '%s is decoded in part',
    (unit) => {
      expect(countDecoded(unit.repeat(3_875))).toBeLessThanOrEqual(100)
      expect(countDecoded('rid&'.repeat(50))).toBe(50)
    },
  )

  it.each(['rid&', 'msg=OK&', 'state=up&', 'status=up&state=complete&'])('%s hides no failure', (unit) => {
    for (const word of ['state=fail', 'status=down', 'status=killed'])
      expect(read(undefined, unit.repeat(1_000) + word).signal.type).toBe('fail')
  })

  it('is warned of a parameter that is unknown, and of no other', () => {
    expect(read(undefined, `rid=${ID}&${'create=1&'.repeat(1_000)}`)).toMatchObject({ runId: ID, warnings: [] })
    expect(read(undefined, `${'create=1&'.repeat(1_000)}x`).warnings).toEqual(['parameter_unknown'])
  })
})

describe('a parameter', () => {
  it.each(['create=1', 'create=0&rid=' + ID])('of ours or of healthchecks gets no warning: %s', (query) => {
    expect(read(undefined, query).warnings).toEqual([])
  })

  it.each(['durationms=5', 'tag=x', 'utm_source=cron&%zz&=&&a[b]=c&__proto__=1', 'Duration=5', 'msg=x', 'ping=5'])(
    'that is unknown gets one: %s',
    (query) => {
      expect(read(undefined, query)).toMatchObject({ durationMs: null, text: null, warnings: ['parameter_unknown'] })
    },
  )
})

it('metadata of any shape never throws, and warns only from the closed list', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('', '/start', '/fail', '/log', '/7'),
      fc.option(fc.string({ unit: 'binary-ascii' }), { nil: undefined }),
      fc.string({ unit: 'binary-ascii' }),
      (rest, header, query) => {
        const { durationMs, warnings } = read(header, query, rest)
        expect(durationMs === null || Number.isSafeInteger(durationMs)).toBe(true)
        for (const warning of warnings) expect(PING_WARNINGS).toHaveProperty(warning)
      },
    ),
  )
})

describe('what a push of Uptime Kuma says', () => {
  it.each([
    ['', 'success', null, null],
    ['status=up&msg=OK&ping=12', 'success', 12, null],
    ['status=', 'success', null, null],
    ['status=%20&msg=x', 'success', null, null],
    ['status=down&msg=full&ping=0.4', 'fail', 0, 'full'],
    ['status=UP&msg=', 'success', null, null],
    ['status=+Ok&ping=3', 'success', 3, null],
    ['status=failed&msg=', 'fail', null, null],
    ['status=0', 'fail', null, null],
    ['status=in_progress&ping=12', 'start', null, null],
    ['status=down&rid=x&duration=y&state=run&any=1', 'fail', null, null],
  ])('%j', (query, type, durationMs, text) => {
    const { signal, ...rest } = parsePushMetadata(query)
    expect({ type: signal.type, ...rest }).toEqual({
      type,
      durationMs,
      text,
      unknown: null,
      runId: null,
      isCreating: false,
      warnings: [],
    })
  })

  it.each([
    ['status=pending', 'unknown status "pending"'],
    ['status=pending&msg=OK', 'OK\nunknown status "pending"'],
    ['status=up&status=down', 'unknown status "up, down"'],
  ])('%j is a failure with a warning', (query, text) => {
    expect(parsePushMetadata(query)).toMatchObject({ signal: { type: 'fail' }, text, warnings: ['word_unknown'] })
  })

  it('is read, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webQueryParameters(),
          fc.string().map((ping) => `ping=${encodeURIComponent(ping)}`),
        ),
        (query) => {
          const { signal, durationMs } = parsePushMetadata(query)
          expect(['success', 'start', 'fail']).toContain(signal.type)
          expect(
            durationMs === null || (Number.isInteger(durationMs) && durationMs >= 0 && durationMs <= 604_800_000),
          ).toBe(true)
        },
      ),
    )
  })
})
