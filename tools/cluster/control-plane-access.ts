/**
 * How to reach a control plane of the test bed, and whom it lets in. `ClusterAccess` is plain data, so that it passes from
 * the run's set-up to the tests' processes.
 */

import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { stringify } from 'yaml'
import { type Certified, signClient } from './control-plane-certificates.ts'

export interface ClusterAccess {
  /** https://127.0.0.1:port */
  readonly server: string
  /** The control plane's own: keys, kubeconfigs. */
  readonly folder: string
  /** Of a kubeconfig for `admin` (system:masters), who may do anything. */
  readonly kubeconfigPath: string
  /** Of the file with the authority of the serving certificate; it changes when that is rotated. */
  readonly caPath: string
  readonly adminToken: string
  /** The program. */
  readonly kubectlPath: string
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Parsed when the answer says that it is JSON, else text. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API server answers; a test asserts the shape by reading it
  readonly body: any
}

export interface ApiRequest {
  /** Default GET. */
  readonly method?: string
  readonly body?: unknown
  /** Default application/json; for PATCH application/merge-patch+json. */
  readonly contentType?: string
  /** Default: the admin's. Null: none. */
  readonly token?: string | null
}

const REQUEST_MS = 30_000

/**
 * One call over a connection of its own, so that a server that was restarted meanwhile makes no difference. Every status
 * is an answer; it throws only where there is none.
 */
export async function requestApi(access: ClusterAccess, path: string, call: ApiRequest = {}): Promise<ApiAnswer> {
  const ca = await readFile(access.caPath)
  const { method = 'GET', body, token = access.adminToken } = call
  const type = call.contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(path, access.server),
      {
        method,
        ca,
        agent: false,
        timeout: REQUEST_MS,
        headers: {
          accept: 'application/json',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(text === undefined ? {} : { 'content-type': type }),
        },
      },
      (answer) => {
        let received = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          received += chunk
        })
        answer.once('error', reject).once('end', () => {
          const isJson = answer.headers['content-type']?.startsWith('application/json') === true
          const { statusCode = 0, headers } = answer
          // A redirect may say that it is JSON, and is empty.
          resolve({ status: statusCode, headers, body: isJson && received !== '' ? JSON.parse(received) : received })
        })
      },
    )
    sent.once('timeout', () => sent.destroy(new Error(`no answer to ${method} ${path} in ${REQUEST_MS} ms`)))
    sent.once('error', reject)
    sent.end(text)
  })
}

/** The fingerprint of the serving certificate that new connections see. Nothing is sent, so nothing has to be trusted. */
export function readServedCertificate(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

/** A client's credential: a token, a file that holds one, or a certificate. */
export type Credential = { readonly token: string } | { readonly tokenFile: string } | Certified

export interface Kubeconfig {
  readonly credential: Credential
  /** Default: the control plane's; a proxy's address to disturb the connection. */
  readonly server?: string
  /** Default: `default`. */
  readonly namespace?: string
  /** Default: a name of its own in the control plane's folder, gone with it. */
  readonly path?: string
  /** `embedded`, the default: the authority as it is now. `file`: a path to it, which follows a rotation. */
  readonly authority?: 'embedded' | 'file'
}

/** Writes a kubeconfig (0600) with one cluster, user and context, called `heartbeat`; resolves with its path. */
export async function writeKubeconfig(access: ClusterAccess, config: Kubeconfig): Promise<string> {
  const { credential, server = access.server, namespace = 'default', authority = 'embedded' } = config
  const path = config.path ?? join(access.folder, `${randomUUID()}.kubeconfig`)
  const trust =
    authority === 'file'
      ? { 'certificate-authority': access.caPath }
      : { 'certificate-authority-data': (await readFile(access.caPath)).toString('base64') }
  const text = stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'heartbeat', cluster: { server, ...trust } }],
    users: [{ name: 'heartbeat', user: describeUser(credential) }],
    contexts: [{ name: 'heartbeat', context: { cluster: 'heartbeat', user: 'heartbeat', namespace } }],
    'current-context': 'heartbeat',
  })
  await writeFile(path, text, { mode: 0o600 })
  return path
}

function describeUser(credential: Credential): Record<string, string> {
  if ('token' in credential) return { token: credential.token }
  if ('tokenFile' in credential) return { tokenFile: credential.tokenFile }
  return {
    'client-certificate-data': Buffer.from(credential.certificate).toString('base64'),
    'client-key-data': Buffer.from(credential.key).toString('base64'),
  }
}

/** A user of any name and groups, by certificate; takes effect at once. What they may do is RBAC's. */
export async function certifyUser(access: ClusterAccess, name: string, groups: string[] = []): Promise<Certified> {
  return signClient(JSON.parse(await readFile(clientAuthorityFile(access.folder), 'utf8')), name, groups)
}

export const clientAuthorityFile = (folder: string) => join(folder, 'keys', 'client-authority.json')
export const serviceAccountKeyFile = (folder: string) => join(folder, 'keys', 'service-account.key')
