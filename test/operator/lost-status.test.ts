/** A resource whose status is lost, by hand or by a restore without it: what it has, and who has it, stay. */

import { expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { createTestDatabase } from '../support/database.ts'
import { startTestOperator } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { callerOf, type Published } from '../support/workplace.ts'
import { useScene } from './scene.ts'
import { checksIn, idOf } from './two-installations.ts'

const NEVER = 3_600_000
const t = useScene({ resyncMs: NEVER })

async function wipe(name: string, place = t.place): Promise<void> {
  const { status: _, ...object } = await place.get(name)
  await callerOf(t.cluster)('PUT', `${place.pathOf(name)}/status`, object)
  await place.change(name, { metadata: { annotations: { 'example.com/restored': `${Date.now()}` } } })
}

/** What a person sees of a resource, but for times. */
async function seen(name: string, place = t.place) {
  const { status = {}, metadata } = await place.get(name)
  const { checkId, slug, state, published, installation, cadence } = status
  const [secret, configMap] = [
    await place.find('secrets', `${name}-heartbeat`),
    await place.find('configmaps', `${name}-heartbeat`),
  ]
  const events = (await place.events(name)).map(({ reason }) => reason).sort()
  const { finalizers } = metadata
  return { checkId, slug, state, published, installation, cadence, finalizers, secret, configMap, events }
}

it.each([
  ['a Secret', { periodSeconds: 3_600 }, {}],
  ['a ConfigMap', { schedule: '0 2 * * *', publish: { kind: 'ConfigMap' } }, {}],
  ['nothing', { periodSeconds: 3_600, publish: { kind: 'None' } }, {}],
  ['what it retains', { periodSeconds: 3_600, deletionPolicy: 'Retain' }, {}],
])('a resource that publishes %s has the same check, and nothing else is written', async (what, spec, metadata) => {
  const name = what.replaceAll(/\W+/g, '-').toLowerCase()
  await t.place.makeReady(name, spec, metadata)
  await t.place.event(name, 'Created')
  const before = await seen(name)
  for (const stopsFirst of [false, true]) {
    if (stopsFirst) await t.operator().stop()
    await wipe(name)
    if (stopsFirst) await t.restart()
    await t.place.ready(name)
    expect(await seen(name)).toEqual(before)
  }
})

it('a resource that is restored with its Secret, and without its status, has its check and its URL', async () => {
  const { metadata } = await t.place.makeReady('restored')
  const before = await seen('restored')
  const url = await t.place.pingUrl('restored')
  await t.operator().stop()
  await t.place.forceAway('restored')
  await eventually(
    'its Secret is collected',
    async () => (await t.place.find('secrets', 'restored-heartbeat')) === null,
  )
  const { uid: _, resourceVersion: __, managedFields: ___, ...kept } = (before.secret as Published).metadata
  await t.place.put('secrets', { metadata: kept, data: before.secret!.data })
  await t.place.apply('restored', { periodSeconds: 3_600 }, { finalizers: metadata.finalizers })
  await t.restart()
  const after = await t.place.ready('restored')
  expect(after.metadata.uid).not.toBe(metadata.uid)
  expect(after.status).toMatchObject({ checkId: before.checkId, installation: before.installation })
  expect(await t.place.pingUrl('restored')).toBe(url)
})

it('a resource stays of its installation beside another one that sees it', async () => {
  await using stack = new AsyncDisposableStack()
  const theirs = await createTestDatabase()
  stack.defer(theirs.close)
  const start = () =>
    startTestOperator({
      connection: t.cluster.connection,
      testDatabase: theirs,
      leaseNamespace: `${t.place.name}-theirs`,
      changes: { namespaces: [t.place.name], pingUrl: () => 'http://theirs', pollMs: 100, resyncMs: 300 },
    })
  await t.place.makeReady('ours')
  stack.use(await start())
  await t.place.event('ours', 'ManagedElsewhere')
  const { checkId } = await seen('ours')
  const url = await t.place.pingUrl('ours')
  for (let turn = 1; turn <= 5; turn += 1) {
    await wipe('ours')
    const isOurs = ({ status }: HeartbeatCheck) => status?.checkId === checkId && status?.published !== undefined
    await eventually('it is ours', async () => isOurs(await t.place.get('ours')))
    expect((await t.place.get('ours')).status?.installation).toBe(await idOf(t.testDatabase))
    expect(await t.place.pingUrl('ours')).toBe(url)
  }
  // Nor does the other one take it while this one has no leader.
  await t.operator().stop()
  await wipe('ours')
  await t.place.makeReady('later')
  expect((await t.place.get('ours')).status).toBeUndefined()
  await t.restart()
  expect((await t.place.ready('ours')).status).toMatchObject({ checkId, installation: await idOf(t.testDatabase) })
  expect(await t.place.pingUrl('ours')).toBe(url)
  expect((await checksIn(t.place, theirs, 'ours')).filter((one) => one.startsWith('check '))).toEqual([])
})
