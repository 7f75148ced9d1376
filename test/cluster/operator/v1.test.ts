/** The API of v1 on a real API server, as a user sees it. The rules in detail: test/cluster/crd.test.ts, test/operator, test/unit/operator. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { targetNameOf } from '../../../src/operator/publish/long-names.ts'
import { cluster } from '../../support/cluster.ts'
import { type Scene, startScene } from '../../support/operator.ts'
import { urlIn, type Workplace } from '../../support/workplace.ts'
import { reach } from './stage.ts'

let scene: Scene
let place: Workplace
const lease = 'default'
const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)
const columns = async (...args: string[]) =>
  (await kubectl('get', 'hbc', ...args))
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/\s{2,}/))

beforeAll(async () => {
  scene = await startScene(await reach(cluster), {}, lease)
  place = scene.place
})
afterAll(() => scene?.[Symbol.asyncDispose]())

it('before v1: the grace time has no persisted default, and the status shows the one in use', async () => {
  const { spec, status } = await place.makeReady('minutely', { periodSeconds: 60 })
  expect(spec).not.toHaveProperty('graceSeconds')
  expect(status).toMatchObject({ periodSeconds: 60, cadence: 'every 1m', graceSeconds: 60 })
  expect(status).not.toHaveProperty('schedule')
  const nightly = await place.makeReady('nightly', { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' })
  expect(nightly.status).toMatchObject({
    schedule: '0 2 * * *',
    cadence: '0 2 * * *',
    timeZone: 'Europe/Berlin',
    graceSeconds: 3_600,
  })
  expect(nightly.status).not.toHaveProperty('periodSeconds')
  expect(nightly.status?.stateTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  expect(nightly.status).not.toHaveProperty('lastTransitionTime')
})

it('before v1: a change that is not in the service is not what kubectl shows as the schedule', async () => {
  await place.makeReady('edited', { schedule: '0 2 * * *' })
  await place.change('edited', { spec: { schedule: '99 2 * * *' } })
  await place.stalled('edited', 'InvalidSpec')
  const [, row] = await columns('edited')
  expect(row).toEqual(expect.arrayContaining(['False', '0 2 * * *']))
})

it('before v1: a name may have 253 characters', async () => {
  const name = 'n'.repeat(253)
  const { status } = await place.makeReady(name)
  const secret = (await place.find('secrets', targetNameOf(name)))!
  expect(status?.published?.name).toBe(targetNameOf(name))
  expect(secret.metadata.annotations).toMatchObject({ 'heartbeat-operator.io/check-name': name })
  expect(urlIn(secret)).toContain('/ping/')
  await place.event(name, 'Created')
  await place.delete(name)
  expect(await place.find('secrets', targetNameOf(name))).toBeNull()
  expect(
    (
      await cluster.api('POST', place.pathOf('').replace(/\/$/, ''), {
        apiVersion: 'heartbeat-operator.io/v1',
        kind: 'HeartbeatCheck',
        metadata: { name: 'n'.repeat(254) },
        spec: { periodSeconds: 60 },
      })
    ).status,
  ).toBe(422)
})

it('before v1: two flips within a second, while the leader changes, have one Event each, and the status has whole seconds', async () => {
  await place.makeReady('flips')
  const ping = async (kind: string) =>
    expect((await fetch(`${await place.pingUrl('flips')}${kind}`, { method: 'POST' })).status).toBe(200)
  await ping('')
  await place.event('flips', 'FirstSuccess')
  await scene.operator().stop()
  await ping('/fail')
  await ping('')
  // The next leader begins as if the one before had saved nothing.
  await scene.sql('delete from reported_flips')
  await scene.restart()
  await place.event('flips', 'Recovered')
  await scene.operator().stop()
  const flips = (await place.events('flips')).filter(({ reason }) => reason !== 'Created' && reason !== 'Updated')
  expect(flips.map(({ reason }) => reason).sort()).toEqual(['Failed', 'FirstSuccess', 'Recovered'])
  for (const flip of flips) expect(flip).not.toHaveProperty('series')
  await scene.restart()
  const { status } = await place.inState('flips', 'up')
  expect(status?.stateTime).toMatch(/:\d\dZ$/)
})
