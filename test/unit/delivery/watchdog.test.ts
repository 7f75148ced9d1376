import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHttpClient, type HttpClient, type HttpRequest } from '../../../src/delivery/http.ts'
import { createWatchdog, type Watchdog, type WatchdogResult } from '../../../src/delivery/watchdog.ts'
import { createLoop } from '../../../src/runtime/loop.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { silentLog } from '../../support/silent-log.ts'

const URL = 'https://user:password@heartbeat.example.com/ping/0197a000-secret?rid=secret'

interface Line {
  readonly level: 'info' | 'warn'
  readonly message: string
  readonly why?: string
}

let clock: ManualClock
let lines: Line[]
let results: WatchdogResult[]
let requests: { readonly at: number; readonly request: HttpRequest }[]
/** What the other side does with each ping; the last goes on. */
let answers: (number | 'refuse' | 'hang')[]
let reasons: () => Promise<string | null>

const client: HttpClient = {
  async send(request, signal) {
    requests.push({ at: clock.now(), request })
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!
    if (answer === 'refuse') throw Object.assign(new Error(`connect to ${URL} failed`), { code: 'ECONNREFUSED' })
    if (answer === 'hang') {
      return new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason)
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    }
    return { status: answer, headers: {}, text: `what the other side says of ${answer}` }
  },
  async close() {},
}

beforeEach(() => {
  clock = createManualClock()
  lines = []
  results = []
  requests = []
  answers = [200]
  reasons = async () => null
})

function aWatchdog(): Watchdog {
  const keep =
    (level: Line['level']) =>
    (...args: unknown[]) => {
      const [fields, message] = args.length === 2 ? args : [{}, args[0]]
      lines.push({ level, message, ...(fields as object) } as Line)
    }
  return createWatchdog({
    url: URL,
    client,
    whyNotOnTime: () => reasons(),
    onResult: (result) => results.push(result),
    log: { ...silentLog, info: keep('info'), warn: keep('warn') },
    clock,
  })
}

/** One run to its end, however much time it wants. */
async function runOnce(watchdog: Watchdog): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let isDone = false
  void watchdog.run().then(() => {
    isDone = true
    resolve()
  })
  await clock.settle()
  for (let seconds = 0; seconds < 60 && !isDone; seconds++) await clock.advance(1_000)
  await promise
}

describe('while we are on time', () => {
  it('the watchdog is pinged, quietly', async () => {
    await runOnce(aWatchdog())
    expect(requests.map(({ request }) => request)).toEqual([{ method: 'GET', url: URL, isTrusted: true }])
    expect(results).toEqual(['pinged'])
    expect(lines).toEqual([])
    expect(clock.wakeTimes()).toEqual([])
  })

  it.each([200, 204, 299])('an answer %d is as good', async (status) => {
    answers = [status]
    await runOnce(aWatchdog())
    expect(results).toEqual(['pinged'])
    expect(requests).toHaveLength(1)
  })

  it.each([
    [300, 'heartbeat.example.com responded 300'],
    [404, 'heartbeat.example.com responded 404: what the other side says of 404'],
    [503, 'heartbeat.example.com responded 503: what the other side says of 503'],
    ['refuse', 'heartbeat.example.com refused the connection'],
  ] as const)('a ping that ends with %s is tried once more after 5 s, and both are told', async (answer, reason) => {
    answers = [answer]
    await runOnce(aWatchdog())
    expect(results).toEqual(['failed'])
    expect(requests.map(({ at }) => at - requests[0]!.at)).toEqual([0, 5_000])
    expect(lines).toEqual([
      {
        level: 'warn',
        message: 'a ping to the watchdog failed',
        why: expect.stringContaining(reason),
        retryMs: 5_000,
      },
      {
        level: 'warn',
        message: 'a ping to the watchdog failed again: the next is in a minute',
        why: expect.stringContaining(reason),
      },
    ])
    // The path is the capability to ping.
    expect(JSON.stringify(lines)).not.toMatch(/secret|password|\/ping/)
  })

  it('the second try may succeed', async () => {
    answers = [503, 200]
    await runOnce(aWatchdog())
    expect(results).toEqual(['pinged'])
    expect(lines).toHaveLength(1)
  })

  it('a ping that is not answered is given up after 10 s', async () => {
    answers = ['hang']
    await runOnce(aWatchdog())
    expect(results).toEqual(['failed'])
    expect(requests.map(({ at }) => at - requests[0]!.at)).toEqual([0, 15_000])
    expect(lines[0]!.why).toBe('no response from heartbeat.example.com within 10 s')
    expect(clock.wakeTimes()).toEqual([])
  })

  it('the next ping is not affected by one that failed', async () => {
    answers = [500, 500, 200]
    const watchdog = aWatchdog()
    await runOnce(watchdog)
    await runOnce(watchdog)
    expect(results).toEqual(['failed', 'pinged'])
  })
})

