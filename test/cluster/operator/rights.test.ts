/** The rights of manifests/ are enough, and hold no more. All other tests of the operator run with those for a whole cluster. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, waitFor } from '../../support/cluster.ts'
import { startTestOperator } from '../../support/operator.ts'
import {
  conditionOf,
  installNamespacedRights,
  installRights,
  openWorkplace,
  type Workplace,
} from '../../support/operator-and-api.ts'

let place: Workplace
let kubeconfig: string

beforeAll(async () => {
  await installRights()
  place = await openWorkplace()
  kubeconfig = await installNamespacedRights(place.name)
})

afterAll(() => place?.[Symbol.asyncDispose]())

it('the namespaced installation does all of it in its namespace, and knows of no other', async () => {
  await using other = await openWorkplace()
  await other.create('unseen')
  await using operator = await startTestOperator({
    kubeconfig,
    leaseNamespace: place.name,
    changes: { namespaces: [place.name], resyncMs: 1_000 },
  })
  await place.makeReady('a', { periodSeconds: 3_600, publish: { name: 'first' } })
  await place.change('a', { spec: { publish: { kind: 'ConfigMap', name: 'second' } } })
  expect(conditionOf(await place.ready('a'), 'Published')).toMatchObject({
    message: 'the ping URL is in ConfigMap second',
  })
  expect(await place.find('secrets', 'first')).toBeNull()
  const seen = () => place.events('a').then((events) => events.map(({ reason }) => reason))
  await waitFor('it is told', async () => (await seen()).includes('Updated') || (await seen()).includes('Published'))
  await place.delete('a')
  expect(await place.find('configmaps', 'second')).toBeNull()
  expect((await other.get('unseen')).status).toBeUndefined()
  // Which cluster this is, it may not know; nothing that it wants to do is refused.
  const { values } = await operator.metrics.registry.getSingleMetric('rest_client_requests_total')!.get()
  const refused = values.filter(({ labels }) => labels.code === '403').map(({ labels }) => labels.method)
  expect(new Set(refused)).toEqual(new Set(['GET']))
})

describe.each(['the cluster-wide installation', 'the namespaced installation'])('%s', (installed) => {
  it.each([
    ['list', '', 'secrets'],
    ['watch', '', 'secrets'],
    ['update', '', 'secrets'],
    ['deletecollection', '', 'secrets'],
    ['list', '', 'configmaps'],
    ['watch', '', 'configmaps'],
    ['list', '', 'namespaces'],
    ['update', '', 'namespaces'],
    ['get', '', 'pods'],
    ['list', 'events.k8s.io', 'events'],
    ['create', 'heartbeat-operator.io', 'heartbeatchecks'],
    ['delete', 'heartbeat-operator.io', 'heartbeatchecks'],
    ['*', '*', '*'],
  ])('has no right to %s %s/%s', async (verb, group, resource) => {
    const namespace = installed.startsWith('the namespaced') ? place.name : 'heartbeat-operator'
    expect(await may(`${namespace}:heartbeat-operator`, place.name, { verb, group, resource })).toBe(false)
  })

  it('has the right to get a Secret by its name, here', async () => {
    const isEverywhere = !installed.startsWith('the namespaced')
    const account = `${isEverywhere ? 'heartbeat-operator' : place.name}:heartbeat-operator`
    const get = { verb: 'get', group: '', resource: 'secrets', name: 'a' }
    expect(await may(account, place.name, get)).toBe(true)
    expect(await may(account, 'default', get)).toBe(isEverywhere)
  })
})

async function may(account: string, namespace: string, what: object): Promise<boolean> {
  const spec = { user: `system:serviceaccount:${account}`, resourceAttributes: { namespace, ...what } }
  const { body } = await cluster.api('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec })
  return body.status.allowed
}
