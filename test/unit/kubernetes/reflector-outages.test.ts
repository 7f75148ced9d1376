/** F5: how soon a reflector is back after the API server was away. */

import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import { createReflector } from '../../../src/kubernetes/reflector.ts'
import { anApiError } from '../../support/builders.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const rejection = (status: number, reason = 'Rejected', retryAfterSeconds: number | null = null) =>
  anApiError(status, { reason, message: `${status}`, retryAfterSeconds })
const NO_RESPONSE = new TransportError('connection refused')
const EXPIRED = rejection(410, 'Expired')

/** A reflector whose API server responds as the test says, without time between request and response. */
function aReflector(random = () => 0) {
  const clock = createManualClock(0)
  /** Null: it works. */
  const faults: { list: Error | null; watch: Error | null } = { list: null, watch: null }
  const calls: { readonly what: 'list' | 'check' | 'watch'; readonly at: number }[] = []
  const problems: string[] = []
  let breakWatch: (error: Error) => void = () => {}
  const client = {
    async list(_type: object, { limit }: { limit: number }) {
      calls.push({ what: limit === 1 ? 'check' : 'list', at: clock.now() })
      if (faults.list !== null) throw faults.list
      return { items: [], resourceVersion: '7', continueToken: null }
    },
    async *watch(_type: object, { signal, onContact }: { signal: AbortSignal; onContact: () => void }) {
      calls.push({ what: 'watch', at: clock.now() })
      if (faults.watch !== null) throw faults.watch
      onContact()
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => resolve())
        breakWatch = reject
      })
    },
  } as unknown as KubernetesClient
  const reflector = createReflector<KubernetesObject>({
    client,
    type: CONFIG_MAPS,
    clock,
    random,
    onChange: () => {},
    onProblem: (error) => problems.push((error as Error).message),
  })
  reflector.start()
  return {
    clock,
    faults,
    calls,
    problems,
    breakWatch: (error: Error = NO_RESPONSE) => breakWatch(error),
    /** The API server cannot be reached from now on. */
    goAway(fault: Error = NO_RESPONSE) {
      faults.list = fault
      breakWatch(NO_RESPONSE)
    },
    /** The waits between the calls of the next `ms`. */
    async waitsFor(ms: number) {
      const from = calls.length
      const since = clock.now()
      await clock.advance(ms)
      const times = [since, ...calls.slice(from).map(({ at }) => at)]
      return times.slice(1).map((at, n) => Math.floor(at - times[n]!))
    },
    lastCalls: (count: number) => calls.slice(-count).map(({ what }) => what),
    [Symbol.asyncDispose]: () => reflector.stop(),
  }
}

describe('F5: after an outage of the API server', () => {
  it.each([
    ['no response', NO_RESPONSE],
    ['502 of a load balancer', rejection(502)],
    ['503 of a load balancer', rejection(503)],
    ['504 of a load balancer', rejection(504)],
    ['503 of a load balancer with Retry-After', rejection(503, 'Rejected', 120)],
  ])('%s: the wait between attempts is at most 4 s', async (_, fault) => {
    await using a = aReflector(() => 0.999)
    await a.clock.advance(60_000)
    a.goAway(fault)
    expect((await a.waitsFor(40_000)).slice(0, 7)).toEqual([1_599, 3_198, 3_998, 3_998, 3_998, 3_998, 3_998])
  })

  it.each([502, 503, 504])('%i of a load balancer leads to no list: the API server has its history', async (status) => {
    await using a = aReflector()
    await a.clock.advance(60_000)
    a.faults.watch = rejection(status)
    a.goAway(rejection(status))
    await a.clock.advance(10_000)
    a.faults.list = null
    await a.clock.advance(10_000)
    a.faults.watch = null
    await a.clock.advance(10_000)
    expect(a.lastCalls(2)).toEqual(['check', 'watch'])
    expect(a.calls.filter(({ what }) => what === 'list')).toHaveLength(1)
  })

  it('an API server that is busy is obeyed', async () => {
    await using a = aReflector()
    await a.clock.advance(60_000)
    a.goAway(rejection(429, 'TooManyRequests', 100))
    expect((await a.waitsFor(250_000)).slice(0, 3)).toEqual([800, 100_000, 100_000])
  })

  it('an API server that rejects is asked ever more slowly, up to half a minute', async () => {
    await using a = aReflector(() => 0.999)
    await a.clock.advance(60_000)
    a.goAway(rejection(403))
    expect((await a.waitsFor(120_000)).slice(0, 6)).toEqual([1_599, 3_198, 6_396, 12_793, 25_587, 29_985])
  })

  it.each([1, 2, 3])('a position that is too old is listed at once, in round %i of outages', async (rounds) => {
    await using a = aReflector()
    for (let round = 1; round <= rounds; round += 1) {
      await a.clock.advance(1_000)
      a.goAway()
      await a.clock.advance(40_000)
      a.faults.list = null
      a.faults.watch = EXPIRED
      const [waitMs] = await a.waitsFor(1_999)
      expect(waitMs).toBeLessThan(2_000)
      // One that stays too old is not asked without a pause.
      expect(a.lastCalls(4)).toEqual(['check', 'watch', 'list', 'watch'])
      const times = a.calls.slice(-4).map(({ at }) => at)
      expect(new Set(times).size).toBe(1)
      a.faults.watch = null
      await a.clock.advance(2_000)
    }
    // Only what follows is a problem: each time that it stays too old.
    expect(a.problems.filter((problem) => problem === '410')).toHaveLength(rounds)
  })

  it('a position that is too old right after a check is listed at once, without an outage too', async () => {
    await using a = aReflector()
    await a.clock.advance(1_000)
    a.breakWatch()
    a.faults.watch = EXPIRED
    await a.clock.advance(800)
    expect(a.lastCalls(4)).toEqual(['check', 'watch', 'list', 'watch'])
  })

  it('rejections while it starts have a back-off of their own, from its beginning', async () => {
    await using a = aReflector()
    await a.clock.advance(60_000)
    a.goAway()
    await a.clock.advance(60_000)
    a.faults.list = rejection(403)
    const waits = await a.waitsFor(10_000)
    // The first is what was left of the wait before.
    expect(waits.slice(1, 4)).toEqual([800, 1_600, 3_200])
  })

  it('a list that is successful ends the back-off of lists that were rejected', async () => {
    await using a = aReflector()
    a.faults.list = rejection(403)
    await a.clock.advance(60_000)
    a.faults.list = null
    await a.clock.advance(15_000)
    expect(a.lastCalls(1)).toEqual(['watch'])
    a.breakWatch(rejection(500))
    expect(await a.waitsFor(1_000)).toEqual([800, 0])
  })

  it('a successful check does not shorten the back-off of watches that fail again and again', async () => {
    await using a = aReflector()
    await a.clock.advance(60_000)
    a.faults.watch = rejection(429)
    a.breakWatch()
    const waits = (await a.waitsFor(60_000)).filter((ms) => ms > 0)
    expect(waits.slice(0, 6)).toEqual([800, 1_600, 3_200, 6_400, 12_800, 15_000])
  })
})
