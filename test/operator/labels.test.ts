/** The labels of a HeartbeatCheck become those of its check (design, section 6). Nothing here is seen by a resync or a poll: only by the watch. */

import { expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

const t = useScene({ pollMs: 600_000, resyncMs: 600_000 })

/** Before any resync or poll: these are ten minutes away. */
const inTime = (name: string, labels: object) =>
  eventually(
    `${name} has ${JSON.stringify(labels)}`,
    async () => JSON.stringify((await t.checkOf(name)).labels) === JSON.stringify(labels),
  )
const manyLabels = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`label-${10 + index}`, `${index}`]))
const droppedOf = async (name: string) =>
  (await t.place.events(name)).filter(({ reason }) => reason === 'LabelsDropped').map(({ note }) => note)

it('F9: they do at once, and so does each change of them, without a new generation', async () => {
  const labels = { 'app.kubernetes.io/part-of': 'web', team: 'shop' }
  const { metadata } = await t.place.makeReady('nightly', undefined, { labels })
  expect(await t.checkOf('nightly')).toMatchObject({ labels, tags: [] })

  const { metadata: changed } = await t.place.change('nightly', {
    metadata: { labels: { team: 'payments', tier: 'gold' } },
  })
  expect(changed.generation).toBe(metadata.generation)
  await inTime('nightly', { ...labels, team: 'payments', tier: 'gold' })
  await t.place.change('nightly', { metadata: { labels: null } })
  await inTime('nightly', {})
  const { body } = await t.app.call('GET', `/audit?target_id=${(await t.checkOf('nightly')).id}`)
  expect(body.entries[0]).toMatchObject({ action: 'check.changed', detail: { changed: ['labels'] } })
})

it('F9: of more than 32 the first by name do, with a Warning that the next leader does not repeat', async () => {
  await t.place.makeReady('many', undefined, { labels: manyLabels(33) })
  expect(await t.checkOf('many')).toMatchObject({ labels: manyLabels(32) })
  const { type, note } = await t.place.event('many', 'LabelsDropped')
  expect({ type, note }).toMatchObject({ type: 'Warning', note: expect.stringContaining('lacks label-42:') })

  await t.restart()
  // The new leader writes its Events in their order: what it has repeated is there before this one.
  await t.place.makeReady('last', undefined, { labels: manyLabels(34) })
  await t.place.event('last', 'LabelsDropped')
  await eventually('the new leader has synced both', async () => (await syncs()) >= 2)
  expect(await droppedOf('many')).toEqual([note])

  await t.place.change('many', { metadata: { labels: { 'label-42': null, 'label-11': 'other' } } })
  await inTime('many', { ...manyLabels(32), 'label-11': 'other' })
  expect(await droppedOf('many')).toEqual([note])
})

const syncs = async () => {
  const { values } = await t.operator().metrics.operator.publishes.get()
  return values.find(({ labels }) => labels.result === 'unchanged')?.value ?? 0
}
