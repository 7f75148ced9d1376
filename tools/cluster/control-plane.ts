/**
 * A Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager on loopback, without root and
 * without nodes. RBAC is on, anonymous access off. What a real cluster does with objects happens: validation, garbage
 * collection by owner reference, namespace deletion, CronJob to Job. Pods are made but never run.
 */

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPrograms } from '../programs/find.ts'
import type { ProgramName, Programs } from '../programs/programs.ts'
import { type ClusterAccess, readServedCertificate, requestApi, writeKubeconfig } from './control-plane-access.ts'
import { applyCrds } from './control-plane-crds.ts'
import { prepareKeys, replaceAuthority, replaceServerCertificate } from './control-plane-keys.ts'
import { pickPort } from './control-plane-ports.ts'
import { openHome, type ProgramProcess, quoteLog, startProgram } from './control-plane-process.ts'

export interface ControlPlaneOptions {
  /** Default: found, or built, which takes minutes the first time. */
  readonly programs?: Programs
  /** Files or folders of CustomResourceDefinitions, there before anything else happens. */
  readonly crds?: readonly string[]
  readonly apiserverFlags?: readonly string[]
  /** Where the API server listens; default 127.0.0.1. Nodes and pods need another, which the Service `kubernetes` leads to. */
  readonly address?: string
  /** Default: a temporary one, gone after `stop`. A folder that is named is kept, and its objects come back. */
  readonly dataFolder?: string
  /** Default: `logs` in the data folder. */
  readonly logFolder?: string
  /** A program ended by itself; the message quotes its log. */
  readonly onLost?: (message: string) => void
}

/** In a namespace. */
export interface StoredObject {
  /** Of a custom resource with its group: `heartbeat-operator.io/heartbeatchecks`. */
  readonly plural: string
  readonly object: { readonly metadata: { readonly namespace: string; readonly name: string } }
}

export interface ControlPlane extends ClusterAccess, AsyncDisposable {
  /** Of Kubernetes: `1.36.3`. */
  readonly version: string
  readonly port: number
  /** Ends everything at once (kill -9) and removes the data, unless `dataFolder` was given. */
  stop(): Promise<void>
  /** By kill -9: every connection breaks. (In order, with open watches, it would take the server a minute.) */
  stopApiServer(): Promise<void>
  /** Same address, same data. Resolves when it is ready. */
  startApiServer(): Promise<void>
  restartApiServer(): Promise<void>
  /** Holds the server (SIGSTOP): connections stay open and can be made, nothing answers. */
  pauseApiServer(): void
  resumeApiServer(): void
  restartControllers(): Promise<void>
  /** For objects whose status the test writes: CronJobs make no Jobs, and nothing is deleted by limits of a history. */
  stopControllers(): Promise<void>
  /**
   * Writes objects into etcd past the API server: 2,000 in a second. They are not validated, and need a uid and a
   * creationTimestamp.
   */
  store(objects: Iterable<StoredObject>): Promise<void>
  /** Everything is lost, as with a cluster that was rebuilt: only address, tokens and CRDs of `crds` are as before. */
  emptyEtcd(): Promise<void>
  /**
   * Restarts the server and leaves it no old version, in etcd or in its caches: a list that was begun before, and a watch
   * from before, answer 410.
   */
  forgetHistory(): Promise<void>
  /**
   * A new serving certificate without a restart. `authority: 'new'` signs it by a new authority, and rewrites the admin's
   * kubeconfig and the file at `caPath`. Open connections go on; resolves when new ones see the new certificate.
   */
  rotateCertificate(options?: { authority?: 'same' | 'new' }): Promise<void>
}

const LOOPBACK = '127.0.0.1'
/** Of the Service `kubernetes`: the first of the range. */
const SERVICE_ADDRESS = '10.96.0.1'
const START_MS = 60_000
const POLL_MS = 50
/** Another process may take a port in the same instant. */
const ATTEMPTS = 3
const DEFAULT_ACCOUNT = '/api/v1/namespaces/default/serviceaccounts/default'
const ROOT_CA_MAP = '/api/v1/namespaces/default/configmaps/kube-root-ca.crt'

