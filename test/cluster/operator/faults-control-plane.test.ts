/** What may happen to the API server and to what it remembers, on a control plane of its own. */

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { OperatorOptions } from '../../../src/operator/operator.ts'
import { createCheckPoll } from '../../../src/operator/reconcile/poll-checks.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { type ControlPlane, startControlPlane } from '../../../tools/cluster/control-plane.ts'
import { type Cluster, openCluster } from '../../support/cluster-client.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import {
  connectionOf,
  listen,
  readMetric,
  startTestOperator,
  type TestOperator,
  whenLeading,
} from '../../support/operator.ts'
import { serviceWith } from '../../support/operator-service.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { eventually } from '../../support/until.ts'
import { type Workplace, workIn } from '../../support/workplace.ts'
import { type PingPort, reach, startJob, startPingPort } from './stage.ts'

const CRDS = fileURLToPath(new URL('../../../crds', import.meta.url))
const CRD_PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/heartbeatchecks.heartbeat-operator.io'
const NAMESPACE = 'shop'

let plane: ControlPlane
let cluster: Cluster
let proxy: TcpProxy
let testDatabase: TestDatabase
let pings: PingPort
let place: Workplace
const { said, log } = listen()

beforeAll(async () => {
  plane = await startControlPlane({ crds: [CRDS] })
  cluster = openCluster(plane)
  proxy = await startTcpProxy(plane.port)
  testDatabase = await createTestDatabase()
  pings = await startPingPort(testDatabase)
  place = workIn(await reach(cluster), NAMESPACE)
  await makeNamespace()
  await place.apply('standing')
})
afterAll(async () => {
  await pings?.[Symbol.asyncDispose]()
  await testDatabase?.close()
  await proxy?.close()
  await plane?.stop()
})

/** A new one for each test, since back-offs grow from fault to fault; resolves when it works. */
async function startOperator(more: Partial<OperatorOptions> = {}): Promise<TestOperator> {
  const credential = { token: plane.adminToken }
  const operator = await startTestOperator({
    connection: await connectionOf(await cluster.writeKubeconfig({ credential, server: proxy.url, authority: 'file' })),
    testDatabase,
    leaseNamespace: 'default',
    // The shortest of all back-offs, so that the time of a test does not depend on luck.
    changes: { log, random: () => 0, holderSeconds: 3, pingUrl: () => pings.url, ...more },
  })
  try {
    await whenLeading(operator)
    await place.ready('standing')
  } catch (error) {
    await operator[Symbol.asyncDispose]()
    throw error
  }
  return operator
}

