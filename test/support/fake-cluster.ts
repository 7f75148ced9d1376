/** The fake API server with the kinds that the operator works with, and what tests do with a cluster: the part of `Cluster` that it can do. */

import { randomUUID } from 'node:crypto'
import {
  type FakeApiServer,
  type FakeApiServerOptions,
  type FakeType,
  HEARTBEAT_CHANNELS,
  HEARTBEAT_CHECKS,
  HEARTBEAT_SILENCES,
  PODS,
  startFakeApiServer,
} from './fake-api-server.ts'
import type { TestCluster } from './workplace.ts'

const core = (plural: string, kind: string): FakeType => ({ group: '', version: 'v1', plural, kind })
const NAMESPACES = core('namespaces', 'Namespace')
const TYPES: readonly FakeType[] = [
  NAMESPACES,
  core('configmaps', 'ConfigMap'),
  core('secrets', 'Secret'),
  { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' },
  { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event' },
  { group: 'batch', version: 'v1', plural: 'cronjobs', kind: 'CronJob' },
  { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job' },
  PODS,
  {
    ...core('events', 'Event'),
    selectableFields: ['type', 'involvedObject.kind', 'involvedObject.name', 'involvedObject.uid'],
  },
  HEARTBEAT_CHECKS,
  HEARTBEAT_CHANNELS,
  HEARTBEAT_SILENCES,
]

export interface FakeCluster extends TestCluster, AsyncDisposable {
  readonly server: FakeApiServer
}

export async function startFakeCluster(options: FakeApiServerOptions = {}): Promise<FakeCluster> {
  const server = await startFakeApiServer({ types: TYPES, ...options })
  server.collection(NAMESPACES).create({ metadata: { name: 'kube-system' } })
  return {
    server,
    connection: server.connection,
    async api(method, path, body, contentType) {
      const type = contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
      const response = await fetch(server.url + path, {
        method,
        headers: { 'user-agent': 'test', ...(body === undefined ? {} : { 'content-type': type }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: await response.json() }
    },
    async makeNamespace(annotations = {}) {
      const name = `test-${randomUUID().slice(0, 8)}`
      server.collection(NAMESPACES).create({ metadata: { name, annotations } })
      return { name }
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
