/**
 * Durations and run ids, from the request to the history (design, section 3.3). Their rules are tested in test/unit/http/ping-request.test.ts and
 * test/unit/domain/transition.test.ts.
 */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { exchange, writeHead, writePost } from '../../support/http.ts'
import { usePings } from './fixture.ts'

const { app, check, stored } = usePings()

const ping = async (rest = '', ...headers: string[]) => {
  const { status, headers: received } = await exchange(
    app.pingUrl,
    writeHead('GET', `/ping/${check.publicId}${rest}`, ...headers),
  )
  return { status, warning: received['ping-warning'] }
}
const last = async () => (await stored()).at(-1)!
const readCheck = async () => (await app.client.get(`/checks/${check.id}`)).body

/** Moves the start of the open runs back, instead of waiting. */
const startEarlier = (ms: number) =>
  app.database.query(
    `update check_states s set runs = (
      select jsonb_agg(jsonb_set(run, '{startedAt}', to_jsonb((run ->> 'startedAt')::float8 - $2::float8)))
      from jsonb_array_elements(s.runs) run)
    from checks c where c.key = s.check_key and c.public_id = $1`,
    [check.publicId, ms],
  )

const INVALID = 'duration ignored: not an integer from 0 to 604800000'

it.each(['', '/warn', '/fail', '/0', '/7'])(
  'a completion carries a duration, in the header or in the query: %j',
  async (rest) => {
    expect(await ping(rest, 'X-Service-Duration: 1234')).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(1_234)
    expect(await ping(`${rest}?duration=77`)).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(77)
  },
)

it.each([
  ['an invalid duration', '?duration=soon', INVALID],
  [
    'a duration of a start',
    '/start?duration=5',
    'duration ignored: only success, warn, fail and exit code pings carry one',
  ],
  ['an invalid run id', '?rid=x', 'rid ignored: not a UUID'],
  ['both', '?duration=soon&rid=x', `${INVALID}; rid ignored: not a UUID`],
])('%s is ignored, the ping is stored, and a warning is returned', async (_, rest, warning) => {
  expect(await ping(rest)).toEqual({ status: 200, warning })
  expect(await stored()).toMatchObject([{ durationMs: null, runId: null }])
})

it('a header that is sent twice, or is not ASCII, is an invalid duration', async () => {
  expect((await ping('', 'X-Service-Duration: 5', 'X-Service-Duration: 5')).warning).toBe(INVALID)
  expect((await ping('', `X-Service-Duration: ${Buffer.from('１２').toString('latin1')}`)).warning).toBe(INVALID)
})

it('clients: other parameters are ignored, with a warning that names the known ones', async () => {
  expect(await ping('?utm_source=cron&create=1&%zz&=&&a[b]=c&__proto__=1')).toEqual({
    status: 200,
    warning: 'unknown parameters ignored: the known ones are duration, rid, state and status',
  })
  expect(await stored()).toHaveLength(1)
})

describe('clients: the signals of other services', () => {
  it.each([
    ['?state=complete', 'success'],
    ['?status=down&msg=disk+full&ping=', 'fail'],
  ])('%s is a %s', async (rest, type) => {
    expect(await ping(rest)).toEqual({ status: 200, warning: undefined })
    expect(await stored()).toMatchObject([{ type, exitCode: type === 'success' ? 0 : null }])
  })

  it('the path takes precedence, with a warning', async () => {
    expect(await ping('/fail?state=complete')).toEqual({
      status: 200,
      warning: 'state and status ignored: the path takes precedence',
    })
    expect((await readCheck()).status).toBe('down')
  })

  it('an unknown value is a failure that says so, and beside a signal of the path it is ignored, each with a warning', async () => {
    expect(await ping('?state=over')).toEqual({ status: 200, warning: expect.stringMatching(/^unknown status: /) })
    expect(await last()).toMatchObject({ type: 'fail', body: Buffer.from('unknown status "over"') })
    expect(await ping('/0?state=over')).toEqual({ status: 200, warning: 'state ignored: no word that is known' })
    expect(await last()).toMatchObject({ type: 'success', body: null })
  })

  it('an unknown word is the last line of the text, whatever the body is', async () => {
    const word = 'unknown status "over"'
    const post = (body: string, query = 'status=over&msg=short') =>
      exchange(app.pingUrl, writePost(`/ping/${check.publicId}?${query}`, body))
    const room = 10_240 - word.length - 1
    for (const [body, kept, isBodyTruncated, status] of [
      ['log\n', 'log\n', false, 200],
      ['log', 'log\n', false, 200],
      ['a'.repeat(room), `${'a'.repeat(room)}\n`, false, 200],
      [`b${'a'.repeat(room)}`, `${'a'.repeat(room)}\n`, true, 200],
      ['a'.repeat(10_241), `${'a'.repeat(room)}\n`, true, 413],
      ['a'.repeat(1_048_577), '', true, 413],
    ] as const) {
      expect(await post(body)).toMatchObject({ status })
      expect(await last()).toMatchObject({ type: 'fail', body: Buffer.from(kept + word), isBodyTruncated })
    }
    await post('log', 'status=down')
    expect(await last()).toMatchObject({ type: 'fail', body: Buffer.from('log'), isBodyTruncated: false })
  })

  it('the message of a failure is its text, unless it has a body', async () => {
    await ping('?status=down&msg=disk%20full&ping=12')
    expect(await last()).toMatchObject({ type: 'fail', durationMs: 12, body: Buffer.from('disk full') })
    await exchange(app.pingUrl, writePost(`/ping/${check.publicId}?status=down&msg=short`, 'long'))
    expect(await last()).toMatchObject({ body: Buffer.from('long') })
  })
})

