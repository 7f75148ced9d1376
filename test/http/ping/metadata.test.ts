/** Durations, run ids and logs: what a ping may say besides that it happened, none of which can cost a heartbeat (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { exchange, writeHead } from '../../support/http.ts'

let app: TestApp
let id: string
let publicId: string

beforeAll(async () => {
  app = await startTestApp()
})
afterAll(() => app.close())
beforeEach(async () => {
  ;({ id, publicId } = await app.createCheck({ name: `Job ${randomUUID()}` }))
})

const ping = async (rest = '', ...headers: string[]) => {
  const { status, headers: answered } = await exchange(
    app.pingUrl,
    writeHead('GET', `/ping/${publicId}${rest}`, ...headers),
  )
  return { status, warning: answered['ping-warning'] }
}
const stored = () => app.storedPings(publicId)
const last = async () => (await stored()).at(-1)!
const readCheck = async () => (await app.call('GET', `/checks/${id}`)).body

/** Moves the start of the open runs back, instead of waiting. */
const startEarlier = (ms: number) =>
  app.database.query(
    `update check_states s set runs = (
      select jsonb_agg(jsonb_set(run, '{startedAt}', to_jsonb((run ->> 'startedAt')::float8 - $2::float8)))
      from jsonb_array_elements(s.runs) run)
    from checks c where c.key = s.check_key and c.public_id = $1`,
    [publicId, ms],
  )

const LONGEST = 604_800_000
const INVALID = `duration ignored: not an integer from 0 to ${LONGEST}`
const UNEXPECTED = 'duration ignored: only success, fail and exit code pings carry one'

describe('a duration', () => {
  it.each(['', '/fail', '/0', '/7'])('belongs to a completion: %j', async (rest) => {
    expect(await ping(rest, 'X-Service-Duration: 1234')).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(1_234)
    expect(await ping(`${rest}?duration=77`)).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(77)
  })

  it.each([0, 1, LONGEST])('of %s ms is within the limits', async (ms) => {
    expect(await ping('', `X-Service-Duration: ${ms}`)).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(ms)
  })

  it.each(['-1', `${LONGEST + 1}`, '', '1.5', '1e3', 'abc', '0x10', '99999999999999999999', '1 2', '１２'])(
    'of %j is dropped, the ping is stored, and the answer says so',
    async (given) => {
      for (const { status, warning } of [
        await ping('', `X-Service-Duration: ${Buffer.from(given).toString('latin1')}`),
        await ping(`?duration=${encodeURIComponent(given)}`),
      ]) {
        expect({ status, warning }).toEqual({ status: 200, warning: INVALID })
      }
      expect(await stored()).toMatchObject([{ durationMs: null }, { durationMs: null }])
    },
  )

  it('given in both places is that of the header, even when that one is invalid', async () => {
    expect(await ping('?duration=nonsense', 'X-Service-Duration: 5')).toEqual({ status: 200, warning: undefined })
    expect((await last()).durationMs).toBe(5)
    expect(await ping('?duration=6', 'X-Service-Duration: nonsense')).toEqual({ status: 200, warning: INVALID })
    expect((await last()).durationMs).toBeNull()
  })

  it('given twice is none', async () => {
    expect((await ping('', 'X-Service-Duration: 5', 'X-Service-Duration: 5')).warning).toBe(INVALID)
    expect((await ping('?duration=5&duration=5')).warning).toBe(INVALID)
  })

  it.each(['/start', '/log'])('does not belong to %s', async (rest) => {
    expect(await ping(rest, 'X-Service-Duration: 5')).toEqual({ status: 200, warning: UNEXPECTED })
    expect(await ping(`${rest}?duration=5`)).toEqual({ status: 200, warning: UNEXPECTED })
    expect(await stored()).toMatchObject([{ durationMs: null }, { durationMs: null }])
  })
})

