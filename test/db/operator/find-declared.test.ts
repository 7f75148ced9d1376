import { describe, expect, it } from 'vitest'
import { registerCluster } from '../../../src/checks/declare/register-cluster.ts'
import { listDeclaredStates } from '../../../src/store/checks/declared-checks.ts'
import { HOUR } from '../../support/builders.ts'
import { addCheck, NOW } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const at = (namespace: string, name: string, cluster = 'default') => ({ cluster, namespace, name })

describe('the resources that declare a check', () => {
  it('are listed once each, only those of this cluster, and none that is gone or detached', async () => {
    const declared = [at('a', 'z'), at('b', 'a'), at('b', 'a-b'), at('b', 'a.b'), at('b', 'c'), at('b-c', 'a')]
    for (const resource of declared) await t.declare({ resource })
    await t.declare({ resource: at('b', 'b', 'other') })
    await addCheck(t, t.tenant)
    await t.declare({ resource: at('b', 'gone') })
    await t.retire('Delete', at('b', 'gone'))
    await t.declare({ resource: at('b', 'released') })
    await t.retire('Retain', at('b', 'released'))

    const seen = (await listDeclaredStates(t.database, 'default')).map(({ namespace, name }) => at(namespace, name))
    const text = (resources: readonly object[]) => resources.map((resource) => JSON.stringify(resource)).sort()
    expect(text(seen)).toEqual(text(declared))
    expect(await listDeclaredStates(t.database, 'nowhere')).toEqual([])
  })
})

describe('the states of declared checks', () => {
  it('are those of the cluster, all of them', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'fail', NOW + 5)
    await t.declare({ resource: at('a', 'new') })
    await t.declare({ resource: at('a', 'b', 'other') })
    await addCheck(t, t.tenant)
    const states = await listDeclaredStates(t.database, 'default')
    expect(states.sort((one, other) => (one.name < other.name ? -1 : 1))).toEqual([
      {
        namespace: 'a',
        name: 'new',
        status: 'new',
        since: NOW,
        lastPingAt: null,
        expectedAt: NOW + HOUR,
        lastRun: null,
      },
      { ...withoutCluster(), status: 'down', since: NOW + 5, lastPingAt: NOW + 5, expectedAt: null, lastRun: null },
    ])
  })

  const withoutCluster = () => ({ namespace: RESOURCE.namespace, name: RESOURCE.name })
})

describe('the name of a cluster', () => {
  const claim = (uid: string, holderSeconds = 60, cluster = 'default') =>
    registerCluster(t.context, { cluster, uid, holderSeconds })
  const age = (seconds: number) =>
    t.database.query(`update clusters set seen_at = clock_timestamp() - $1 * interval '1 second'`, [seconds])

  it('is the first one’s, and stays with it', async () => {
    expect(await claim('one')).toEqual({ kind: 'held' })
    expect(await claim('two')).toEqual({ kind: 'taken', uid: 'one', seenSecondsAgo: expect.any(Number) })
    expect(await claim('one')).toEqual({ kind: 'held' })
    expect(await claim('two', 60, 'eu-1')).toEqual({ kind: 'held' })
  })

  it('is kept by claiming it again', async () => {
    await claim('one')
    await age(50)
    const taken = await claim('two')
    expect(taken).toMatchObject({ kind: 'taken', uid: 'one' })
    expect(taken).toHaveProperty(
      'seenSecondsAgo',
      expect.toSatisfy((seconds: number) => seconds >= 50 && seconds < 60),
    )
    await claim('one')
    await age(0)
    expect(await claim('two')).toMatchObject({ kind: 'taken' })
  })

  it('goes over when its holder was not heard of for long enough: the cluster was rebuilt', async () => {
    await claim('one')
    await age(61)
    expect(await claim('two')).toEqual({ kind: 'held' })
    expect(await claim('one')).toMatchObject({ kind: 'taken', uid: 'two' })
  })

  it('is one cluster’s when several claim it at once', async () => {
    const uids = Array.from({ length: 8 }, (_, place) => `uid-${place}`)
    const claims = await Promise.all(uids.map((uid) => claim(uid)))
    expect(claims.filter(({ kind }) => kind === 'held')).toHaveLength(1)
    const holder = uids[claims.findIndex(({ kind }) => kind === 'held')]
    for (const taken of claims) if (taken.kind === 'taken') expect(taken.uid).toBe(holder)
  })
})
