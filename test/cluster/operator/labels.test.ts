/** F9 on a real API server: what kubectl does to the labels of a HeartbeatCheck. */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { INSTALLED, installRights, reach } from './stage.ts'

it('F9: labels of a HeartbeatCheck are those of its check at once, and in its events', async () => {
  // A resync or a poll would hide what the watch misses.
  const seldom = { pollMs: 600_000, resyncMs: 600_000 }
  await using scene = await startScene(await reach(cluster, await installRights()), seldom, INSTALLED)
  const { place, app } = scene
  const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)
  const labelsOf = async (name: string) => {
    const { status } = await place.get(name)
    return (await app.call('GET', `/checks/${status!.checkId}`)).body.labels
  }
  const many = Object.fromEntries(Array.from({ length: 34 }, (_, index) => [`label-${10 + index}`, '']))
  await Promise.all([
    place.makeReady('backup', undefined, { labels: { team: 'shop', 'example.com/A_b': '' } }),
    place.makeReady('many', undefined, { labels: many }),
  ])
  expect(await labelsOf('backup')).toEqual({ team: 'shop', 'example.com/A_b': '' })
  expect(Object.keys(await labelsOf('many'))).toEqual(Object.keys(many).slice(0, 32))
  expect((await place.event('many', 'LabelsDropped')).note).toContain('lacks label-42, label-43:')

  const { generation } = (await place.get('backup')).metadata
  await kubectl('label', 'hbc', 'backup', 'team=payments', '--overwrite')
  await eventually('the check follows', async () => (await labelsOf('backup')).team === 'payments')
  expect((await place.get('backup')).metadata.generation).toBe(generation)

  await fetch(`${await place.pingUrl('backup')}/fail`)
  const { rows } = await scene.sql("select subject->'labels' as labels from events where type = 'check.down'")
  expect(rows).toEqual([{ labels: { team: 'payments', 'example.com/A_b': '' } }])
})
