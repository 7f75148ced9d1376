/** What goes over which connection, and what becomes of a watch when its connection breaks. */

import { describe, expect, it } from 'vitest'
import { confirmPosition } from '../../../src/kubernetes/confirm.ts'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { eventually } from '../../support/until.ts'
import { aConfigMap, anyRequest, client, clock, failureOf, readWatch, server, store, useFakeServer } from './calling.ts'

useFakeServer()

interface Client {
  confirm(): Promise<unknown>
  list(options: object): Promise<unknown>
}

describe('sockets', () => {
  it('sockets are kept: 300 sequential requests use two, and 300 concurrent ones at most three', async () => {
    // Two, since undici gives a socket free only a turn after its answer.
    for (let n = 0; n < 300; n += 1) await client.list(CONFIG_MAPS, { limit: 1 })
    expect(server.connections().accepted).toBeLessThanOrEqual(2)
    await Promise.all(Array.from({ length: 300 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    expect(server.connections().accepted).toBe(3)
    expect(server.requests).toHaveLength(600)
  })

  it('all sockets are replaced when one of them gave no response in time', async () => {
    await Promise.all(Array.from({ length: 3 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    expect(server.connections()).toEqual({ accepted: 3, open: 3 })
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(client.list(CONFIG_MAPS, { limit: 1 }))
    await eventually('four requests have arrived', () => server.requests.length === 4)
    await clock.advance(30_000)
    expect((await hanging).message).toMatch(/no response within 30 s/)
    await eventually('no socket is open', () => server.connections().open === 0)
    await client.list(CONFIG_MAPS, { limit: 1 })
    expect(server.connections()).toEqual({ accepted: 4, open: 1 })
  })

  it.each<[string, (a: Client) => Promise<unknown>, number]>([
    ['a confirmation', (a) => a.confirm(), 5_000],
    ['a request that risks its own connection only', (a) => a.list({ timeoutMs: 3_000, keepsOthers: true }), 3_000],
  ])('are kept, but for its own, when %s gave no response in time', async (_, ask, limitMs) => {
    const { signal } = new AbortController()
    const list = (options: object = {}) => failureOf(client.list(CONFIG_MAPS, { limit: 1, ...options }))
    const onMoved = () => () => {}
    const confirm = () =>
      confirmPosition({ client, type: CONFIG_MAPS, where: {}, position: () => '1', onMoved, clock, signal })
    await Promise.all(Array.from({ length: 3 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    const watch = failureOf(readWatch({ signal: AbortSignal.timeout(20_000) }))
    await eventually('the watch is open', () => server.watches.length === 1)
    expect(server.connections()).toEqual({ accepted: 4, open: 4 })
    server.disturb(anyRequest, 'hang')
    const asking = ask({ confirm, list })
    await eventually('five requests have arrived', () => server.requests.length === 5)
    await clock.advance(limitMs)
    await asking
    await eventually('three sockets are open', () => server.connections().open === 3)
    await Promise.all(Array.from({ length: 3 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    expect(server.connections()).toEqual({ accepted: 5, open: 4 })
    await client.close()
    await watch
  })

  it('are kept when a caller gives up', async () => {
    await Promise.all(Array.from({ length: 3 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    const stop = new AbortController()
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(client.list(CONFIG_MAPS, { limit: 1, signal: stop.signal }))
    await eventually('four requests have arrived', () => server.requests.length === 4)
    stop.abort()
    await hanging
    await eventually('two sockets are open', () => server.connections().open === 2)
    await Promise.all(Array.from({ length: 3 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    expect(server.connections()).toEqual({ accepted: 4, open: 3 })
  })

  it('each watch has a socket of its own, which the next watch reuses', async () => {
    const stop = new AbortController()
    const watches = [1, 2, 3].map(() => readWatch({ signal: stop.signal }))
    await eventually('three watches are open', () => server.watches.length === 3)
    await client.list(CONFIG_MAPS, { limit: 1 })
    expect(server.connections()).toEqual({ accepted: 4, open: 4 })
    for (const watch of server.watches) watch.end()
    await Promise.all(watches)
    const again = readWatch({ signal: stop.signal })
    await eventually('the watch is open', () => server.watches.length === 1)
    expect(server.connections().accepted).toBe(4)
    stop.abort()
    await failureOf(again)
  })

  it('the socket of a stopped watch is closed', async () => {
    store('a')
    await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    await eventually('no socket is open', () => server.connections().open === 0)
    const stop = new AbortController()
    const watch = failureOf(readWatch({ signal: stop.signal }))
    await eventually('the watch is open', () => server.watches.length === 1)
    stop.abort(new Error('stopped by the test'))
    expect((await watch).message).toBe('stopped by the test')
    await eventually('no socket is open', () => server.connections().open === 0)
  })

  it('all close with the client, and what is on its way ends', async () => {
    const watch = failureOf(readWatch({ signal: new AbortController().signal }))
    await eventually('the watch is open', () => server.watches.length === 1)
    server.disturb(anyRequest, 'hang')
    const call = failureOf(client.create(CONFIG_MAPS, aConfigMap('a')))
    await eventually('two requests have arrived', () => server.requests.length === 2)
    await client.close()
    expect(await watch).toBeInstanceOf(TransportError)
    expect(await call).toBeInstanceOf(TransportError)
    expect((await failureOf(client.create(CONFIG_MAPS, aConfigMap('b')))).message).toContain('the client is closed')
    await eventually('no socket is open', () => server.connections().open === 0)
  })
})

describe('a watch', () => {
  it('a watch reports contact at its head and at every chunk', async () => {
    const stop = new AbortController()
    let contacts = 0
    const onContact = () => {
      contacts += 1
    }
    const options = { resourceVersion: '100', timeoutSeconds: 300, signal: stop.signal, onContact }
    const watch = failureOf(Array.fromAsync(client.watch(CONFIG_MAPS, options)))
    await eventually('the watch is open, with one contact', () => server.watches.length === 1 && contacts === 1)
    server.watches[0]!.bookmark()
    await eventually('the second contact', () => contacts === 2)
    stop.abort()
    await watch
  })

  it('that is reset in the middle of a line fails after what came whole', async () => {
    store('a')
    const seen: string[] = []
    const options = { resourceVersion: '100', timeoutSeconds: 300, signal: AbortSignal.timeout(10_000) }
    const reading = failureOf(
      (async () => {
        for await (const { object } of client.watch(CONFIG_MAPS, options)) seen.push(object.metadata.name)
      })(),
    )
    await eventually('the request has arrived', () => seen.length === 1)
    server.watches[0]!.send('{"type":"ADD')
    server.watches[0]!.reset()
    expect(await reading).toBeInstanceOf(TransportError)
    expect(seen).toEqual(['a'])
  })

  it('a rejected watch fails with the rejection, and is not retried', async () => {
    server.disturb(anyRequest, { status: 403, reason: 'Forbidden', message: 'configmaps is forbidden' })
    const error = await failureOf(readWatch({ signal: AbortSignal.timeout(10_000) }))
    expect(error).toMatchObject({ status: 403, message: 'configmaps is forbidden' })
    expect(server.requests).toHaveLength(1)
  })
})