const makeNamespace = () => cluster.api('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } })

async function countPings(url: string): Promise<number> {
  const { rows } = await testDatabase.database.query<{ count: number }>(
    'select count(*) from pings p join checks c on c.key = p.check_key where c.public_id = $1',
    [url.split('/').at(-1)],
  )
  return rows[0]!.count
}

describe('the API server', () => {
  it('F5: after an outage with a restart without history (410), a new resource is Ready within 8 s', async () => {
    await using operator = await startOperator()
    const saidBefore = said.length
    // The first one of all is left alone: by it the reflector recognises the cluster, and takes the watch up where it was.
    await place.apply('vanishing')
    await place.ready('vanishing')
    proxy.refuse()
    proxy.reset()
    await place.apply('unseen')
    await place.forceAway('vanishing')
    await plane.forgetHistory()
    await plane.restartApiServer()
    const interruptions = () => said.slice(saidBefore).filter((message) => message.startsWith('the watch of')).length
    await eventually('the back-off is at its longest', () => interruptions() >= 5)
    const backAt = performance.now()
    await proxy.accept()
    await place.apply('upcoming')
    await place.ready('upcoming')
    expect(performance.now() - backAt).toBeLessThan(8_000)
    await place.ready('unseen')
    expect(
      await readMetric(operator, 'kubernetes_watch_restarts_total', { resource: 'heartbeatchecks', reason: 'expired' }),
    ).toBe(1)
    // What went during the gap is not there any more either.
    const known = () => readMetric(operator, 'kubernetes_cache_objects')
    await eventually('the list has replaced the cache', async () => (await known()) === 3)
  })

  it('may show another certificate, and one of another authority', async () => {
    await using operator = await startOperator()
    await plane.rotateCertificate()
    expect(proxy.reset()).toBeGreaterThan(0)
    await place.apply('same-authority')
    await place.ready('same-authority')

    await plane.rotateCertificate({ authority: 'new' })
    expect(proxy.reset()).toBeGreaterThan(0)
    await place.apply('new-authority')
    await place.ready('new-authority')
    await whenLeading(operator)
  })
})

describe('etcd', () => {
  it('an emptied etcd costs no ping and no history: resources that are applied again find their checks', async () => {
    // Namespaces of another uid have their checks back all the same: the whole cluster is new.
    await using operator = await startOperator({ revival: 'uid' })
    const names = ['standing', 'same-authority']
    const urls = await Promise.all(names.map(place.pingUrl))
    const ids = await Promise.all(names.map(async (name) => (await place.get(name)).status?.checkId))
    const jobs = urls.map((url) => startJob(() => url))
    const pinged = await eventually('they have pinged', async () => (await countPings(urls[0]!)) || null)

    await plane.emptyEtcd()
    expect((await cluster.api('GET', place.pathOf('standing'))).status).toBe(404)
    await makeNamespace()
    for (const name of names) await place.apply(name)
    for (const name of names) await place.ready(name)

    expect(await Promise.all(names.map(place.pingUrl))).toEqual(urls)
    expect(await Promise.all(names.map(async (name) => (await place.get(name)).status?.checkId))).toEqual(ids)
    for (const job of jobs) {
      const statuses = await job.stop()
      expect(statuses.length).toBeGreaterThan(10)
      expect(new Set(statuses)).toEqual(new Set([200]))
    }
    expect(await countPings(urls[0]!)).toBeGreaterThan(pinged)
    expect(await readMetric(operator, 'heartbeat_orphans_total')).toBe(0)
    // It was rebuilt, and no second cluster.
    expect(await readMetric(operator, 'heartbeat_cluster_name_taken')).toBe(0)
    expect(said.filter((message) => message.startsWith('another live cluster'))).toEqual([])
  })
})

describe('the CustomResourceDefinition', () => {
  it('may be deleted, with all resources, and applied again: their URLs are as before', async () => {
    await using operator = await startOperator()
    const { body: crd } = await cluster.api('GET', CRD_PATH)
    const url = await place.pingUrl('standing')
    await cluster.api('DELETE', CRD_PATH)
    // It waits for our finalizer on every resource.
    await eventually('it is gone', async () => (await cluster.api('GET', CRD_PATH)).status === 404)
    await eventually('it is missed', () =>
      said.some((message) => message.startsWith('the cluster does not know HeartbeatChecks')),
    )
    expect((await fetch(url)).status).toBe(404)

    const lost = await loseCheck(operator)
    expect(await lost.pollAfter(5_000)).toEqual([])

    const { name } = crd.metadata
    const { apiVersion, kind, spec } = crd
    await cluster.api('POST', CRD_PATH.replace(`/${name}`, ''), { apiVersion, kind, metadata: { name }, spec })
    await eventually(
      'it is served',
      async () => (await cluster.api('GET', '/apis/heartbeat-operator.io/v1/heartbeatchecks')).status === 200,
    )
    await place.apply('standing')
    await place.ready('standing')
    expect(await place.pingUrl('standing')).toBe(url)
    expect((await fetch(url)).status).toBe(200)
    // The time begins with the kind: who applies that needs a moment for the resources.
    expect(await lost.pollAfter(500)).toEqual([])
    expect(await lost.pollAfter(5_000)).toContain('lost')
  })
})

/** A check whose resource nobody has, and a follower of its own that collects such after a second of its own time. */
async function loseCheck({ client }: TestOperator) {
  const context = { database: testDatabase.database, clock: systemClock }
  const resource = { cluster: 'default', namespace: NAMESPACE, name: 'lost' }
  const spec = {
    ...NO_SPEC,
    periodSeconds: 60,
    graceSeconds: 60,
  }
  const { id: projectId } = await resolveProject(context, { ...resource, allowed: null, wanted: null })
  await declareCheck(context, {
    resource,
    projectId,
    name: 'lost',
    ...NO_TEXTS,
    spec,
    suspend: null,
    adoptId: null,
  })
  const collected: string[] = []
  let now = 0
  const poll = createCheckPoll({
    service: serviceWith(context),
    client,
    cluster: 'default',
    cache: { get: () => undefined, keys: () => [], isListed: () => true },
    isForeign: () => false,
    isWatched: () => true,
    isFailing: () => false,
    enqueue: () => {},
    turns: { begin: () => [] },
    sources: null,
    now: () => now,
    orphanMs: 1_000,
    onOrphan: ({ name }) => collected.push(name),
  })
  await poll()
  return {
    async pollAfter(ms: number): Promise<readonly string[]> {
      now += ms
      await poll()
      return collected
    },
  }
}
