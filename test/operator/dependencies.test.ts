/** `spec.dependsOn`: the names become the checks of their resources, as these come, go and name each other. */

import { expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

// No poll and no resync: what the watch reports has to lead to a reconcile.
const t = useScene({ pollMs: 600_000, resyncMs: 600_000 })
const PERIOD = { periodSeconds: 3_600 }

/** Waits until the condition is this one, and the names of the checks that are stored are these. */
async function resolved(name: string, condition: object | undefined, names: string[]) {
  await eventually(`${name} depends on ${names.join(', ') || 'none'}`, async () => {
    const shown = await t.place.condition(name, 'DependenciesResolved')
    const { depends_on } = await t.checkOf(name)
    const ids = await Promise.all(names.map(async (one) => (await t.checkOf(one)).id))
    expect({ status: shown?.status, reason: shown?.reason, message: shown?.message, depends_on }).toEqual({
      status: undefined,
      reason: undefined,
      message: undefined,
      ...condition,
      depends_on: ids,
    })
    return true
  })
}
const ALL = { status: 'True', reason: 'Resolved', message: 'the check depends on those of all names' }
const missing = (names: string) => ({
  status: 'False',
  reason: 'NotFound',
  message: `no HeartbeatCheck of this namespace with a check: ${names}`,
})
const ringed = (ring: string) => ({
  status: 'False',
  reason: 'Ring',
  message: `a ring is left out: ${ring}; take a name out of spec.dependsOn`,
})
const depend = (name: string, ...dependsOn: string[]) => t.place.change(name, { spec: { dependsOn } })

it('a name that does not exist yet is left out, and the check is Ready; once it does, it counts', async () => {
  await t.place.makeReady('backup', { ...PERIOD, dependsOn: ['network', 'database'] })
  await resolved('backup', missing('network, database'), [])
  await t.place.makeReady('database', PERIOD)
  await resolved('backup', missing('network'), ['database'])
  await t.place.makeReady('network', PERIOD)
  await resolved('backup', ALL, ['network', 'database'])
  await t.place.delete('network')
  await resolved('backup', missing('network'), ['database'])
  await t.place.makeReady('network', PERIOD)
  await resolved('backup', ALL, ['network', 'database'])
  await t.place.change('backup', { spec: { dependsOn: null } })
  await resolved('backup', undefined, [])
})

it('a ring is a condition of each member and is left out, until one gives its name up', async () => {
  for (const name of ['a', 'b', 'c', 'd']) await t.place.makeReady(name, PERIOD)
  await depend('d', 'a')
  await depend('a', 'b')
  await depend('b', 'c', 'database')
  await resolved('b', ALL, ['c', 'database'])
  await depend('c', 'a')
  await resolved('a', ringed('a -> b -> c -> a'), [])
  await resolved('b', ringed('b -> c -> a -> b'), ['database'])
  await resolved('c', ringed('c -> a -> b -> c'), [])
  // It leads to the ring, and is not a member.
  await resolved('d', ALL, ['a'])
  await depend('b', 'database')
  await resolved('a', ALL, ['b'])
  await resolved('b', ALL, ['database'])
  await resolved('c', ALL, ['a'])
  await depend('c', 'c')
  await resolved('c', ringed('c -> c'), [])
})

it('an edge that turns round is in effect once the other one is given up', async () => {
  for (const name of ['one', 'two']) await t.place.makeReady(name, PERIOD)
  await depend('one', 'two')
  await resolved('one', ALL, ['two'])
  await Promise.all([depend('two', 'one'), t.place.change('one', { spec: { dependsOn: null } })])
  await resolved('two', ALL, ['one'])
  await resolved('one', undefined, [])
})
