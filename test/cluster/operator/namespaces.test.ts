/** A namespace that is deleted with our objects in it: what the namespace controller of a real cluster does with them. */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { INSTALLED, installRights, reach } from './stage.ts'

it('ends with the checks that are not retained; applied again, its resources have their checks and URLs back', async () => {
  await using scene = await startScene(await reach(cluster, await installRights()), {}, INSTALLED)
  const { place } = scene
  await Promise.all(['a', 'b'].map((name) => place.makeReady(name)))
  await place.makeReady('kept', { periodSeconds: 3_600, deletionPolicy: 'Retain', suspend: true })
  const url = await place.pingUrl('a')
  const path = `/api/v1/namespaces/${place.name}`
  const ping = async () => (await fetch(url)).status

  await cluster.api('DELETE', path)
  // It takes nothing new, which operator/publish/publish.ts recognizes by this cause.
  expect(await cluster.api('POST', `${path}/secrets`, { metadata: { name: 'late' } })).toMatchObject({
    status: 403,
    body: { details: { causes: [{ reason: 'NamespaceTerminating' }] } },
  })
  await eventually('the namespace is gone', async () => (await cluster.api('GET', path)).status === 404)
  const { rows } = await scene.sql("select slug, managed_by from checks where slug in ('a', 'b', 'kept')")
  expect(rows).toEqual([{ slug: 'kept', managed_by: 'api' }])
  expect(await ping()).toBe(404)

  await cluster.api('POST', '/api/v1/namespaces', { metadata: { name: place.name } })
  await place.makeReady('a')
  expect(await place.pingUrl('a')).toBe(url)
  expect(await ping()).toBe(200)
  await Promise.all([place.delete('a'), cluster.api('DELETE', path)])
})
