/** What the tests of the operator on a real API server share: its rights, the ping port, and a job. */

import { readFileSync } from 'node:fs'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster } from '../../support/cluster.ts'
import type { Cluster } from '../../support/cluster-client.ts'
import type { TestDatabase } from '../../support/database.ts'
import { connectionOf } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'
import type { TestCluster } from '../../support/workplace.ts'

/** A real cluster, which the operator reaches by this kubeconfig. */
export async function reach(real: Cluster, kubeconfig = real.kubeconfigPath): Promise<TestCluster> {
  return { connection: await connectionOf(kubeconfig), api: real.api, makeNamespace: real.makeNamespace }
}

export const INSTALLED = 'heartbeat-operator'
const part = (name: string) => readFileSync(new URL(`../../../manifests/parts/${name}.yaml`, import.meta.url), 'utf8')

/** The rights of the cluster-wide installation; resolves with the kubeconfig of its ServiceAccount. */
export async function installRights(): Promise<string> {
  await cluster.applyManifest(['namespace', 'service-accounts', 'rbac-lease', 'rbac'].map(part).join('\n---\n'))
  return kubeconfigOf(INSTALLED)
}

/** Those of the namespaced installation, in another namespace than its own, as its head tells people to do. */
export async function installNamespacedRights(namespace: string): Promise<string> {
  const texts = ['service-accounts', 'rbac-lease', 'rbac-namespaced'].map(part).join('\n---\n')
  await cluster.applyManifest(texts.replaceAll('namespace: heartbeat-operator', `namespace: ${namespace}`))
  return kubeconfigOf(namespace)
}

async function kubeconfigOf(namespace: string): Promise<string> {
  const token = await cluster.tokenFor(`${namespace}/heartbeat-operator`)
  return cluster.writeKubeconfig({ credential: { token }, namespace })
}

export interface PingPort extends AsyncDisposable {
  readonly url: string
}

/** The api role on a test's database: jobs ping there whatever the operator does. */
export async function startPingPort({ url: databaseUrl }: Pick<TestDatabase, 'url'>): Promise<PingPort> {
  const secretKey = Buffer.alloc(32, 7)
  const ports = { PING_PORT: '0', API_PORT: '0', OPS_PORT: '0' }
  const config = readConfig(
    { ROLE: 'api', DATABASE_URL: databaseUrl, SECRET_KEY: secretKey.toString('base64'), ...ports },
    false,
  )
  const app = createApp({ config, databaseUrl, secretKey, log: silentLog })
  const { ping } = await app.start()
  return { url: ping!, [Symbol.asyncDispose]: () => app.stop() }
}

/** A job that pings again and again, until it is stopped; resolves then with the statuses of all answers. */
export function startJob(url: () => string, everyMs = 100): { stop(): Promise<number[]> } {
  const stopping = new AbortController()
  const statuses: number[] = []
  const running = (async () => {
    while (!stopping.signal.aborted) {
      statuses.push((await fetch(url())).status)
      await systemClock.sleep(everyMs, stopping.signal)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
      return statuses
    },
  }
}
