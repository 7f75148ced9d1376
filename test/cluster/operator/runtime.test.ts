/** What the operator costs an API server and other tenants: owners of fields, turns of namespaces, Events that a namespace cannot take any more. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { cluster } from '../../support/cluster.ts'
import { testFieldManagers } from '../../support/field-managers.ts'
import { listen, readMetric, type Scene, startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { openWorkplace, type Workplace } from '../../support/workplace.ts'
import { INSTALLED, installRights, reach } from './stage.ts'

const scene = {} as Scene
const stack = new AsyncDisposableStack()
const { said, log } = listen()
beforeAll(async () => {
  const started = await startScene(await reach(cluster, await installRights()), { log }, INSTALLED)
  Object.assign(scene, stack.use(started))
})
afterAll(() => stack.disposeAsync())

testFieldManagers(scene, INSTALLED)

const isReady = ({ status }: HeartbeatCheck) =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false

it('F10: a single resource is Ready at once, though 150 of another namespace wait before it', async () => {
  await using first = await namespaceOf(scene)
  await using second = await namespaceOf(scene)
  // A new leader queues all resources in the order of their names.
  const [busy, quiet] = [first.place, second.place].toSorted((a, b) => (a.name < b.name ? -1 : 1)) as [
    Workplace,
    Workplace,
  ]
  await scene.operator().stop()
  const names = Array.from({ length: 150 }, (_, n) => `n${n}`)
  await Promise.all(names.map((name) => busy.apply(name)))
  await quiet.apply('single')
  await scene.restart()
  await quiet.ready('single')
  expect((await busy.list()).filter(isReady).length).toBeLessThan(75)
  await eventually('all are', async () => (await busy.list()).every(isReady))
})

it('F10: rejected Events of a namespace that is being deleted are dropped in silence', async () => {
  const { place } = await namespaceOf(scene)
  const path = `/api/v1/namespaces/${place.name}`
  const rejected = () => readMetric(scene.operator(), 'rest_client_requests_total', { method: 'POST', code: '403' })
  const before = await rejected()
  await Promise.all(Array.from({ length: 60 }, (_, n) => place.apply(`n${n}`)))
  await cluster.api('DELETE', path)
  await eventually('the namespace is gone', async () => (await cluster.api('GET', path)).status === 404)
  await eventually('some were rejected', async () => (await rejected()) > before)
  expect(said.filter((message) => message.startsWith('an Event could not be written'))).toEqual([])
})

it('F7: pings of 30 jobs at once are five status writes a second', async () => {
  await using pinged = await namespaceOf(scene)
  const { place } = pinged
  const names = Array.from({ length: 30 }, (_, n) => `n${n}`)
  await Promise.all(names.map((name) => place.makeReady(name)))
  const countShown = async () => (await place.list()).filter(({ status }) => status?.lastPingTime !== undefined).length
  const ofNamespace = 'select key from checks where kubernetes_namespace = $1'
  await scene.sql(`update check_states set last_ping_at = now() where check_key in (${ofNamespace})`, place.name)
  const from = performance.now()
  await eventually('ten are shown', async () => (await countShown()) >= 10)
  const shown = await countShown()
  expect(shown).toBeLessThanOrEqual(5 * ((performance.now() - from) / 1_000) + 1)
  await eventually('all are shown', async () => (await countShown()) === 30)
  expect(performance.now() - from).toBeGreaterThan(29 * 200)
})

/** A further namespace, which is removed at the end. */
async function namespaceOf({ cluster: { api, ...rest } }: Scene) {
  const place = await openWorkplace({ api, ...rest })
  const remove = () => api('DELETE', `/api/v1/namespaces/${place.name}`)
  return {
    place,
    async [Symbol.asyncDispose]() {
      await remove()
    },
  }
}
