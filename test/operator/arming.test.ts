/** F10: nothing is expected of a job before its ping URL is published (design, section 6, "Publishing"). */

import { expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

const t = useScene()

const HOURLY = { periodSeconds: 3_600 }
const adopt = { metadata: { annotations: { 'heartbeat-operator.io/adopt': 'true' } } }

/** A Secret that is not ours, where the check wants its URL. */
async function occupy(name: string): Promise<void> {
  await t.place.put('secrets', { metadata: { name: `${name}-heartbeat` } })
}

/** A HeartbeatCheck whose URL has no place. */
async function applyBlocked(name: string, spec?: object): Promise<void> {
  await occupy(name)
  await t.place.apply(name, spec)
  await t.place.stalled(name, 'TargetNotOwned')
}

/** Gives it that place. */
async function free(name: string): Promise<void> {
  await t.place.patch('secrets', `${name}-heartbeat`, adopt)
  await t.place.ready(name)
}

it('F10: a check that cannot be published is not armed, and is armed when it can be', async () => {
  await applyBlocked('blocked')
  expect(await t.checkOf('blocked')).toMatchObject({ status: 'new', due_at: null, expected_at: null })
  expect((await t.place.condition('blocked', 'Up'))?.message).toContain('nothing is expected before its ping URL is')
  const created = (await t.place.event('blocked', 'Created')).note
  expect(created).toBe('the service watches over the job, as soon as its ping URL is published')
  await free('blocked')
  expect(await t.checkOf('blocked')).toMatchObject({ status: 'new', due_at: expect.any(String) })
  expect((await t.place.condition('blocked', 'Up'))?.message).toContain('it counts as missed at')
})

it('stays unarmed however often it is tried, also with a changed spec and by another leader', async () => {
  await applyBlocked('changed')
  await t.place.change('changed', { spec: { periodSeconds: 60, graceSeconds: 60 } })
  await t.place.stalled('changed', 'TargetNotOwned')
  expect(await t.checkOf('changed')).toMatchObject({ period_seconds: 60, due_at: null })
  await t.restart()
  const requests = { 'heartbeat-operator.io/reconcile-requested-at': 'now' }
  await t.place.change('changed', { metadata: { annotations: requests } })
  await eventually('it was tried again', async () => (await t.place.get('changed')).status?.lastHandledReconcileTime)
  expect(await t.checkOf('changed')).toMatchObject({ due_at: null })
})

it('is not armed while the API server rejects the Secret, and is when it takes it', async () => {
  const isSecret = ({ path }: { path: string }) => path.includes('/secrets')
  const end = t.cluster.server.disturb(isSecret, { status: 500 }, 1_000)
  await t.place.apply('later')
  await eventually('it is tried again', () => t.place.condition('later', 'Reconciling'))
  const { rows } = await t.sql(
    'select s.due_at from check_states s join checks c on c.key = s.check_key where c.kubernetes_name = $1',
    'later',
  )
  expect(rows).toEqual([{ due_at: null }])
  end()
  await t.place.ready('later')
  expect(await t.checkOf('later')).toMatchObject({ due_at: expect.any(String) })
})

it('one that was published stays armed when its next target is occupied: its job has the URL', async () => {
  await t.place.makeReady('stays')
  const { due_at } = await t.checkOf('stays')
  await t.place.put('secrets', { metadata: { name: 'occupied' } })
  await t.place.change('stays', { spec: { publish: { name: 'occupied' } } })
  await t.place.stalled('stays', 'TargetNotOwned')
  expect(await t.checkOf('stays')).toMatchObject({ due_at })
})

it('one that was made through the API, armed, stays armed when a resource adopts it: its job has the URL', async () => {
  // The first resource of a Namespace makes its project.
  await t.place.apply('first')
  await t.place.ready('first')
  const { projects } = (await t.app.call('GET', '/projects')).body
  const own = projects.find(({ slug }: { slug: string }) => slug === t.place.name)
  const { id } = await t.app.createCheck({ project_id: own.id, armed: true })
  const { due_at } = (await t.app.call('GET', `/checks/${id}`)).body
  expect(due_at).not.toBeNull()
  await occupy('adopter')
  await t.place.apply('adopter', HOURLY, { annotations: { 'heartbeat-operator.io/adopt-check-id': id } })
  await t.place.stalled('adopter', 'TargetNotOwned')
  expect(await t.checkOf('adopter')).toMatchObject({ id, due_at: expect.any(String) })
})
