/** The longest name that a real API server takes. The rules in detail: test/operator/long-names.test.ts. */

import { expect, it } from 'vitest'
import { targetNameOf } from '../../../src/operator/publish/long-names.ts'
import { cluster } from '../../support/cluster.ts'
import { startScene } from '../../support/operator.ts'
import { use } from '../../support/use.ts'
import { urlIn } from '../../support/workplace.ts'
import { reach } from './stage.ts'

const scene = use(async () => startScene(await reach(cluster)))

it('a name may have 253 characters', async () => {
  const { place } = scene
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
