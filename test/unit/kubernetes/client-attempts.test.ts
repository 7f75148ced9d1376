/** How often, how late and how long a call is tried. */

import { describe, expect, it } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import type { ManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/until.ts'
import {
  A,
  aConfigMap,
  anyRequest,
  client,
  clock,
  failureOf,
  readWatch,
  server,
  store,
  useFakeServer,
} from './calling.ts'
import { throughPauses, untilDone } from './until-done.ts'

useFakeServer()

describe('another attempt', () => {
  const attempts = (method: string) => server.requests.filter((request) => request.method === method).length

  it.each([['reset' as const], ['break' as const], [{ status: 500 }], [{ status: 503 }], [{ status: 429 }]])(
    'is made for a read after %j',
    async (how) => {
      store('a')
      server.disturb(anyRequest, how, 3)
      const found = await untilDone(clock, client.get(CONFIG_MAPS, A))
      expect(found.metadata.name).toBe('a')
      expect(attempts('GET')).toBe(4)
    },
  )

  it('is not the fifth', async () => {
    server.disturb(anyRequest, { status: 500, message: 'etcd has no leader' }, Number.POSITIVE_INFINITY)
    const error = await untilDone(clock, failureOf(client.list(CONFIG_MAPS, { limit: 5 })))
    expect(error).toMatchObject({ status: 500, message: 'etcd has no leader' })
    expect(attempts('GET')).toBe(4)
  })

  it('is made ever later', async () => {
    const sleeps: number[] = []
    const noted: ManualClock = {
      ...clock,
      sleep(ms, signal) {
        if (ms < 30_000) sleeps.push(ms)
        return clock.sleep(ms, signal)
      },
    }
    const own = createClient({ connection: server.connection, clock: noted, random: () => 0.5 })
    server.disturb(anyRequest, { status: 500 }, 4)
    await untilDone(clock, failureOf(own.get(CONFIG_MAPS, A)))
    expect(sleeps).toEqual([300, 600, 1_200])
    await own.close()
  })

  it.each([['reset' as const], ['break' as const], [{ status: 500 }], [{ status: 503 }]])(
    'is not made for a write after %j, which may have happened',
    async (how) => {
      server.disturb(anyRequest, how)
      expect(await untilDone(clock, failureOf(client.create(CONFIG_MAPS, aConfigMap('a'))))).toBeInstanceOf(Error)
      expect(attempts('POST')).toBe(1)
    },
  )

  it('is made for a write that was not let in, no sooner than asked', async () => {
    server.disturb(anyRequest, { status: 429, headers: { 'retry-after': '7' } })
    const from = clock.now()
    await untilDone(clock, client.create(CONFIG_MAPS, aConfigMap('a')))
    expect(attempts('POST')).toBe(2)
    expect(clock.now() - from).toBe(7_000)
  })

  it('is made after four seconds at most when a proxy asks for more: it does not know when the API server is back', async () => {
    server.disturb(anyRequest, { status: 503, headers: { 'retry-after': '20' } })
    const from = clock.now()
    await untilDone(clock, client.list(CONFIG_MAPS))
    expect([attempts('GET'), clock.now() - from]).toEqual([2, 4_000])
  })

  it('is not waited for when it would come too late', async () => {
    server.disturb(anyRequest, { status: 429, headers: { 'retry-after': '60' } })
    const error = await failureOf(client.get(CONFIG_MAPS, A))
    expect(error).toMatchObject({ status: 429, reason: 'TooManyRequests', retryAfterSeconds: 60 })
    expect(attempts('GET')).toBe(1)
  })
})

describe('the time limit', () => {
  it('the time limit ends a call without a response', async () => {
    server.disturb(anyRequest, 'hang', 2)
    const usual = failureOf(client.get(CONFIG_MAPS, A))
    const short = failureOf(client.create(CONFIG_MAPS, aConfigMap('a'), { timeoutMs: 5_000 }))
    await eventually('two requests have arrived', () => server.requests.length === 2)
    await clock.advance(5_000)
    expect((await short).message).toBe('create configmaps shop/a: no response within 5 s')
    await clock.advance(25_000)
    expect((await usual).message).toBe('get configmaps shop/a: no response within 30 s')
    expect(await usual).toBeInstanceOf(TransportError)
  })

  it('counts all attempts together', async () => {
    server.disturb(anyRequest, { status: 500 }, 2)
    server.disturb(anyRequest, 'hang')
    const from = clock.now()
    const call = failureOf(client.get(CONFIG_MAPS, A, { timeoutMs: 10_000 }))
    await throughPauses(clock, () => server.requests.length === 3)
    expect(clock.now() - from).toBe(900)
    await clock.advance(9_099)
    expect(clock.wakeTimes()).toHaveLength(1)
    await clock.advance(1)
    expect((await call).message).toMatch(/no response within 10 s/)
  })

  it('is for the beginning of a watch only', async () => {
    const stop = new AbortController()
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(readWatch({ signal: stop.signal }))
    await eventually('the request has arrived', () => server.requests.length === 1)
    await clock.advance(30_000)
    expect((await hanging).message).toBe('watch configmaps shop: no response within 30 s')
    const quiet = readWatch({ signal: stop.signal }, 1)
    await eventually('the watch is open', () => server.watches.length === 1)
    await clock.settle()
    await eventually('nothing sleeps', () => clock.wakeTimes().length === 0)
    await clock.advance(3_600_000)
    store('a')
    expect((await quiet)[0]).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } })
  })

  it('gives way to the signal of the caller, also in the pause between two attempts', async () => {
    const stop = new AbortController()
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))
    await eventually('the request has arrived', () => server.requests.length === 1)
    server.disturb(anyRequest, { status: 500 })
    const pausing = failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))
    await eventually('three sleep', () => clock.wakeTimes().length === 3)
    const reason = new Error('stopped by the test')
    stop.abort(reason)
    expect(await hanging).toBe(reason)
    expect(await pausing).toBe(reason)
    expect(await failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))).toBe(reason)
    expect(clock.wakeTimes()).toEqual([])
  })
})
