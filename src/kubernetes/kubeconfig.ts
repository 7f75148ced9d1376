/**
 * A context of a kubeconfig and its credentials, through `@kubernetes/client-node`, which supports plugins and OIDC.
 * Nothing else of that library is used, and it is imported only when there is a kubeconfig: the import costs 0.5 s and
 * 33 MB.
 */

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Cluster, User } from '@kubernetes/client-node'
import { type Account, ANONYMOUS, type ExecPlugin, KubeconfigError, mergeFiles } from './kubeconfig-files.ts'

export { KubeconfigError } from './kubeconfig-files.ts'

/** The credentials of one request. */
export interface Authentication {
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly tls: TlsMaterial
}

export interface TlsMaterial {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

export interface Kubeconfig {
  readonly context: string
  readonly source: string
  readonly server: string
  readonly namespace: string
  readonly proxyUrl: string | null
  /** Reads the files that it names again, and runs its plugin when the last credentials of that have expired. */
  authenticate(): Promise<Authentication>
}

/** Throws KubeconfigError. @param context the one to use; null for the current one. */
export async function loadKubeconfig(files: readonly string[], context: string | null): Promise<Kubeconfig> {
  const entries = await mergeFiles(files)
  const name = context ?? entries.currentContext
  const list = files.join(', ')
  if (!name) throw new KubeconfigError(`${list} has no current context. Choose one: kubectl config use-context NAME`)
  const chosen = entries.contexts.get(name)
  if (chosen === undefined) {
    const known = [...entries.contexts.keys()].join(', ') || 'none'
    throw new KubeconfigError(
      `The context "${name}" is not in ${list} (there: ${known}). Choose one: kubectl config use-context NAME`,
    )
  }
  const source = `context "${name}" of ${chosen.file}`
  const cluster = entries.clusters.get(chosen.value.cluster)?.value
  if (cluster === undefined)
    throw new KubeconfigError(
      `The ${source} needs the cluster "${chosen.value.cluster}", which is not there or has no server. Choose another context, or add it: kubectl config set-cluster`,
    )
  const user = chosen.value.user === undefined ? ANONYMOUS : entries.users.get(chosen.value.user)?.value
  if (user === undefined)
    throw new KubeconfigError(
      `The ${source} needs the user "${chosen.value.user}", which is not there. Choose another context, or add it: kubectl config set-credentials`,
    )
  const kubeconfig: Kubeconfig = {
    context: name,
    source,
    server: readServer(cluster.server, source),
    namespace: chosen.value.namespace ?? 'default',
    proxyUrl: readProxy(cluster.proxyUrl, source),
    authenticate: await createAuthenticate(cluster, user, source),
  }
  // Its files are checked now and not at the first request. A plugin is not run yet: it may be slow or interactive.
  if (user.user.exec == null && user.user.authProvider == null) checkMaterial(await kubeconfig.authenticate(), source)
  return kubeconfig
}

function readServer(server: string, source: string): string {
  if (/^https?:$/.test(URL.parse(server)?.protocol ?? '')) return server.replace(/\/+$/, '')
  throw new KubeconfigError(`The server of the ${source} is not an http(s) address. Set it: kubectl config set-cluster`)
}

function readProxy(proxyUrl: string | undefined, source: string): string | null {
  if (!proxyUrl) return null
  if (/^https?:$/.test(URL.parse(proxyUrl)?.protocol ?? '')) return proxyUrl
  throw new KubeconfigError(
    `The proxy-url of the ${source} is not an http(s) address, and no other proxy is supported.`,
  )
}

async function createAuthenticate(cluster: Cluster, account: Account, source: string) {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  const { user, tokenFile, groups } = account
  config.loadFromOptions({
    // client-node accepts plain HTTP only together with this.
    clusters: [{ ...cluster, skipTLSVerify: cluster.skipTLSVerify || cluster.server.startsWith('http:') }],
    users: [user],
    contexts: [{ name: 'chosen', cluster: cluster.name, user: user.name }],
    currentContext: 'chosen',
  })
  return async (): Promise<Authentication> => {
    const options: RequestOptions = {}
    let token: string | undefined
    try {
      await config.applyToHTTPSOptions(options)
      if (tokenFile !== undefined) token = (await readFile(tokenFile, 'utf8')).trim()
    } catch (error) {
      throw explain(error, user, source)
    }
    const headers: Record<string, string | string[]> = {}
    for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value)
    if (options.auth != null) headers.Authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
    if (token !== undefined) headers.Authorization = `Bearer ${token}`
    if (groups.length > 0) headers['Impersonate-Group'] = [...groups]
    return { headers, tls: readTls(options) }
  }
}

function readTls({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): TlsMaterial {
  return {
    ...(ca == null ? {} : { ca: String(ca) }),
    ...(cert == null ? {} : { cert: String(cert) }),
    ...(key == null ? {} : { key: String(key) }),
    ...(servername === undefined ? {} : { servername }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  }
}

function checkMaterial({ tls: { ca, cert, key } }: Authentication, source: string): void {
  try {
    if (ca !== undefined) new X509Certificate(ca)
  } catch {
    throw new KubeconfigError(
      `The certificate-authority of the ${source} is not a PEM certificate. Write the kubeconfig again.`,
    )
  }
  try {
    createSecureContext({ ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) })
  } catch {
    throw new KubeconfigError(
      `The client certificate of the ${source} and its key are not PEM, or do not belong together. Write the kubeconfig again.`,
    )
  }
}

const MAX_QUOTE_LENGTH = 300

/** Without a cause: the output of a plugin may be a credential, and JSON.parse quotes it. */
function explain(error: unknown, user: User, source: string): KubeconfigError {
  const { code, syscall, path, message } = error as NodeJS.ErrnoException
  const plugin = (user.exec as ExecPlugin | null | undefined)?.command
  if (plugin !== undefined && (syscall === undefined || syscall.startsWith('spawn'))) {
    const name = `The credential plugin "${plugin}" of the ${source}`
    if (code !== undefined)
      return new KubeconfigError(`${name} cannot be started (${code}). Install it, or fix its path.`)
    if (error instanceof SyntaxError || error instanceof TypeError)
      return new KubeconfigError(`${name} printed something else than an ExecCredential. Run it by hand to see why.`)
    return new KubeconfigError(`${name} failed. It said: ${message.trim().slice(0, MAX_QUOTE_LENGTH)}`)
  }
  if (path !== undefined)
    return new KubeconfigError(`The ${source} names ${path}, which cannot be read (${code}). Fix the path or the file.`)
  return new KubeconfigError(`The ${source} could not log in. Try it: kubectl get --raw /version`)
}
