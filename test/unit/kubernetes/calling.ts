/** A client on a fake API server and a manual clock, new for each test of the file that calls `useFakeServer`. */

import { afterEach, beforeEach } from 'vitest'
import { createClient, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import type { Connection } from '../../../src/kubernetes/connection.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import type { RequestMetrics } from '../../../src/kubernetes/transport.ts'
import type { WatchEvent } from '../../../src/kubernetes/watch-lines.ts'
import { CONFIG_MAPS, type FakeApiServer, startFakeApiServer } from '../../support/fake-api-server.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

export const SECRETS = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' }
export const CHECKS = { group: 'example.com', version: 'v1', plural: 'checks', kind: 'Check' }
export const A = { namespace: 'shop', name: 'a' }

// Importers see what the running test has.
export let server: FakeApiServer
export let clock: ManualClock
export let client: KubernetesClient
export let warnings: string[]
export let counted: Parameters<RequestMetrics['request']>[]

export function useFakeServer(): void {
  beforeEach(async () => {
    server = await startFakeApiServer({ types: [CONFIG_MAPS, SECRETS, CHECKS] })
    clock = createManualClock()
    warnings = []
    counted = []
    client = clientOf(server.connection)
  })
  afterEach(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
}

export function clientOf(connection: Connection): KubernetesClient {
  return createClient({
    connection,
    clock,
    random: () => 0.5,
    onWarning: (text) => warnings.push(text),
    metrics: { request: (...args) => counted.push(args) },
  })
}

export const aConfigMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'shop', name },
  data,
})
export const anyRequest = () => true
export const store = (name: string) => server.collection(CONFIG_MAPS).create(aConfigMap(name))

export const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error) => error,
  )

export async function readWatch(
  options: { signal: AbortSignal; resourceVersion?: string },
  count = Number.POSITIVE_INFINITY,
) {
  const events: WatchEvent<KubernetesObject>[] = []
  const watch = client.watch(CONFIG_MAPS, {
    namespace: 'shop',
    resourceVersion: '100',
    timeoutSeconds: 300,
    ...options,
  })
  for await (const event of watch) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}
