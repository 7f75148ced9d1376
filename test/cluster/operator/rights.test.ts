/**
 * The rights of manifests/ are enough, and hold no more; and what kubectl shows. The rules of the operator are tested on the fake
 * API server in test/operator.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readWrites } from '../../support/api-server-writes.ts'
import { cluster } from '../../support/cluster.ts'
import { readMetric, type Scene, startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { conditionOf, openWorkplace, type Workplace, workIn } from '../../support/workplace.ts'
import { ACCOUNT, INSTALLED, installNamespacedRights, installRights, reach, releaseDeleted } from './stage.ts'

const RIGHTS = [
  ['list', '', 'secrets'],
  ['watch', '', 'secrets'],
  ['update', '', 'secrets'],
  ['deletecollection', '', 'secrets'],
  ['list', '', 'configmaps'],
  ['watch', '', 'configmaps'],
  ['update', '', 'namespaces'],
  ['get', '', 'pods'],
  ['list', 'events.k8s.io', 'events'],
  ['update', 'heartbeat-operator.io', 'heartbeatchecks'],
  ['deletecollection', 'heartbeat-operator.io', 'heartbeatchecks'],
  ['create', 'heartbeat-operator.io', 'heartbeatchannels'],
  ['update', 'heartbeat-operator.io', 'heartbeatchannels'],
  ['delete', 'heartbeat-operator.io', 'heartbeatchannels'],
  ['create', 'heartbeat-operator.io', 'heartbeatsilences'],
  ['update', 'heartbeat-operator.io', 'heartbeatsilences'],
  ['delete', 'heartbeat-operator.io', 'heartbeatsilences'],
  ['create', 'batch', 'jobs'],
  ['patch', 'batch', 'jobs'],
  ['delete', 'batch', 'jobs'],
  ['create', 'batch', 'cronjobs'],
  ['update', 'batch', 'cronjobs'],
  ['patch', 'batch', 'cronjobs'],
  ['delete', '', 'pods'],
  ['get', '', 'pods', 'log'],
  ['watch', '', 'events'],
  ['*', '*', '*'],
] as const

/** Of the ClusterRole of CronJobs. */
const FOR_CRON_JOBS = [
  ...(['cronjobs', 'jobs'] as const).flatMap((resource) =>
    (['get', 'list', 'watch'] as const).map((verb) => [verb, 'batch', resource] as const),
  ),
  ['list', '', 'pods'],
  ['watch', '', 'pods'],
  ['list', '', 'events'],
  ['create', 'heartbeat-operator.io', 'heartbeatchecks'],
  ['delete', 'heartbeat-operator.io', 'heartbeatchecks'],
] as const

