/** Two installations, that is two databases, that begin together: on one new resource, and on one Lease. */

import { describe, expect, it } from 'vitest'
import { listen } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conflicts, idOf, useTwoInstallations } from './two-installations.ts'

const { cluster, one, two, place, start, checkOf } = useTwoInstallations()

describe('a new resource that two installations watch', () => {
  it('belongs to the installation that writes its first status, which has its URL, and to no other', async () => {
    // No resync and no poll puts right what the first reconcile left.
    const unaided = { resyncMs: 600_000, pollMs: 600_000 }
    await using first = await start(one, unaided)
    await using second = await start(two, unaided)
    const [idOfOne, idOfTwo] = [await idOf(one), await idOf(two)]
    const names = Array.from({ length: 20 }, (_, index) => `race-${index}`)
    await Promise.all(names.map((name) => place.apply(name)))
    for (const name of names) {
      const { status } = await place.ready(name)
      expect([idOfOne, idOfTwo]).toContain(status?.installation)
      const [winner, loser] = status?.installation === idOfOne ? [one, two] : [two, one]
      expect(await place.pingUrl(name)).toMatch(winner === one ? /^http:\/\/one\// : /^http:\/\/two\//)
      await eventually(`${name} has one check`, async () => {
        const [ours, theirs] = [await checkOf(winner, name), await checkOf(loser, name)]
        return ours[0]?.startsWith('check') && !theirs.some((kept) => kept.startsWith('check'))
      })
    }
    expect((await conflicts(first)) + (await conflicts(second))).toBe(names.length)
  })
})

describe('one Lease for two installations', () => {
  it('one of them leads; the other one says in its log why it does not; the Lease names the leader', async () => {
    const shared = { leaseNamespace: place.name }
    const { said, log } = listen()
    await using first = await start(one, shared)
    await eventually('the first one leads', () => first.operator.isLeader())
    await using second = await start(two, { ...shared, log })
    await eventually('the second one says it', () =>
      said.some((line) => line.startsWith('another installation holds the Lease of this one')),
    )
    expect(second.operator.isLeader()).toBe(false)
    const lease = `/apis/coordination.k8s.io/v1/namespaces/${place.name}/leases/heartbeat-operator`
    const ownerOf = async () =>
      (await cluster.api('GET', lease)).body.metadata.annotations['heartbeat-operator.io/installation']
    expect(await ownerOf()).toBe(await idOf(one))
    await first.stop()
    await eventually('the second one leads', () => second.operator.isLeader())
    expect(await ownerOf()).toBe(await idOf(two))
  })
})
