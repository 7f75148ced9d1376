/** What the operator costs an API server and other tenants: owners of fields, Events that a namespace cannot take any more. */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { testFieldManagers } from '../../support/field-managers.ts'
import { listen, readMetric } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { openWorkplace } from '../../support/workplace.ts'
import { INSTALLED, useInstalled } from './stage.ts'

const { said, log } = listen()
const scene = useInstalled({ log })
testFieldManagers(scene, INSTALLED)

it('F10: rejected Events of a namespace that is being deleted are dropped in silence', async () => {
  const place = await openWorkplace(scene.cluster)
  const path = `/api/v1/namespaces/${place.name}`
  const rejected = () => readMetric(scene.operator(), 'rest_client_requests_total', { method: 'POST', code: '403' })
  const before = await rejected()
  await Promise.all(Array.from({ length: 60 }, (_, n) => place.apply(`n${n}`)))
  await cluster.api('DELETE', path)
  await eventually('the namespace is gone', async () => (await cluster.api('GET', path)).status === 404)
  await eventually('some were rejected', async () => (await rejected()) > before)
  expect(said.filter((message) => message.startsWith('an Event could not be written'))).toEqual([])
})
