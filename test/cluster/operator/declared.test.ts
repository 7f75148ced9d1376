/**
 * What resources have in common that only declare something of the service, on a real API server, with the rights and
 * the policy of manifests/: HeartbeatChannels and HeartbeatSilences.
 */

import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { requestApi } from '../../../tools/cluster/control-plane-access.ts'
import { cluster } from '../../support/cluster.ts'
import { startTestOperator, testDatabaseOf } from '../../support/operator.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { openWorkplace, workIn } from '../../support/workplace.ts'
import { ACCOUNT, INSTALLED, useInstalled, whenPolicyIsEnforced } from './stage.ts'

const scene = useInstalled()
const namespace = useEach(() => openWorkplace(scene.cluster))
const REQUEST = 'heartbeat-operator.io/reconcile-requested-at'

const SILENCE = { schedule: '0 2 * * 0', durationSeconds: 7_200, comment: 'Each Sunday' }

describe.each([
  {
    kind: 'HeartbeatChannel',
    spec: { ntfy: { topic: 'ops' } },
    other: { ntfy: { topic: 'mine' } },
    idOf: 'channelId',
    path: '/channels',
    editors: false,
  },
  {
    kind: 'HeartbeatSilence',
    spec: SILENCE,
    other: { comment: 'Mine' },
    idOf: 'silenceId',
    path: '/silences',
    editors: true,
  },
])('a $kind', ({ kind, spec, other, idOf, path, editors }) => {
  const place = useEach(async () => workIn(scene.cluster, namespace.name, kind))
  const statusOf = async (name: string) => ((await place.get(name)).status ?? {}) as Record<string, unknown>

  it('leaves nothing to kubectl diff, once it is Ready', async () => {
    const input = JSON.stringify({ apiVersion: 'heartbeat-operator.io/v1', kind, metadata: { name: 'one' }, spec })
    const withManifest = (...args: string[]) => cluster.kubectlWith({ input }, '-n', place.name, ...args, '-f', '-')
    await withManifest('apply')
    await place.ready('one')
    expect(await withManifest('diff')).toBe('')
    await cluster.kubectl('-n', place.name, 'wait', '--for=condition=Ready', `${kind.toLowerCase()}/one`)
  })

  it('gets its status although others change it meanwhile', async () => {
    await place.apply('one', spec)
    for (let value = 0; value < 20; value += 1)
      await place.change('one', { metadata: { annotations: { [REQUEST]: String(value) } } })
    await eventually(
      'the last request is handled',
      async () => (await statusOf('one')).lastHandledReconcileRequest === '19',
    )
    await place.ready('one')
  })

  it('keeps its finalizer while the database is away', async () => {
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
      await place.makeReady('one', spec)
      const { [idOf]: id } = await statusOf('one')
      proxy.refuse()
      proxy.reset()
      await cluster.api('DELETE', place.pathOf('one'))
      await place.apply('new', spec)
      await eventually('it says so', async () => (await place.condition('new', 'Reconciling'))?.status === 'True')
      expect((await place.get('one')).metadata.finalizers).toEqual(['heartbeat-operator.io/cleanup'])
      expect(operator.operator.isLeader()).toBe(true)
      await proxy.accept()
      await place.gone('one')
      await place.ready('new')
      expect(await scene.app.call('GET', `${path}/${id}`)).toMatchObject({ status: 404 })
    } finally {
      await database.close()
      await proxy.close()
      await scene.restart()
    }
  })

  it('is made by admins of its namespace, and seen by viewers', async () => {
    const may = async (role: string, verb: string) => {
      const user = `${role}-of-${place.name}`
      const bind = ['create', 'rolebinding', `${role}-${verb}`, `--clusterrole=${role}`, `--user=${user}`]
      await cluster.kubectl('-n', place.name, ...bind)
      const resource = `${kind.toLowerCase()}s`
      const resourceAttributes = { namespace: place.name, verb, group: 'heartbeat-operator.io', resource }
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, resourceAttributes },
      }
      const { body } = await cluster.api('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)
      return body.status.allowed
    }
    await eventually('the roles are aggregated', () => may('admin', 'create'))
    expect(await may('admin', 'delete')).toBe(true)
    expect(await may('edit', 'create')).toBe(editors)
    expect(await may('edit', 'patch')).toBe(editors)
    expect(await may('edit', 'list')).toBe(true)
    expect(await may('view', 'get')).toBe(true)
    expect(await may('view', 'create')).toBe(false)
  })

  it('is not changed by the token of the controller, but for its finalizers and its status', async () => {
    await whenPolicyIsEnforced()
    await place.makeReady('one', spec)
    const token = await cluster.tokenFor(`${INSTALLED}/${ACCOUNT}`)
    const patch = (body: object) =>
      requestApi(cluster, `${place.pathOf('one')}?dryRun=All`, {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        body,
        token,
      })
    expect(await patch({ spec: other })).toMatchObject({ status: 422 })
    expect(await patch({ metadata: { labels: { a: 'b' } } })).toMatchObject({ status: 422 })
    expect(await patch({ metadata: { finalizers: [] } })).toMatchObject({ status: 200 })
  })
})
