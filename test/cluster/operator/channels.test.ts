/**
 * HeartbeatChannels on a real API server, with the rights and the policy of manifests/. The rules in detail:
 * test/operator/channels.test.ts.
 */

import { expect, it } from 'vitest'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { requestApi } from '../../../tools/cluster/control-plane-access.ts'
import { openChannelPlace, slack } from '../../operator/channel-place.ts'
import { cluster } from '../../support/cluster.ts'
import { startTestOperator, testDatabaseOf } from '../../support/operator.ts'
import { startReceiver } from '../../support/receiver.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { eventually } from '../../support/until.ts'
import { use, useEach } from '../../support/use.ts'
import { ACCOUNT, INSTALLED, useInstalled, whenPolicyIsEnforced } from './stage.ts'

const scene = useInstalled({}, { ALLOWED_TARGETS: '127.0.0.1/32' })
const receiver = use(startReceiver)
const place = useEach(() => openChannelPlace(scene))
const REQUEST = 'heartbeat-operator.io/reconcile-requested-at'

it('a channel is Ready, delivers, and leaves nothing to kubectl diff', async () => {
  await place.putSecret('chat', `${receiver.url}/real`)
  const manifest = {
    apiVersion: 'heartbeat-operator.io/v1',
    kind: 'HeartbeatChannel',
    metadata: { name: 'ops' },
    spec: { events: ['check.down'], ...slack('chat') },
  }
  const withManifest = (...args: string[]) =>
    cluster.kubectlWith({ input: JSON.stringify(manifest) }, '-n', place.name, ...args, '-f', '-')
  await withManifest('apply')
  await place.ready('ops')
  const { channelId } = await place.statusOf('ops')
  expect(await scene.app.call('POST', `/channels/${channelId}/test`)).toMatchObject({ status: 202 })
  await eventually('it arrives', () => receiver.requests.some(({ path }) => path === '/real'))
  await eventually('Delivering', async () => (await place.condition('ops', 'Delivering'))?.status === 'True')
  expect(await withManifest('diff')).toBe('')
  expect(await cluster.kubectl('-n', place.name, 'get', 'hbch', 'ops')).toMatch(
    /KIND\s+READY\s+DELIVERING[\s\S]*slack\s+True\s+True/,
  )
})

it('a resource that others change meanwhile gets its status all the same', async () => {
  await place.putSecret('chat', `${receiver.url}/busy`)
  await place.apply('ops', slack('chat'))
  for (let value = 0; value < 20; value += 1)
    await place.change('ops', { metadata: { annotations: { [REQUEST]: String(value) } } })
  await eventually(
    'the last request is handled',
    async () => (await place.statusOf('ops')).lastHandledReconcileRequest === '19',
  )
  await place.ready('ops')
})

it('a resource that is created again keeps its channel, and a name alone does not', async () => {
  await place.putSecret('chat', `${receiver.url}/again`)
  await place.makeReady('ops', slack('chat'))
  const { channelId } = await place.statusOf('ops')
  await place.delete('ops')
  await place.makeReady('ops', { ntfy: { topic: 'ops' } })
  expect((await place.statusOf('ops')).channelId).toBe(channelId)
  const other = await openChannelPlace(scene)
  await other.makeReady('ops', { ntfy: { topic: 'ops' } })
  expect((await other.statusOf('ops')).channelId).not.toBe(channelId)
})

it('the finalizer waits while the database is away', async () => {
  const direct = await testDatabaseOf(scene.app)
  const url = new URL(direct.url)
  const proxy = await startTcpProxy(Number(url.port))
  url.port = String(proxy.port)
  const database = createDatabase({ url: url.href, name: 'proxied', connections: 5 })
  await scene.operator().stop()
  const { connection } = scene.cluster
  try {
    const changes = { namespaces: [place.name], resyncMs: 2_000 }
    const testDatabase = { ...direct, url: url.href, database }
    await using operator = await startTestOperator({ connection, leaseNamespace: INSTALLED, testDatabase, changes })
    await place.makeReady('ops', { ntfy: { topic: 'ops' } })
    const { channelId } = await place.statusOf('ops')
    proxy.refuse()
    proxy.reset()
    await cluster.api('DELETE', place.pathOf('ops'))
    await place.apply('new', { ntfy: { topic: 'new' } })
    await eventually('it says so', async () => (await place.condition('new', 'Reconciling'))?.status === 'True')
    expect((await place.get('ops')).metadata.finalizers).toEqual(['heartbeat-operator.io/cleanup'])
    expect(operator.operator.isLeader()).toBe(true)
    await proxy.accept()
    await place.gone('ops')
    await place.ready('new')
    expect(await scene.app.call('GET', `/channels/${channelId}`)).toMatchObject({ status: 404 })
  } finally {
    await database.close()
    await proxy.close()
    await scene.restart()
  }
})

it('admins of a namespace make channels, editors do not, and viewers see them', async () => {
  const may = async (role: string, verb: string) => {
    const user = `${role}-of-${place.name}`
    await cluster.kubectl(
      '-n',
      place.name,
      'create',
      'rolebinding',
      `${role}-${verb}`,
      `--clusterrole=${role}`,
      `--user=${user}`,
    )
    const spec = {
      user,
      resourceAttributes: {
        namespace: place.name,
        verb,
        group: 'heartbeat-operator.io',
        resource: 'heartbeatchannels',
      },
    }
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
    const { body } = await cluster.api('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)
    return body.status.allowed
  }
  await eventually('the roles are aggregated', () => may('admin', 'create'))
  expect(await may('admin', 'delete')).toBe(true)
  expect(await may('edit', 'create')).toBe(false)
  expect(await may('edit', 'patch')).toBe(false)
  expect(await may('edit', 'list')).toBe(true)
  expect(await may('view', 'get')).toBe(true)
})

it('the token of the controller changes nothing of a channel but finalizers and status', async () => {
  await whenPolicyIsEnforced()
  await place.makeReady('ops', { ntfy: { topic: 'ops' } })
  const token = await cluster.tokenFor(`${INSTALLED}/${ACCOUNT}`)
  const patch = (body: object) =>
    requestApi(cluster, `${place.pathOf('ops')}?dryRun=All`, {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body,
      token,
    })
  expect(await patch({ spec: { ntfy: { topic: 'mine' } } })).toMatchObject({ status: 422 })
  expect(await patch({ metadata: { labels: { a: 'b' } } })).toMatchObject({ status: 422 })
  expect(await patch({ metadata: { finalizers: [] } })).toMatchObject({ status: 200 })
})