/** Resolves when the server is ready, the CRDs are established and the controllers run: about 4 s. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const programs = options.programs ?? (await findPrograms())
  for (let attempt = 1; ; attempt += 1)
    try {
      return await start(programs, options)
    } catch (error) {
      if (attempt === ATTEMPTS || !/address already in use/.test(String(error))) throw error
    }
}

async function start(programs: Programs, options: ControlPlaneOptions): Promise<ControlPlane> {
  const { crds = [], address = LOOPBACK, dataFolder, logFolder } = options
  const home = await openHome({
    ...(dataFolder === undefined ? {} : { folder: dataFolder }),
    ...(logFolder === undefined ? {} : { logs: logFolder }),
  })
  const hosts = address === LOOPBACK ? [] : [address, SERVICE_ADDRESS]
  const keys = await prepareKeys(home.path, hosts)
  const [etcdPort, apiPort] = [await pickPort(), await pickPort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const access: ClusterAccess = {
    server: `https://${address}:${apiPort}`,
    folder: home.path,
    kubeconfigPath: join(home.path, 'admin.kubeconfig'),
    caPath: keys.caPath,
    adminToken: keys.adminToken,
    kubectlPath: programs.paths.kubectl,
  }
  const controllersKubeconfig = join(home.path, 'kube-controller-manager.kubeconfig')
  const running = new Map<ProgramName, ProgramProcess>()

  let hasStarted = false
  async function tellLost(program: ProgramProcess): Promise<void> {
    // Before, the start itself fails and says so.
    if (hasStarted) options.onLost?.(`${program.name} ended by itself; ${await quoteLog(program)}`)
  }

  const run = (name: ProgramName, args: readonly string[]) =>
    running.set(name, startProgram({ name, path: programs.paths[name], args, home, onLost: tellLost }))

  async function end(name: ProgramName): Promise<void> {
    await running.get(name)?.kill()
    running.delete(name)
  }

  /** Polls until it is so; a program that ends meanwhile, or the time, is an error that quotes its log. */
  async function until(what: string, name: ProgramName, isSo: () => Promise<boolean>): Promise<void> {
    const program = running.get(name)
    if (program === undefined) throw new Error(`${name} does not run: start it first`)
    for (const limit = performance.now() + START_MS; !(await isSo().catch(() => false)); await sleep(POLL_MS)) {
      if (program.hasEnded()) throw new Error(`${name} ended before ${what}; ${await quoteLog(program)}`)
      if (performance.now() > limit) throw new Error(`${START_MS} ms passed before ${what}; ${await quoteLog(program)}`)
    }
  }

  async function startEtcd(): Promise<void> {
    run('etcd', [
      ...[`--data-dir=${join(home.path, 'etcd')}`, '--log-level=warn'],
      ...[`--listen-client-urls=${etcdUrl}`, `--advertise-client-urls=${etcdUrl}`],
      // It has no peers; port 0 spares a port that could be taken.
      ...['--listen-peer-urls=http://127.0.0.1:0', '--initial-advertise-peer-urls=http://127.0.0.1:0'],
      '--initial-cluster=default=http://127.0.0.1:0',
      ...(dataFolder === undefined ? ['--unsafe-no-fsync'] : []),
    ])
    await until('etcd is healthy', 'etcd', async () => (await fetch(`${etcdUrl}/health`)).ok)
  }

  async function startApiServer(): Promise<void> {
    run('kube-apiserver', [
      ...[`--etcd-servers=${etcdUrl}`, `--bind-address=${address}`, `--secure-port=${apiPort}`],
      ...[`--advertise-address=${address}`, '--service-cluster-ip-range=10.96.0.0/16'],
      // A loopback address is no endpoint that the Service `kubernetes` could have.
      `--endpoint-reconciler-type=${address === LOOPBACK ? 'none' : 'lease'}`,
      ...[`--tls-cert-file=${keys.serverCertificate}`, `--tls-private-key-file=${keys.serverKey}`],
      ...['--authorization-mode=Node,RBAC', '--anonymous-auth=false', `--token-auth-file=${keys.tokensFile}`],
      ...[`--client-ca-file=${keys.clientCaPath}`, '--service-account-issuer=https://kubernetes.default.svc'],
      `--service-account-key-file=${keys.serviceAccountKey}`,
      `--service-account-signing-key-file=${keys.serviceAccountKey}`,
      ...(options.apiserverFlags ?? []),
    ])
    await until('it is ready', 'kube-apiserver', async () => (await requestApi(access, '/readyz')).status === 200)
  }

  async function startControllers(): Promise<void> {
    await requestApi(access, ROOT_CA_MAP, { method: 'DELETE' })
    const credential = { token: keys.controllersToken }
    await writeKubeconfig(access, { credential, path: controllersKubeconfig })
    run('kube-controller-manager', [
      ...[`--kubeconfig=${controllersKubeconfig}`, '--leader-elect=false', '--use-service-account-credentials'],
      // It serves nothing that we need. Its own limit of 20 calls a second would double the time of the start.
      ...['--secure-port=0', '--kube-api-qps=500', '--kube-api-burst=1000'],
      ...[`--service-account-private-key-file=${keys.serviceAccountKey}`, `--root-ca-file=${keys.caPath}`],
    ])
    await until('it has begun its work', 'kube-controller-manager', haveControllersBegun)
  }

  /**
   * Pods need the default service account, which they make once. The map they make again whenever it is gone, which is how
   * it shows that those of an earlier start, who made both, were followed by new ones.
   */
  async function haveControllersBegun(): Promise<boolean> {
    const [account, map] = await Promise.all([requestApi(access, DEFAULT_ACCOUNT), requestApi(access, ROOT_CA_MAP)])
    return account.status === 200 && map.status === 200
  }

  async function startAll(): Promise<void> {
    await startEtcd()
    await startApiServer()
    await writeKubeconfig(access, { credential: { token: keys.adminToken }, path: access.kubeconfigPath })
    // Before the controllers start: garbage collector and namespace controller look for new kinds only every 30 s.
    await applyCrds(access, crds)
    await startControllers()
  }

  async function stop(): Promise<void> {
    await Promise.all([...running.keys()].reverse().map((name) => end(name)))
    await home.close()
  }

  try {
    await startAll()
    hasStarted = true
  } catch (error) {
    await stop()
    throw error
  }
  return {
    ...access,
    version: programs.version,
    port: apiPort,
    stop,
    [Symbol.asyncDispose]: stop,
    stopApiServer: () => end('kube-apiserver'),
    startApiServer,
    async restartApiServer() {
      await end('kube-apiserver')
      await startApiServer()
    },
    pauseApiServer: () => running.get('kube-apiserver')?.signal('SIGSTOP'),
    resumeApiServer: () => running.get('kube-apiserver')?.signal('SIGCONT'),
    async restartControllers() {
      await end('kube-controller-manager')
      await startControllers()
    },
    stopControllers: () => end('kube-controller-manager'),
    store: (objects) => storeObjects(etcdUrl, objects),
    async emptyEtcd() {
      await Promise.all([...running.keys()].map((name) => end(name)))
      await rm(join(home.path, 'etcd'), { recursive: true, force: true })
      await startAll()
    },
    async forgetHistory() {
      await end('kube-apiserver')
      const { header } = (await callEtcd(etcdUrl, 'range', { key: 'AA==' })) as { header: { revision: string } }
      await callEtcd(etcdUrl, 'compaction', { revision: header.revision, physical: true })
      await startApiServer()
    },
    async rotateCertificate({ authority = 'same' } = {}) {
      const before = await readServedCertificate(apiPort)
      if (authority === 'same') await replaceServerCertificate(home.path, keys, hosts)
      else await replaceAuthority(home.path, keys, hosts)
      const isServed = async () => (await readServedCertificate(apiPort)) !== before
      await until('it serves the new certificate', 'kube-apiserver', isServed)
      if (authority === 'same') return
      await writeKubeconfig(access, { credential: { token: keys.adminToken }, path: access.kubeconfigPath })
      // They read their kubeconfig and the authority that they hand to pods only when they start.
      await end('kube-controller-manager')
      await startControllers()
    },
  }
}

const AT_ONCE = 16

/**
 * Each object gets a revision of its own, as from the API server. A watch that ends between two objects of one
 * revision, as the API server ends a slow one, goes on after that revision: the rest of a transaction would be lost.
 */
async function storeObjects(etcdUrl: string, objects: Iterable<StoredObject>): Promise<void> {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const rest = Iterator.from(objects)
  const write = async () => {
    for (const { plural, object } of rest) {
      const key = encode(`/registry/${plural}/${object.metadata.namespace}/${object.metadata.name}`)
      await callEtcd(etcdUrl, 'put', { key, value: encode(JSON.stringify(object)) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, write))
}

/** etcd's JSON gateway; byte strings are base64. */
async function callEtcd(etcdUrl: string, verb: 'range' | 'compaction' | 'put', body: object): Promise<unknown> {
  const answer = await fetch(`${etcdUrl}/v3/kv/${verb}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd refused ${verb}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}