describe.each(['cluster-wide', 'namespaced'])('the %s installation', (kind) => {
  const isEverywhere = kind === 'cluster-wide'
  let scene: Scene
  let place: Workplace
  let account: string

  beforeAll(async () => {
    const { name } = await cluster.makeNamespace()
    account = `${isEverywhere ? INSTALLED : name}:${ACCOUNT}`
    const kubeconfig = isEverywhere ? await installRights() : await installNamespacedRights(name)
    const home = isEverywhere ? INSTALLED : name
    scene = await startScene(await reach(cluster, kubeconfig), { namespaces: isEverywhere ? null : [name] }, home)
    place = workIn(scene.cluster, name)
    if (!isEverywhere) return
    // An operator of the whole cluster sees the namespaces that earlier files deleted: their contents go one by one, and take no Events.
    const phases = () => cluster.kubectl('get', 'namespaces', '-o', 'jsonpath={.items[*].status.phase}')
    const isQuiet = async () => {
      await releaseDeleted()
      return !(await phases()).includes('Terminating')
    }
    await eventually('no namespace is being deleted', isQuiet, 60_000)
  })
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]()
    await cluster.api('DELETE', `/api/v1/namespaces/${place?.name}`)
  })

  const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)

  it('may do everything that the operator does, from the first Secret to the finalizer', async () => {
    const forbidden = async () => {
      const { values } = await scene.operator().metrics.registry.getSingleMetric('rest_client_requests_total')!.get()
      return values
        .filter(({ labels }) => labels.code === '403')
        .map(({ labels, value }) => `${value} ${labels.method}`)
    }
    const before = await forbidden()
    const other = await openWorkplace(scene.cluster)
    await other.apply('elsewhere')
    await place.makeReady('a', { periodSeconds: 3_600, publish: { name: 'first' } })
    await place.change('a', { spec: { publish: { kind: 'ConfigMap', name: 'second' } } })
    expect(conditionOf(await place.ready('a'), 'Published')).toMatchObject({
      message: 'the ping URL is in ConfigMap second',
    })
    expect(await place.find('secrets', 'first')).toBeNull()
    await place.event('a', 'Published')
    await place.delete('a')
    expect(await place.find('configmaps', 'second')).toBeNull()
    const elsewhere = isEverywhere ? await other.ready('elsewhere') : await other.get('elsewhere')
    expect(elsewhere.status === undefined).toBe(!isEverywhere)
    if (isEverywhere) await other.delete('elsewhere')
    // The namespaced one may not read which cluster this is.
    if (isEverywhere) expect(await forbidden()).toEqual(before)
    else expect(await forbidden()).toEqual([expect.stringMatching(/^\d+ GET$/)])
  })

  it.each(RIGHTS)('has no right to %s %s/%s', async (verb, group, resource, subresource?: string) => {
    expect(await may(account, place.name, { verb, group, resource, subresource })).toBe(false)
  })

  it.each(FOR_CRON_JOBS)('has the right to %s %s/%s, here', async (verb, group, resource) => {
    expect(await may(account, place.name, { verb, group, resource })).toBe(true)
    expect(await may(account, 'default', { verb, group, resource })).toBe(isEverywhere)
  })

  it('has the right to watch Namespaces if it serves all of them', async () => {
    expect(await may(account, place.name, { verb: 'watch', group: '', resource: 'namespaces' })).toBe(isEverywhere)
  })

  it('has the right to get a Secret by its name, here', async () => {
    const get = { verb: 'get', group: '', resource: 'secrets', name: 'a' }
    expect(await may(account, place.name, get)).toBe(true)
    expect(await may(account, 'default', get)).toBe(isEverywhere)
  })

  if (!isEverywhere) return

  it('shows in kubectl describe what happened to the job', async () => {
    await place.makeReady('reported')
    const flip = async (kind: string, reason: string) => {
      await fetch((await place.pingUrl('reported')) + kind, { method: 'POST' })
      await place.event('reported', reason)
    }
    await flip('', 'FirstSuccess')
    await flip('/fail', 'Failed')
    await flip('', 'Recovered')
    const text = await kubectl('describe', 'hbc', 'reported')
    for (const line of [
      /Normal +Created .*heartbeat-operator +the service watches over the job from now on; the ping URL is in Secret reported-heartbeat, key HEARTBEAT_URL/,
      /Normal +FirstSuccess .*the job reported its first success/,
      /Warning +Failed .*the job reported a failure at 2\S+Z/,
      /Normal +Recovered .*the job reported a success again at 2\S+Z/,
    ])
      expect(text).toMatch(line)
    expect(text).not.toContain('/ping/')
  })

  it('leaves the spec to the manager that applied it, and the defaults to the API server', async () => {
    const manifest = {
      apiVersion: 'heartbeat-operator.io/v1',
      kind: 'HeartbeatCheck',
      metadata: { name: 'applied', labels: { team: 'shop' }, annotations: { note: 'ours' } },
      spec: { periodSeconds: 3_600 },
    }
    await cluster.kubectlWith({ input: JSON.stringify(manifest) }, '-n', place.name, 'apply', '-f', '-')
    const { metadata, spec } = await place.ready('applied')
    expect(spec).toMatchObject({ periodSeconds: 3_600, deletionPolicy: 'Delete' })
    expect(metadata.labels).toEqual({ team: 'shop' })
    const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
    expect(Object.keys(metadata.annotations ?? {}).sort()).toEqual([lastApplied, 'note'])
    const owners = metadata.managedFields!.map(({ manager, fieldsV1 = {} }) => [
      manager,
      ...Object.keys(fieldsV1).sort(),
    ])
    expect(owners).toContainEqual(['kubectl-client-side-apply', 'f:metadata', 'f:spec'])
    expect(owners.filter((fields) => fields.includes('f:status')).map(([, ...fields]) => fields)).toEqual([
      ['f:status'],
    ])
  })

  it('writes nothing while nothing changes: the API server changes no text of ours', async () => {
    const publish = { kind: 'ConfigMap', labels: { a: 'b' }, annotations: { c: 'd' } }
    await place.makeReady('steady', { periodSeconds: 3_600, publish, displayName: ' Steady ', description: 'x' })
    await place.makeReady('paused', { periodSeconds: 3_600, suspend: true })
    const versions = () =>
      kubectl('get', 'hbc,secrets,configmaps,events', '-o', 'jsonpath={.items[*].metadata.resourceVersion}')
    const writes = async () => readWrites(await cluster.kubectl('get', '--raw', '/metrics'))
    for (const change of [async () => {}, () => scene.restart()]) {
      await change()
      await passes(1)
      const before = { versions: await versions(), writes: await writes() }
      expect(before.writes['PUT heartbeatchecks/status 200']).toBeGreaterThan(0)
      await passes(2)
      expect({ versions: await versions(), writes: await writes() }).toEqual(before)
    }
  })

  /** Waits until every check was brought in line so often. */
  async function passes(count: number): Promise<void> {
    const unchanged = () => readMetric(scene.operator(), 'heartbeat_publish_total', { result: 'unchanged' })
    const target = (await unchanged()) + count * (await place.list()).length
    await eventually(`${target} reads of what is published`, async () => (await unchanged()) >= target)
  }
})

async function may(account: string, namespace: string, what: object): Promise<boolean> {
  const spec = { user: `system:serviceaccount:${account}`, resourceAttributes: { namespace, ...what } }
  const { body } = await cluster.api('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec })
  return body.status.allowed
}
