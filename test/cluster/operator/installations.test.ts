/** F1 on a real API server: two installations with all rights of an installed controller, each with a database and a Lease of its own. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { cluster, type TestNamespace } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { connectionOf, readMetric, startTestOperator, type TestOperator } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { conditionOf, type Workplace, workIn } from '../../support/workplace.ts'
import { installRights, reach } from './stage.ts'

const FINALIZER = 'heartbeat-operator.io/cleanup'

let namespace: TestNamespace
let place: Workplace
let production: TestDatabase
let intruder: TestDatabase
let kubeconfig: string

beforeAll(async () => {
  ;[namespace, production, intruder, kubeconfig] = await Promise.all([
    cluster.makeNamespace(),
    createTestDatabase(),
    createTestDatabase(),
    installRights(),
  ])
  place = workIn(await reach(cluster), namespace.name)
})
afterAll(async () => {
  await namespace?.remove()
  await production?.close()
  await intruder?.close()
})

async function start(testDatabase: TestDatabase, takeOver: string | null = null): Promise<TestOperator> {
  const isProduction = testDatabase === production
  return startTestOperator({
    // The account of the chart holds the Lease of its own namespace; the other one is an admin's `npm start`.
    connection: await connectionOf(isProduction ? kubeconfig : cluster.kubeconfigPath),
    leaseNamespace: isProduction ? 'heartbeat-operator' : namespace.name,
    testDatabase,
    changes: {
      namespaces: [place.name],
      resyncMs: 1_000,
      takeOver,
      pingUrl: () => `http://${isProduction ? 'production' : 'intruder'}`,
    },
  })
}

const secrets = async () => Promise.all(['a', 'b', 'c'].map((name) => place.find('secrets', `${name}-heartbeat`)))
const conflicts = (operator: TestOperator) => readMetric(operator, 'heartbeat_installation_conflicts')

it('F1: a second installation takes no URL over, reports each resource, and takes over what an annotation names', async () => {
  await using first = await start(production)
  for (const name of ['a', 'b', 'c']) await place.apply(name)
  for (const name of ['a', 'b', 'c']) await place.ready(name)
  const published = await secrets()
  const owner = (await place.get('a')).status!.installation!

  {
    await using second = await start(intruder)
    await eventually('it counts each of them', async () => (await conflicts(second)) === 3)
    for (const name of ['a', 'b', 'c']) await place.event(name, 'ManagedElsewhere')
    await place.apply('later', { periodSeconds: 60 })
    await place.ready('later')
    // The owner has put its conditions back, and all Secrets are the very same objects.
    for (const name of ['a', 'b', 'c']) await place.ready(name)
    expect(await secrets()).toEqual(published)
    expect(
      (await intruder.database.query(`select from checks where kubernetes_name in ('a', 'b', 'c')`)).rowCount,
    ).toBe(0)

    await place.change('b', { metadata: { annotations: { 'heartbeat-operator.io/take-over': owner } } })
    await place.event('b', 'TakenOver')
    expect(await place.pingUrl('b')).toMatch(/^http:\/\/intruder\//)
    await eventually('the previous owner removes its check', async () => {
      const { rowCount } = await production.database.query(`select from tombstones where kubernetes_name = 'b'`)
      return rowCount === 1
    })
    expect(await place.pingUrl('b')).toMatch(/^http:\/\/intruder\//)
  }

  // With its owner gone for good, a resource that is deleted waits, and says why; TAKE_OVER finishes that as well.
  await first.stop()
  const idOfIntruder = (await place.get('b')).status!.installation!
  await cluster.api('DELETE', place.pathOf('c'))
  {
    await using third = await start(intruder)
    await eventually('c is reported', async () => {
      const object = await place.get('c')
      return conditionOf(object, 'Stalled')?.reason === 'ManagedElsewhere' && object
    })
    expect((await place.get('c')).metadata.finalizers).toEqual([FINALIZER])
    expect(await conflicts(third)).toBeGreaterThanOrEqual(2)
  }
  await using _last = await start(intruder, owner)
  await place.gone('c')
  await eventually('a is taken over', async () => (await place.get('a')).status?.installation === idOfIntruder)
  await place.ready('a')
  expect(await place.pingUrl('a')).toMatch(/^http:\/\/intruder\//)
})
