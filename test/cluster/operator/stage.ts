/** What the tests of the operator on a real API server share: its rights, the ping port, and a job. */

import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster } from '../../support/cluster.ts'
import type { Cluster } from '../../support/cluster-client.ts'
import type { TestDatabase } from '../../support/database.ts'
import { connectionOf } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'
import { eventually } from '../../support/until.ts'
import type { TestCluster } from '../../support/workplace.ts'
import { requestApi } from '../control-plane-access.ts'

/** A real cluster, which the operator reaches by this kubeconfig. */
export async function reach(real: Cluster, kubeconfig = real.kubeconfigPath): Promise<TestCluster> {
  return { connection: await connectionOf(kubeconfig), api: real.api, makeNamespace: real.makeNamespace }
}

export const INSTALLED = 'heartbeat-operator'
const part = (name: string) => readFileSync(new URL(`../../../manifests/parts/${name}.yaml`, import.meta.url), 'utf8')

/** The rights of the cluster-wide installation; resolves with the kubeconfig of its ServiceAccount. */
export async function installRights(): Promise<string> {
  await cluster.applyManifest(
    ['namespace', 'service-accounts', 'rbac-lease', 'rbac', 'rbac-cronjobs', 'admission-policy']
      .map(part)
      .join('\n---\n'),
  )
  return kubeconfigOf(INSTALLED)
}

/** Resolves when the API server enforces the policy of the cluster-wide installation: a moment after it was applied. */
export async function whenPolicyIsEnforced(): Promise<void> {
  const token = await cluster.tokenFor(`${INSTALLED}/heartbeat-operator`)
  const body = { metadata: { name: 'without-owner' } }
  await eventually('the policy is enforced', async () => {
    const path = '/api/v1/namespaces/default/configmaps?dryRun=All'
    return (await requestApi(cluster, path, { method: 'POST', body, token })).status === 422
  })
}

/** Those of the namespaced installation, in another namespace than its own, as its head tells people to do; or without those of CronJobs. */
export async function installNamespacedRights(namespace: string, ofCronJobs = true): Promise<string> {
  const names = [
    'service-accounts',
    'rbac-lease',
    'rbac-namespaced',
    ...(ofCronJobs ? ['rbac-cronjobs-namespaced'] : []),
  ]
  const texts = names.map(part).join('\n---\n')
  await cluster.applyManifest(texts.replaceAll('namespace: heartbeat-operator', `namespace: ${namespace}`))
  return kubeconfigOf(namespace)
}

/**
 * Those of `rbac.secrets: namespaces`, of an account in this namespace: nothing of Secrets before the role is bound. Resolves with the
 * account as `namespace:name`.
 */
export async function installPublisherRights(home: string): Promise<string> {
  const [role, binding] = parseAllDocuments(part('rbac')).map((document) => document.toJS())
  const metadata = { name: `${home}-controller` }
  const rules = role.rules.filter(({ resources }: { resources: string[] }) => !resources.includes('secrets'))
  const subjects = [{ ...binding.subjects[0], namespace: home }]
  const roleRef = { ...binding.roleRef, name: metadata.name }
  const accounts = ['service-accounts', 'rbac-lease'].map(part).join('\n---\n')
  await cluster.applyManifest(accounts.replaceAll('namespace: heartbeat-operator', `namespace: ${home}`))
  await cluster.applyManifest(part('rbac-publisher'))
  await cluster.applyManifest([
    { ...role, metadata, rules },
    { ...binding, metadata, subjects, roleRef },
  ])
  return `${home}:heartbeat-operator`
}

/** An account with the rights of the cluster-wide installation, which no admission policy names; resolves with `namespace/name`. */
export async function grantWithoutPolicy(namespace: string): Promise<string> {
  await cluster.kubectl('-n', namespace, 'create', 'serviceaccount', 'unlimited')
  const account = `--serviceaccount=${namespace}:unlimited`
  for (const role of ['heartbeat-operator', 'heartbeat-operator-cronjobs'])
    await cluster.kubectl('create', 'clusterrolebinding', `${namespace}-${role}`, `--clusterrole=${role}`, account)
  return `${namespace}/unlimited`
}

export async function kubeconfigOf(namespace: string): Promise<string> {
  const token = await cluster.tokenFor(`${namespace}/heartbeat-operator`)
  return cluster.writeKubeconfig({ credential: { token }, namespace })
}

/** Lets the resources go that other files left in a namespace that is being deleted: an operator with another database leaves them to their owner. */
export async function releaseDeleted(): Promise<void> {
  const group = '/apis/heartbeat-operator.io/v1'
  const { body } = await cluster.api('GET', `${group}/heartbeatchecks`)
  const deleted = (body.items as KubernetesObject[]).filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
  for (const { metadata } of deleted)
    await cluster.api('PATCH', `${group}/namespaces/${metadata.namespace}/heartbeatchecks/${metadata.name}`, {
      metadata: { finalizers: null },
    })
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
