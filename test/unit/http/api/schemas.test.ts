import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CHANNEL_KINDS } from '../../../../src/domain/channel.ts'
import { AppError } from '../../../../src/domain/errors.ts'
import { encodeCursor } from '../../../../src/domain/page.ts'
import { NewChannel } from '../../../../src/http/api/channels.ts'
import { CheckListQuery, CheckUpdate, NewCheck } from '../../../../src/http/api/checks.schema.ts'
import { parsePart } from '../../../../src/http/api/faults.ts'
import { FlipListQuery, PingListQuery } from '../../../../src/http/api/history.ts'
import { readQuery } from '../../../../src/http/api/query.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'
import { startCpuTimer } from '../../../support/cpu-time.ts'

const project_id = '0199aaaa-0000-7000-8000-00000000000a'
const bodies = ROUTES.flatMap(({ id, endpoint: { body } }) => (body === undefined ? [] : [{ id, body }]))
const queries = ROUTES.flatMap(({ id, endpoint: { query } }) => (query === undefined ? [] : [{ id, query }]))

/** The error that a caller gets, or null. Fails on anything else that is thrown. */
function refusalOf(parse: () => unknown): AppError | null {
  try {
    parse()
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    return error as AppError
  }
}

function expectTellable(refusal: AppError | null, place: string): void {
  if (refusal === null) return
  expect(refusal.code).toBe('invalid_request')
  expect(refusal.details!.length).toBeGreaterThan(0)
  for (const { path, message } of refusal.details!) {
    expect(path === place || path.startsWith(`${place}.`)).toBe(true)
    // Our own words for every rule, never the library's.
    expect(message).toMatch(
      /^(must |is required$|cannot be (null$|changed: )|is not a known (field($|; )|parameter: )|is given more than once$)/,
    )
  }
  expect(new Set(refusal.details!.map(({ path }) => path)).size).toBe(refusal.details!.length)
  const [first, second] = refusal.details!
  // Unknown parameters are named together.
  if (second !== undefined && first!.message.startsWith('is not a known parameter: ')) return
  expect(refusal.message).toBe(
    first!.path === place
      ? `the ${place} ${first!.message}`
      : `${first!.path.slice(place.length + 1)} ${first!.message}`,
  )
}

/** A body that has several forms, with the kind that selects each. */
const forms = bodies.flatMap(({ id, body }) => {
  const members = (body instanceof z.ZodUnion ? body.options : [body]) as z.ZodObject[]
  return members.map(({ shape }) => {
    const kind = shape.kind instanceof z.ZodLiteral ? { kind: shape.kind.value } : {}
    return { id, body, names: Object.keys(shape), kind }
  })
})

describe.each(forms)('the body of $id, $kind', ({ body, names, kind }) => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom<unknown>(
      project_id,
      'x',
      '@daily',
      'UTC',
      60,
      0,
      -0,
      1e308,
      Number.NaN,
      null,
      '\ud800',
      '\u0000',
      'read',
      'a@b',
      '2030-01-01T00:00:00Z',
    ),
  )

  it('takes any object, or says what is wrong in our words', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names, 'surprise'), value), fc.boolean(), (given, isOfKind) => {
        expectTellable(
          refusalOf(() => parsePart('body', body, isOfKind ? { ...given, ...kind } : given)),
          'body',
        )
      }),
      { numRuns: 500 },
    )
  })
})

describe.each(queries)('the query of $id', ({ query }) => {
  const names = Object.keys(query.shape)

  it('takes any string, or says what is wrong in our words', () => {
    const parameter = fc.tuple(
      fc.constantFrom(...names, 'x'),
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('0', '1', '1001', '%zz', '%ff', '+1', project_id, 'up')),
    )
    const text = fc.oneof(
      fc.array(parameter).map((pairs) => pairs.map((pair) => pair.join('=')).join('&')),
      fc.array(parameter).map((pairs) => String(new URLSearchParams(pairs))),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(text, (given) => {
        expectTellable(
          refusalOf(() => parsePart('query', query, readQuery(query, given))),
          'query',
        )
      }),
      { numRuns: 500 },
    )
  })
})

it.each([
  [undefined, 'is required'],
  [null, 'cannot be null'],
  ['pager', `must be one of ${CHANNEL_KINDS.join(', ')}`],
  [{ kind: 'slack' }, `must be one of ${CHANNEL_KINDS.join(', ')}`],
])(
  'a channel of the kind %j is refused for its kind alone: the kind decides what the rest must be',
  (kind, message) => {
    expect(refusalOf(() => parsePart('body', NewChannel, { kind, name: '', config: 1, surprise: 1 }))).toMatchObject({
      message: `kind ${message}`,
      details: [{ path: 'body.kind', message }],
    })
  },
)

it('a channel has all faults of its kind in one response', () => {
  const config = { url: 'no url', surprise: 1 }
  const body = { kind: 'slack', name: '', events: ['x'], muted: 1, project_id: 'x', config, surprise: 1 }
  const { details } = refusalOf(() => parsePart('body', NewChannel, body))!
  const paths = ['name', 'project_id', 'events.0', 'muted', 'config.url', 'config.surprise', 'surprise']
  expect(details!.map(({ path }) => path)).toEqual(paths.map((path) => `body.${path}`))
})