it('a duration that is not given is the time since the start of the run, also in place of an invalid one', async () => {
  await ping('/start')
  await startEarlier(90_000)
  expect((await ping('', 'X-Service-Duration: soon')).warning).toBe(INVALID)
  const { durationMs } = await last()
  expect(durationMs).toBeGreaterThanOrEqual(90_000)
  expect(durationMs).toBeLessThan(100_000)
})

it('a completion ends the run of its id, and one without an id ends the anonymous run', async () => {
  const [one, other] = [randomUUID(), randomUUID()]
  await ping(`/start?rid=${one}`)
  await startEarlier(60_000)
  await ping('/start')
  await ping(`?rid=${other}`)
  expect((await last()).durationMs).toBeNull()
  await ping(`?rid=${one}`)
  expect((await last()).durationMs).toBeGreaterThanOrEqual(60_000)
  expect((await readCheck()).running).toBe(1)
  await ping()
  expect((await last()).durationMs).toBeLessThan(60_000)
  expect((await readCheck()).running).toBe(0)
})

describe('a run id', () => {
  it('is kept with its ping, in lower case', async () => {
    const rid = randomUUID()
    expect(await ping(`/start?rid=${rid.toUpperCase()}`)).toEqual({ status: 200, warning: undefined })
    expect(await last()).toMatchObject({ type: 'start', runId: rid })
  })

  it.each(['12345678-9abc-0def-0123-456789abcdef', '12345678-9abc-fdef-f123-456789abcdef'])(
    'a run id of a version that RFC 9562 does not know is stored and listed: %s',
    async (rid) => {
      expect(await ping(`?rid=${rid}`)).toEqual({ status: 200, warning: undefined })
      const { body } = await app.client.get(`/checks/${check.id}/pings`)
      expect(body.pings[0].run_id).toBe(rid)
    },
  )

  it('makes a ping of one run and type stored once, with 200 each time', async () => {
    const rid = randomUUID()
    for (const rest of ['/start', '/start', '', '', '/warn', '/warn', '/fail', '/7', '/log', '/log'])
      expect(await ping(`${rest}?rid=${rid}`)).toEqual({ status: 200, warning: undefined })
    expect((await stored()).map(({ type }) => type)).toEqual(['start', 'success', 'warn', 'fail', 'log'])
  })

  it('makes one of many pings at once be stored', async () => {
    const rid = randomUUID()
    const responses = await Promise.all(Array.from({ length: 20 }, () => ping(`?rid=${rid}`)))
    expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(await stored()).toHaveLength(1)
  })

  it('opens no run beyond 100; that start is stored, and a warning is returned', async () => {
    await Promise.all(Array.from({ length: 100 }, () => ping(`/start?rid=${randomUUID()}`)))
    expect(await ping(`/start?rid=${randomUUID()}`)).toEqual({
      status: 200,
      warning: 'no run opened: 100 are open already',
    })
    expect(await stored()).toHaveLength(101)
    expect((await readCheck()).running).toBe(100)
  })
})

it.each([
  ['a start moves last_start_at only', '/start', { ping: null, start: expect.any(String), status: 'new' }],
  ['a success moves last_ping_at only', '', { ping: expect.any(String), start: null, status: 'up' }],
  ['a failure moves last_ping_at only', '/1', { ping: expect.any(String), start: null, status: 'down' }],
  ['a log moves neither', '/log', { ping: null, start: null, status: 'new' }],
])('%s', async (_, rest, times) => {
  await ping(rest)
  const { last_ping_at: pingAt, last_start_at: start, status } = await readCheck()
  expect({ ping: pingAt, start, status }).toEqual(times)
})
