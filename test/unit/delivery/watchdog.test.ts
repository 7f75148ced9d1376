import { beforeEach, describe, expect, it } from 'vitest'
import type { HttpClient, HttpRequest } from '../../../src/delivery/http.ts'
import { createWatchdog, type Watchdog, type WatchdogResult } from '../../../src/delivery/watchdog.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { silentLog } from '../../support/silent-log.ts'
import { useEach } from '../../support/use.ts'

const URL = 'https://user:password@heartbeat.example.com/ping/0197a000-secret?rid=secret'
const FAILED = 'a ping to the watchdog failed: the next is in a minute'
const WITHHELD = 'the watchdog is not pinged: we are not on time'

let lines: { readonly level: string; readonly message: string; readonly why?: string }[]
let results: WatchdogResult[]
let requests: HttpRequest[]
/** The responses to the next pings; the last one repeats. */
let responses: (number | 'refuse' | 'hang')[]
let whyNotOnTime: () => Promise<string | null>

const client: HttpClient = {
  async send(request, signal) {
    requests.push(request)
    const response = responses.length > 1 ? responses.shift()! : responses[0]!
    if (response === 'refuse') throw Object.assign(new Error(`connect to ${URL} failed`), { code: 'ECONNREFUSED' })
    if (response === 'hang') {
      return new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason)
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    }
    return { status: response, headers: {}, text: `what it says about ${response}` }
  },
  async close() {},
}

const clock = useEach(createManualClock)
beforeEach(() => {
  lines = []
  results = []
  requests = []
  responses = [200]
  whyNotOnTime = async () => null
})

function aWatchdog(): Watchdog {
  const keep =
    (level: string) =>
    (...args: unknown[]) => {
      const [fields, message] = args.length === 2 ? args : [{}, args[0]]
      lines.push({ level, message: String(message), ...(fields as object) })
    }
  const log = { ...silentLog, info: keep('info'), warn: keep('warn') }
  const onResult = (result: WatchdogResult) => results.push(result)
  return createWatchdog({ url: URL, client, whyNotOnTime: () => whyNotOnTime(), onResult, log, clock })
}

/** One run, with as much time as it needs. */
async function runOnce(watchdog: Watchdog): Promise<void> {
  let isDone = false
  const run = watchdog.run().finally(() => {
    isDone = true
  })
  await clock.settle()
  for (let seconds = 0; seconds < 60 && !isDone; seconds += 1) await clock.advance(1_000)
  await run
}

describe('a replica that is on time', () => {
  it('pings the watchdog, and logs nothing', async () => {
    await runOnce(aWatchdog())
    // Trusted: the operator may choose a private address.
    expect(requests).toEqual([{ method: 'GET', url: URL, isTrusted: true }])
    expect([results, lines, clock.wakeTimes()]).toEqual([['pinged'], [], []])
  })

  it.each([
    [300, 'heartbeat.example.com responded 300'],
    [404, 'heartbeat.example.com responded 404: what it says about 404'],
    [503, 'heartbeat.example.com responded 503: what it says about 503'],
    ['refuse', 'heartbeat.example.com refused the connection'],
  ] as const)('logs why a ping ended with %s', async (response, reason) => {
    responses = [response]
    await runOnce(aWatchdog())
    expect([results, requests.length]).toEqual([['failed'], 1])
    expect(lines).toEqual([{ level: 'warn', message: FAILED, why: expect.stringContaining(reason) }])
    // With the path, anyone could ping.
    expect(JSON.stringify(lines)).not.toMatch(/secret|password|\/ping/)
  })

  it('gives up a ping without a response after 10 s', async () => {
    responses = ['hang']
    await runOnce(aWatchdog())
    expect([results, requests.length]).toEqual([['failed'], 1])
    expect(lines[0]!.why).toBe('no response from heartbeat.example.com within 10 s')
    expect(clock.wakeTimes()).toEqual([])
  })

  it('pings again in the run after a failure', async () => {
    responses = [503, 200]
    const watchdog = aWatchdog()
    for (let run = 0; run < 2; run += 1) await runOnce(watchdog)
    expect(results).toEqual(['failed', 'pinged'])
  })
})

describe('a replica that is late', () => {
  it('withholds the ping, and logs when that begins and ends', async () => {
    const watchdog = aWatchdog()
    for (const reason of ['the outbox is late', 'the outbox is later', null, 'the evaluator is late']) {
      whyNotOnTime = async () => reason
      await runOnce(watchdog)
    }
    expect(requests).toHaveLength(1)
    expect(results).toEqual(['withheld', 'withheld', 'pinged', 'withheld'])
    expect(lines).toEqual([
      { level: 'warn', message: WITHHELD, why: 'the outbox is late' },
      { level: 'info', message: 'the watchdog is pinged again: we are on time' },
      { level: 'warn', message: WITHHELD, why: 'the evaluator is late' },
    ])
  })

  it('withholds the ping also when the check fails', async () => {
    whyNotOnTime = () => Promise.reject(new Error('the database cannot be reached'))
    await runOnce(aWatchdog())
    expect([requests, results]).toEqual([[], ['withheld']])
    expect(lines).toMatchObject([{ why: 'the check failed: the database cannot be reached' }])
  })
})

it.each([
  ['before the ping', () => {}, 0],
  ['while it waits for a response', () => clock.advance(1_000), 1],
] as const)('a stop %s ends the run at once, without a result', async (_, begin, pings) => {
  responses = ['hang']
  const stopping = new AbortController()
  const run = aWatchdog().run(stopping.signal)
  await begin()
  const logged = lines.length
  stopping.abort()
  expect(await run).toBe('done')
  expect([results, lines.length, requests.length, clock.wakeTimes()]).toEqual([[], logged, pings, []])
})
