/** What tests, benchmarks and scripts do with a control plane of the test bed. Knows nothing of vitest. */

import { execFile } from 'node:child_process'
import { createPrivateKey, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { stringify } from 'yaml'
import {
  type ApiAnswer,
  type ClusterAccess,
  certifyUser,
  type Kubeconfig,
  requestApi,
  serviceAccountKeyFile,
  writeKubeconfig,
} from '../../tools/cluster/control-plane-access.ts'
import type { Certified } from '../../tools/cluster/control-plane-certificates.ts'

export interface TestNamespace extends AsyncDisposable {
  readonly name: string
  /** Lets go of what a finalizer holds, and begins the deletion without waiting for its end. */
  remove(): Promise<void>
}

export interface Cluster extends ClusterAccess {
  /** Runs kubectl as the admin; resolves with its stdout, throws with what it said when it fails. */
  kubectl(...args: string[]): Promise<string>
  /** kubectl with a text on its stdin, or as another user. */
  kubectlWith(options: { input?: string; kubeconfigPath?: string }, ...args: string[]): Promise<string>
  /** `kubectl apply -f -` of YAML, of an object or of several; resolves with what kubectl printed. */
  applyManifest(manifest: string | object | readonly object[]): Promise<string>
  /** A new namespace of a name that no other test has. */
  makeNamespace(annotations?: Record<string, string>): Promise<TestNamespace>
  /**
   * One call as the admin; never throws for a status. A body is sent as JSON unless it is text already; `contentType`
   * default: application/merge-patch+json for PATCH, else application/json.
   */
  api(method: string, path: string, body?: unknown, contentType?: string): Promise<ApiAnswer>
  /** A token of `namespace/name` from the TokenRequest API, good for at least 10 minutes, as pods have it. */
  tokenFor(serviceAccount: string, seconds?: number): Promise<string>
  /**
   * A token like it, but signed here, so that it may be short or long past. The server remembers a token that it let in
   * for 10 s, and lets it in for as long even when it has expired meanwhile.
   */
  signToken(serviceAccount: string, seconds: number): Promise<string>
  /** A user with these groups, by certificate. */
  certifyUser(name: string, groups?: string[]): Promise<Certified>
  /** Resolves with the path of a kubeconfig for a token, token file or certificate, if wanted through a proxy. */
  writeKubeconfig(config: Kubeconfig): Promise<string>
}

/** Kinds of ours whose finalizer would keep a namespace that a test leaves behind, and meet the next test's operator. */
const HELD = '/apis/heartbeat-operator.io/v1/namespaces/NAMESPACE/heartbeatchecks'

export function openCluster(access: ClusterAccess): Cluster {
  const api: Cluster['api'] = (method, path, body, contentType) =>
    requestApi(access, path, { method, body, ...(contentType === undefined ? {} : { contentType }) })

  const kubectlWith: Cluster['kubectlWith'] = ({ input, kubeconfigPath = access.kubeconfigPath }, ...args) =>
    runKubectl(access, ['--kubeconfig', kubeconfigPath, ...args], input)

  async function expectOk(answer: Promise<ApiAnswer>): Promise<ApiAnswer['body']> {
    const { status, body } = await answer
    if (status >= 300) throw new Error(`the API server answered ${status}: ${body?.message ?? body}`)
    return body
  }

  async function makeNamespace(annotations: Record<string, string> = {}): Promise<TestNamespace> {
    const name = `test-${randomUUID().slice(0, 8)}`
    await expectOk(api('POST', '/api/v1/namespaces', { metadata: { name, annotations } }))
    const remove = async () => {
      await api('DELETE', `/api/v1/namespaces/${name}`)
      const path = HELD.replace('NAMESPACE', name)
      const { body } = await api('GET', path)
      const held: { metadata: { name: string; finalizers?: string[] } }[] = body?.items ?? []
      const free = { metadata: { finalizers: null } }
      await Promise.all(
        held
          .filter(({ metadata }) => metadata.finalizers !== undefined)
          .map(({ metadata }) => api('PATCH', `${path}/${metadata.name}`, free)),
      )
    }
    return { name, remove, [Symbol.asyncDispose]: remove }
  }

  async function tokenFor(serviceAccount: string, seconds = 3600): Promise<string> {
    const body = { spec: { expirationSeconds: seconds } }
    return (await expectOk(api('POST', `${accountPath(serviceAccount)}/token`, body))).status.token
  }

  async function signToken(serviceAccount: string, seconds: number): Promise<string> {
    const { metadata } = await expectOk(api('GET', accountPath(serviceAccount)))
    const key = createPrivateKey(await readFile(serviceAccountKeyFile(access.folder)))
    const now = Math.floor(Date.now() / 1000)
    const account = { namespace: metadata.namespace, serviceaccount: { name: metadata.name, uid: metadata.uid } }
    return new SignJWT({ 'kubernetes.io': account })
      .setProtectedHeader({ alg: 'ES256' })
      .setIssuer(ISSUER)
      .setAudience(ISSUER)
      .setSubject(`system:serviceaccount:${metadata.namespace}:${metadata.name}`)
      .setIssuedAt(Math.min(now, now + seconds) - 1)
      .setNotBefore(Math.min(now, now + seconds) - 1)
      .setExpirationTime(now + seconds)
      .setJti(randomUUID())
      .sign(key)
  }

  return {
    ...access,
    kubectl: (...args) => kubectlWith({}, ...args),
    kubectlWith,
    applyManifest: (manifest) => kubectlWith({ input: toYaml(manifest) }, 'apply', '-f', '-'),
    makeNamespace,
    api,
    tokenFor,
    signToken,
    certifyUser: (name, groups) => certifyUser(access, name, groups),
    writeKubeconfig: (config) => writeKubeconfig(access, config),
  }
}

const ISSUER = 'https://kubernetes.default.svc'

function accountPath(serviceAccount: string): string {
  const [namespace, name, ...rest] = serviceAccount.split('/')
  if (!namespace || !name || rest.length > 0) throw new Error(`${serviceAccount} is not of the form namespace/name`)
  return `/api/v1/namespaces/${namespace}/serviceaccounts/${name}`
}

function toYaml(manifest: string | object | readonly object[]): string {
  if (typeof manifest === 'string') return manifest
  const objects = Array.isArray(manifest) ? manifest : [manifest]
  return objects.map((object) => stringify(object)).join('---\n')
}

/** kubectl would write into the person's home; it gets a cache in the control plane's folder, gone with it. */
function runKubectl(access: ClusterAccess, args: readonly string[], input = ''): Promise<string> {
  const all = ['--cache-dir', join(access.folder, 'kubectl-cache'), ...args]
  const env = { PATH: process.env.PATH ?? '', HOME: access.folder }
  return new Promise((resolve, reject) => {
    const child = execFile(access.kubectlPath, all, { env, maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      reject(new Error(`kubectl ${args.slice(2).join(' ')} failed (${error.code}): ${stderr.trim()}`, { cause: error }))
    })
    child.stdin?.on('error', () => {}) // it may end without reading
    child.stdin?.end(input)
  })
}