describe('a computed duration', () => {
  it.each(['', '/fail', '/3'])('is completion minus start: %j', async (rest) => {
    await ping('/start')
    await startEarlier(90_000)
    await ping(rest)
    const { durationMs } = await last()
    expect(durationMs).toBeGreaterThanOrEqual(90_000)
    expect(durationMs).toBeLessThan(100_000)
  })

  it('stands in for a given one that was dropped', async () => {
    await ping('/start')
    await startEarlier(90_000)
    expect((await ping('', 'X-Service-Duration: soon')).warning).toBe(INVALID)
    expect((await last()).durationMs).toBeGreaterThanOrEqual(90_000)
  })

  it('gives way to the job’s own', async () => {
    await ping('/start')
    await startEarlier(90_000)
    await ping('?duration=12')
    expect((await last()).durationMs).toBe(12)
  })

  it('is null without a start, and for a second completion', async () => {
    await ping()
    await ping('/start')
    await ping()
    await ping()
    expect((await stored()).map(({ durationMs }) => durationMs)).toEqual([null, null, expect.any(Number), null])
  })

  it('reaches 7 days and not further', async () => {
    await ping('/start')
    await startEarlier(LONGEST - 60_000)
    await ping()
    expect((await last()).durationMs).toBeGreaterThanOrEqual(LONGEST - 60_000)
    await ping('/start')
    await startEarlier(LONGEST + 1)
    await ping()
    expect((await last()).durationMs).toBeNull()
  })

  it('is that of the same run, and never of an anonymous start', async () => {
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
})

describe('a run id', () => {
  it('is kept with its ping, in lower case', async () => {
    const rid = randomUUID()
    expect(await ping(`/start?rid=${rid.toUpperCase()}`)).toEqual({ status: 200, warning: undefined })
    expect(await last()).toMatchObject({ type: 'start', runId: rid })
  })

  it.each(['', 'x', '123', 'zzzzzzzz-6f0c-4f6e-9d0e-0a4b4c3d2e1f', '0b9f7c526f0c4f6e9d0e0a4b4c3d2e1f'])(
    '%j is ignored, the ping is stored, and the answer says so',
    async (rid) => {
      expect(await ping(`?rid=${rid}`)).toEqual({ status: 200, warning: 'rid ignored: not a UUID' })
      expect(await last()).toMatchObject({ type: 'success', runId: null })
    },
  )

  it('stores pings of one run and type once; 200 each time', async () => {
    const rid = randomUUID()
    for (const rest of ['/start', '/start', '', '', '/fail', '/7', '/log', '/log']) {
      expect(await ping(`${rest}?rid=${rid}`)).toEqual({ status: 200, warning: undefined })
    }
    expect((await stored()).map(({ type }) => type)).toEqual(['start', 'success', 'fail', 'log'])
  })

  it('stores one of many that come at once', async () => {
    const rid = randomUUID()
    const answers = await Promise.all(Array.from({ length: 20 }, () => ping(`?rid=${rid}`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(await stored()).toHaveLength(1)
  })

  it('belongs to its check: another check’s ping of the same run is another ping', async () => {
    const rid = randomUUID()
    await ping(`?rid=${rid}`)
    ;({ publicId } = await app.createCheck({ name: 'Another' }))
    await ping(`?rid=${rid}`)
    expect(await stored()).toHaveLength(1)
  })

  it('is one of 100 that may be open; the start beyond is stored and says that it opened none', async () => {
    for (let run = 0; run < 100; run += 1) expect((await ping(`/start?rid=${randomUUID()}`)).warning).toBeUndefined()
    const answer = await ping(`/start?rid=${randomUUID()}`)
    expect(answer).toEqual({ status: 200, warning: 'no run opened: 100 are open already' })
    expect(await stored()).toHaveLength(101)
    expect((await readCheck()).running).toBe(100)
  })
})

it('two warnings share the header', async () => {
  expect((await ping('?duration=x&rid=y')).warning).toBe(`${INVALID}; rid ignored: not a UUID`)
})

it('other parameters are nobody’s business', async () => {
  expect(await ping('?utm_source=cron&create=1&%zz&=&&a[b]=c&__proto__=1')).toEqual({ status: 200, warning: undefined })
  expect(await stored()).toHaveLength(1)
})

describe('the times of a check', () => {
  const times = async () => {
    const { last_ping_at: ping, last_start_at: start, status } = await readCheck()
    return { ping, start, status }
  }

  it('a start moves last_start_at only', async () => {
    await ping('/start')
    expect(await times()).toEqual({ ping: null, start: expect.any(String), status: 'new' })
  })

  it.each(['', '/fail', '/0', '/1'])('a completion moves last_ping_at only: %j', async (rest) => {
    await ping(rest)
    expect(await times()).toMatchObject({ ping: expect.any(String), start: null })
  })

  it('a log moves neither and changes nothing', async () => {
    await ping('/log')
    expect(await times()).toEqual({ ping: null, start: null, status: 'new' })
    expect(await stored()).toMatchObject([{ type: 'log', exitCode: null, durationMs: null }])
  })
})
