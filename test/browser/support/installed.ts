/** The product as `manifests/install.yaml` installs it on a real control plane, its pods as one process with all roles. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { expect } from 'vitest'
import { startControlPlane } from '../../../tools/cluster/control-plane.ts'
import { type ApiClient, createApiClient } from '../../support/api-client.ts'
import { openCluster } from '../../support/cluster-client.ts'
import { createEmptyDatabase } from '../../support/database.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { API_KEY, databaseEnvironment, startService } from '../../support/service-process.ts'
import { type Workplace, workIn } from '../../support/workplace.ts'
import { launchBrowser } from './browser.ts'

const MANIFESTS = new URL('../../../manifests/', import.meta.url)
const HOME = 'heartbeat-operator'
const NAMESPACE = 'shop'

export const readExample = (file: string) => readFileSync(new URL(`examples/${file}`, MANIFESTS), 'utf8')

export interface Installed extends AsyncDisposable {
  /** Of the dashboard, without a slash at its end. */
  readonly origin: string
  /** The HeartbeatChecks of the namespace in which the story happens. */
  readonly checks: Workplace
  /** Calls with a key of an admin. */
  readonly client: ApiClient
  readonly receiver: Receiver
  readonly browser: Browser
  /** In the namespace, as the admin of the cluster. */
  kubectl(...args: string[]): Promise<string>
  /** `kubectl apply` of YAML; waits until each of its resources is Ready. */
  applyUntilReady(manifest: string): Promise<void>
}

export async function openInstalled(): Promise<Installed> {
  await using stack = new AsyncDisposableStack()
  const [plane, receiver, browser, database] = await Promise.all([
    startControlPlane(),
    startReceiver(),
    launchBrowser(),
    createEmptyDatabase(),
  ])
  stack.use(plane)
  stack.use(receiver)
  stack.defer(() => browser.close())
  stack.use(database)
  const cluster = openCluster(plane)
  await cluster.kubectl('apply', '-f', fileURLToPath(new URL('install.yaml', MANIFESTS)))
  await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all')
  await cluster.kubectl('create', 'namespace', NAMESPACE)
  const token = await cluster.tokenFor(`${HOME}/heartbeat-operator-controller`)
  const service = stack.use(
    await startService({
      ...databaseEnvironment(database.url),
      KUBERNETES: 'required',
      KUBECONFIG: await cluster.writeKubeconfig({ credential: { token }, namespace: HOME }),
      ALLOWED_TARGETS: '127.0.0.0/8',
    }),
  )
  const kubectl: Installed['kubectl'] = (...args) => cluster.kubectl('-n', NAMESPACE, ...args)
  const client = await createApiClient(service.api, API_KEY)
  const kept = stack.move()
  return {
    origin: new URL(service.api).origin,
    checks: workIn(cluster, NAMESPACE),
    client,
    receiver,
    browser,
    kubectl,
    async applyUntilReady(input) {
      const applied = await cluster.kubectlWith({ input }, '-n', NAMESPACE, 'apply', '--validate=strict', '-f', '-')
      const resources = [...applied.matchAll(/^(heartbeat\S+) /gm)].map(([, resource]) => resource!)
      expect(resources).not.toEqual([])
      await kubectl('wait', '--for=condition=Ready', '--timeout=45s', ...resources)
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