describe('what a body becomes', () => {
  it('has defaults where the design gives them', () => {
    expect(parsePart('body', NewCheck, { project_id, name: 'x' })).toEqual({
      project_id,
      name: 'x',
      grace_seconds: 3_600,
      armed: false,
    })
    expect(parsePart('body', CheckUpdate, {})).toEqual({})
  })

  it('is trimmed and in lower case where that is no difference', () => {
    expect(parsePart('body', NewCheck, { project_id: project_id.toUpperCase(), name: '\t x\ufeff\n' })).toMatchObject({
      project_id,
      name: 'x',
    })
  })

  it('counts characters, not units', () => {
    const isTaken = (name: string) => refusalOf(() => parsePart('body', CheckUpdate, { name })) === null
    expect([
      isTaken('💾'.repeat(100)),
      isTaken('💾'.repeat(101)),
      isTaken('é'.repeat(100)),
      isTaken('é'.repeat(101)),
    ]).toEqual([true, false, true, false])
  })

  it('is checked quickly, whatever is sent', () => {
    const cpuMs = startCpuTimer()
    for (const text of ['a'.repeat(65_000), `${'a-'.repeat(32_000)}`, `${' '.repeat(65_000)}x`, '💾'.repeat(16_000)]) {
      refusalOf(() =>
        parsePart('body', NewCheck, {
          project_id: text,
          name: text,
          slug: text,
          description: text,
          schedule: text,
          time_zone: text,
        }),
      )
    }
    for (const length of [4, 36, 600]) {
      const names = Array.from({ length: 65_000 / (length + 5) }, (_, index) =>
        `${index}`.padEnd(length, 'period_seconds'),
      )
      refusalOf(() => parsePart('body', NewCheck, Object.fromEntries(names.map((name) => [name, 1]))))
    }
    expect(cpuMs()).toBeLessThan(500)
  })
})

it('an error lists a hundred faults, however many there are', () => {
  const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 1]))
  expect(refusalOf(() => parsePart('body', CheckUpdate, body))!.details).toHaveLength(100)
})

describe('what a query becomes', () => {
  const read = (text: string) => parsePart('query', FlipListQuery, readQuery(FlipListQuery, text))

  it('has the default of its list, and no more than a page', () => {
    expect(read('')).toEqual({ limit: 100 })
    expect(read('limit=1')).toEqual({ limit: 1 })
    expect(read('limit=1000')).toEqual({ limit: 1_000 })
    expect(read('limit=1001')).toEqual({ limit: 1_000 })
    expect(parsePart('query', CheckListQuery, { project_id })).toEqual({ project_id, sort: 'created', limit: 1_000 })
  })

  it('has the place that a cursor stands for', () => {
    const place = { at: 1_763_700_000_000.123, id: project_id }
    expect(read(`cursor=${encodeCursor(place)}`)).toEqual({ limit: 100, cursor: place })
  })

  const readPings = (text: string) => parsePart('query', PingListQuery, readQuery(PingListQuery, text))
  it('takes the cursors of its own list, and rejects those of another', () => {
    const cursor = encodeCursor({ at: 1_763_700_000_000.123, id: project_id })
    expect(readPings(`cursor=pings.${cursor}`)).toEqual(readPings(`cursor=${cursor}`))
    const other = 'cursor must be the next_cursor of an earlier response of this list, not of the list checks'
    expect(refusalOf(() => readPings(`cursor=checks.${cursor}`))!.message).toBe(other)
    for (const text of ['', 'pings.', `pings.${cursor}x`, `pings.pings.${cursor}`, `PINGS.${cursor}`, `.${cursor}`])
      expect(refusalOf(() => readPings(`cursor=${text}`))!.message).toBe(
        'cursor must be the next_cursor of an earlier response',
      )
  })

  const KNOWN = 'the parameters of this list are since, until, limit, cursor'

  it('has no unknown parameters: an error names them, and the known ones', () => {
    expect(refusalOf(() => read('limit=1&staus=down'))).toMatchObject({
      message: `staus is not a known parameter: ${KNOWN}`,
      details: [{ path: 'query.staus', message: `is not a known parameter: ${KNOWN}` }],
    })
    expect(refusalOf(() => read('x=1&x=2&__proto__=3&constructor&=4'))).toMatchObject({
      message: `x, __proto__, constructor, "" are not known parameters: ${KNOWN}`,
      details: ['x', '__proto__', 'constructor', '""'].map((name) => ({ path: `query.${name}` })),
    })
  })

  it('has no unknown parameters, however many: an error names ten', () => {
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`)
    const error = refusalOf(() => read(names.join('&')))!
    expect(error.message).toBe(`${names.slice(0, 10).join(', ')} and 2 more are not known parameters: ${KNOWN}`)
    expect(error.details).toHaveLength(10)
    expect(refusalOf(() => read('y'.repeat(5_000)))!.message.length).toBeLessThan(300)
  })
})
