/** F4: the admission policy lets everything through that the operator does, in each way that it may come to an object. */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { INSTALLED, installRights, reach, whenPolicyIsEnforced } from './stage.ts'

const ADOPT = { 'heartbeat-operator.io/adopt': 'true' }
const RECONCILE = 'heartbeat-operator.io/reconcile-requested-at'

it('F4: the policy rejects nothing of what the operator publishes, hands back, adopts and restores', async () => {
  await using scene = await startScene(await reach(cluster, await installRights()), { resyncMs: 60_000 }, INSTALLED)
  await whenPolicyIsEnforced()
  const { place } = scene
  const rejected = async () => {
    const { values } = await scene.operator().metrics.registry.getSingleMetric('rest_client_requests_total')!.get()
    return values.filter(({ labels }) => labels.code === '422').map(({ labels }) => labels)
  }
  const long = 'n'.repeat(200)
  for (const [plural, kind] of [
    ['secrets', 'Secret'],
    ['configmaps', 'ConfigMap'],
  ] as const) {
    const name = kind.toLowerCase()
    const data = kind === 'Secret' ? { note: Buffer.from('two words').toString('base64') } : { note: 'two words' }
    await place.put(plural, { metadata: { name: `${name}-shared`, annotations: ADOPT }, data })

    // Into an object of others, under one key and then another, and out of it again.
    await place.makeReady(`${name}-guest`, { periodSeconds: 3_600, publish: { kind, name: `${name}-shared` } })
    await place.change(`${name}-guest`, { spec: { publish: { key: 'OTHER_URL' } } })
    await place.ready(`${name}-guest`)
    expect(Object.keys((await place.find(plural, `${name}-shared`))!.data!).sort()).toEqual(['OTHER_URL', 'note'])
    // Those who handed it over may take the annotation back.
    await place.patch(plural, `${name}-shared`, { metadata: { annotations: null } })
    await place.change(`${name}-guest`, { spec: { publish: { key: 'THIRD_URL' } } })
    await eventually('the key is another', async () => {
      const shared = (await place.find(plural, `${name}-shared`))!
      expect(shared.metadata.ownerReferences).toBeUndefined()
      return 'THIRD_URL' in shared.data!
    })
    await place.delete(`${name}-guest`)
    expect((await place.find(plural, `${name}-shared`))!.data).toEqual(data)

    // Kept, and taken up again.
    const retained = { periodSeconds: 3_600, deletionPolicy: 'Retain', publish: { kind } }
    await place.makeReady(`${name}-kept`, retained)
    const before = (await place.find(plural, `${name}-kept-heartbeat`))!.data
    await place.delete(`${name}-kept`)
    expect((await place.find(plural, `${name}-kept-heartbeat`))!.data).toEqual(before)
    await place.makeReady(`${name}-kept`, retained)
    expect((await place.find(plural, `${name}-kept-heartbeat`))!.metadata.ownerReferences).toHaveLength(1)

    // Without its owner, under a name that no label can hold.
    await place.makeReady(`${name}-${long}`, { periodSeconds: 3_600, publish: { kind, name: `${name}-long` } })
    await place.patch(plural, `${name}-long`, { metadata: { ownerReferences: null } })
    await place.change(`${name}-${long}`, { metadata: { annotations: { [RECONCILE]: 'now' } } })
    await eventually('the owner is restored', async () => {
      const { ownerReferences = [] } = (await place.find(plural, `${name}-long`))!.metadata
      return ownerReferences.some((owner) => owner.name === `${name}-${long}`)
    })
    await place.delete(`${name}-${long}`)
    expect(await place.find(plural, `${name}-long`)).toBeNull()
  }
  expect(await rejected()).toEqual([])
})