describe('while we are late', () => {
  it('the watchdog is not pinged, and that is told when it begins and when it ends', async () => {
    const watchdog = aWatchdog()
    reasons = async () => 'the outbox is 90 s behind'
    await runOnce(watchdog)
    reasons = async () => 'the outbox is 150 s behind'
    await runOnce(watchdog)
    expect(requests).toEqual([])
    reasons = async () => null
    await runOnce(watchdog)
    expect(requests).toHaveLength(1)
    reasons = async () => 'the evaluator is 70 s behind'
    await runOnce(watchdog)
    expect(results).toEqual(['withheld', 'withheld', 'pinged', 'withheld'])
    expect(lines).toEqual([
      { level: 'warn', message: 'the watchdog is not pinged: we are not on time', why: 'the outbox is 90 s behind' },
      { level: 'info', message: 'the watchdog is pinged again: we are on time' },
      {
        level: 'warn',
        message: 'the watchdog is not pinged: we are not on time',
        why: 'the evaluator is 70 s behind',
      },
    ])
  })

  it('or cannot tell, it is not pinged either', async () => {
    reasons = () => Promise.reject(new Error('the database cannot be reached'))
    await runOnce(aWatchdog())
    expect(requests).toEqual([])
    expect(results).toEqual(['withheld'])
    expect(lines).toMatchObject([{ why: 'the check failed: the database cannot be reached' }])
  })
})

describe('a stop', () => {
  it.each([
    ['before the ping', () => {}],
    ['while it is not answered', () => clock.advance(1_000)],
    ['between two tries', () => clock.advance(12_000)],
  ])('%s ends the run at once, and nothing is said', async (_name, begin) => {
    answers = ['hang']
    const stopping = new AbortController()
    const run = aWatchdog().run(stopping.signal)
    await begin()
    const told = lines.length
    stopping.abort()
    expect(await run).toBe('done')
    expect(results).toEqual([])
    expect(lines).toHaveLength(told)
    expect(clock.wakeTimes()).toEqual([])
  })
})

describe('over a socket', () => {
  let receiver: Receiver
  let httpClient: HttpClient
  beforeAll(async () => {
    receiver = await startReceiver()
    // Nothing private is allowed to channels; whoever runs the installation may watch it from the same machine.
    httpClient = createHttpClient({ allowedTargets: [] })
  })
  afterAll(async () => {
    await httpClient.close()
    await receiver.close()
  })

  it('a ping a minute arrives', async () => {
    const watchdog = createWatchdog({
      url: `${receiver.url}/ping/x`,
      client: httpClient,
      whyNotOnTime: async () => null,
      onResult: (result) => results.push(result),
      log: silentLog,
      clock,
    })
    const loop = createLoop({ name: 'watchdog', everyMs: 60_000, run: watchdog.run, onError: () => {}, clock })
    loop.start()
    await receiver.waitFor(1)
    await expect.poll(() => results).toEqual(['pinged'])
    await clock.advance(59_999)
    expect(receiver.requests).toHaveLength(1)
    await clock.advance(1)
    const [, second] = await receiver.waitFor(2)
    expect(second).toMatchObject({ method: 'GET', path: '/ping/x', body: '' })
    await loop.stop()
  })
})
