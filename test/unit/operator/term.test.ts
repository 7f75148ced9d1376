import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { openTerm, type Shared } from '../../../src/operator/term.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** A term whose client never responds. */
function open() {
  const clock = createManualClock()
  const silent = () => new Promise<never>(() => {})
  const client = { get: silent } as Partial<KubernetesClient> as KubernetesClient
  const shared = { clock, random: Math.random } as Partial<Shared> as Shared
  const lease = new AbortController()
  const claims = { installation: 'ours', takenOver: new Set<string>() } as never
  return { clock, lease, ...openTerm(shared, { client, signal: lease.signal, claims, clusterUid: () => null }) }
}

const read = (client: KubernetesClient) =>
  client.get({ group: '', version: 'v1', plural: 'secrets' }, { namespace: 'shop', name: 'a' }).catch(String)

describe('a term', () => {
  it('stops its controllers all together, and gives each the same time', async () => {
    const { close } = open()
    const stopped: string[] = []
    const both = Promise.withResolvers<void>()
    const part = (name: string) => ({
      async stop(drainMs: number) {
        stopped.push(`${name} ${drainMs}`)
        if (stopped.length === 2) both.resolve()
        await both.promise
      },
    })
    await close([part('checks'), part('runs')], 500)
    expect(stopped).toEqual(['checks 500', 'runs 500'])
  })

  it('ends the calls of a controller that takes longer, and no call before', async () => {
    const { term, close, clock, lease } = open()
    let outcome: string | undefined
    const call = read(term.client).then((text) => {
      outcome = String(text)
    })
    lease.abort()
    const closing = close([{ stop: () => call }], 500)
    await clock.advance(499)
    expect(outcome).toBeUndefined()
    await clock.advance(1)
    await closing
    expect(outcome).toBe('Error: the term as leader has ended')
  })

  it('ends the rest of its calls when all controllers have stopped', async () => {
    const { term, close } = open()
    const call = read(term.client)
    await close([{ stop: () => Promise.resolve() }], 500)
    expect(await call).toBe('Error: the term as leader has ended')
  })
})
