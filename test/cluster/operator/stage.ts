/** What the tests of the operator on a real API server share: its rights, the ping port, and a job. */

import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import type { OperatorOptions } from '../../../src/operator/operator.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { requestApi } from '../../../tools/cluster/control-plane-access.ts'
import { cluster } from '../../support/cluster.ts'
import type { Cluster } from '../../support/cluster-client.ts'
import type { TestDatabase } from '../../support/database.ts'
import { connectionOf, startScene } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import type { TestCluster } from '../../support/workplace.ts'

/** A real cluster, which the operator reaches by this kubeconfig. */
export async function reach(real: Cluster, kubeconfig = real.kubeconfigPath): Promise<TestCluster> {
  return { connection: await connectionOf(kubeconfig), api: real.api, makeNamespace: real.makeNamespace }
}

interface InstalledObject {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly rules?: readonly { readonly resources: readonly string[] }[]
}

/** The namespace of the installations in manifests/. */
export const INSTALLED = 'heartbeat-operator'
/** The account of their controller. */
export const ACCOUNT = 'heartbeat-operator-controller'
const RIGHTS = ['Namespace', 'ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding']
const POLICY = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']
/** Beginning of the names of what the cluster-wide installation has of the cluster. */
const PREFIX = `${INSTALLED}-${INSTALLED}`

function readInstallation(name: 'install' | 'install-namespaced'): readonly InstalledObject[] {
  const text = readFileSync(new URL(`../../../manifests/${name}.yaml`, import.meta.url), 'utf8')
  return parseAllDocuments(text).map((document) => document.toJS() as InstalledObject)
}

/** In another namespace, as the heads of the manifests tell people to do; what is the cluster's has another name there. */
function moveTo(namespace: string, objects: readonly InstalledObject[]): readonly InstalledObject[] {
  const names = JSON.stringify(objects).replaceAll(`"${PREFIX}-`, `"${INSTALLED}-${namespace}-`)
  return JSON.parse(names.replaceAll(`"namespace":"${INSTALLED}"`, `"namespace":"${namespace}"`))
}

/** The rights of the cluster-wide installation; resolves with the kubeconfig of its ServiceAccount. */
export async function installRights(): Promise<string> {
  const wanted = [...RIGHTS, ...POLICY]
  await cluster.applyManifest(readInstallation('install').filter(({ kind }) => wanted.includes(kind)))
  return kubeconfigOf(INSTALLED)
}

/** A scene whose operator has the rights of the cluster-wide installation, from the first test of the file to its last. */
export const useInstalled = (changes: Partial<OperatorOptions> = {}, environment: Record<string, string> = {}) =>
  use(async () => startScene(await reach(cluster, await installRights()), changes, INSTALLED, environment))

/** Resolves when the API server enforces the policy of the cluster-wide installation: a moment after it was applied. */
export async function whenPolicyIsEnforced(): Promise<void> {
  const token = await cluster.tokenFor(`${INSTALLED}/${ACCOUNT}`)
  const body = { metadata: { name: 'without-owner' } }
  await eventually('the policy is enforced', async () => {
    const path = '/api/v1/namespaces/default/configmaps?dryRun=All'
    return (await requestApi(cluster, path, { method: 'POST', body, token })).status === 422
  })
}

/** Those of the namespaced installation, in another namespace than its own; or without those of CronJobs. */
export async function installNamespacedRights(namespace: string, ofCronJobs = true): Promise<string> {
  const objects = readInstallation('install-namespaced').filter(
    ({ kind, metadata }) =>
      RIGHTS.includes(kind) && kind !== 'Namespace' && (ofCronJobs || !metadata.name.endsWith('-cronjobs')),
  )
  await cluster.applyManifest(moveTo(namespace, objects))
  return kubeconfigOf(namespace)
}

/**
 * Those of `rbac.secrets: namespaces`, of an account in this namespace: nothing of Secrets before the role is bound.
 * Resolves with the account as `namespace:name`, and with the role.
 */
export async function installPublisherRights(home: string): Promise<{ account: string; role: string }> {
  const ofCronJobs = (name: string) => name.endsWith('-cronjobs')
  const objects = readInstallation('install')
    .filter(({ kind, metadata }) => RIGHTS.includes(kind) && kind !== 'Namespace' && !ofCronJobs(metadata.name))
    .map((object) => (object.metadata.name === `${PREFIX}-controller` ? withoutSecrets(object) : object))
  await cluster.applyManifest(moveTo(home, objects))
  return { account: `${home}:${ACCOUNT}`, role: `${INSTALLED}-${home}-publisher` }
}

function withoutSecrets({ rules, ...rest }: InstalledObject): InstalledObject {
  return rules === undefined
    ? rest
    : { ...rest, rules: rules.filter(({ resources }) => !resources.includes('secrets')) }
}

/** An account with the rights of the cluster-wide installation, which no admission policy names; resolves with `namespace/name`. */
export async function grantWithoutPolicy(namespace: string): Promise<string> {
  await cluster.kubectl('-n', namespace, 'create', 'serviceaccount', 'unlimited')
  const account = `--serviceaccount=${namespace}:unlimited`
  for (const role of ['controller', 'cronjobs'])
    await cluster.kubectl(
      ...['create', 'clusterrolebinding', `${namespace}-${role}`, `--clusterrole=${PREFIX}-${role}`, account],
    )
  return `${namespace}/unlimited`
}

export async function kubeconfigOf(namespace: string): Promise<string> {
  const token = await cluster.tokenFor(`${namespace}/${ACCOUNT}`)
  return cluster.writeKubeconfig({ credential: { token }, namespace })
}

/** Lets the resources go that other files left in a namespace that is being deleted: an operator with another database leaves them to their owner. */
export async function releaseDeleted(): Promise<void> {
  const group = '/apis/heartbeat-operator.io/v1'
  for (const plural of ['heartbeatchecks', 'heartbeatchannels', 'heartbeatsilences']) {
    const { body } = await cluster.api('GET', `${group}/${plural}`)
    const deleted = (body.items as KubernetesObject[]).filter(
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    )
    for (const { metadata } of deleted)
      await cluster.api('PATCH', `${group}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`, {
        metadata: { finalizers: null },
      })
  }
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
