/**
 * Reads kubeconfig files as kubectl does, with the authentication of `@kubernetes/client-node` (exec plugins, OIDC). Of that
 * library nothing else is used, and it is imported only here and only when there is a file: it costs 0.5 s and 33 MB.
 *
 * What we do ourselves, because it does not: several files where the first to say something wins, `tokenFile`, plugins
 * relative to their file, and messages that name the file and never quote it.
 */

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { dirname, isAbsolute, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { Cluster, Context, User } from '@kubernetes/client-node'

/** There is a kubeconfig and it is of no use as it is. The message says which file, which context, and what to do. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError'
}

/** What one request needs to be let in. */
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
  /** Reads the files anew that it names, and asks its plugin when what that said has expired. */
  authenticate(): Promise<Authentication>
}

/** @param context the one to use; null for the current one. */
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
  // The files it names, now and not at the first request. A plugin may be slow or want a person, so it waits.
  if (user.user.exec == null && user.user.authProvider == null) checkMaterial(await kubeconfig.authenticate(), source)
  return kubeconfig
}

/** A user with what client-node leaves out. */
interface Account {
  readonly user: User
  readonly tokenFile: string | undefined
  readonly groups: readonly string[]
}

const ANONYMOUS: Account = { user: { name: 'anonymous' }, tokenFile: undefined, groups: [] }

interface Found<T> {
  readonly file: string
  readonly value: T
}

interface Entries {
  currentContext: string | undefined
  readonly clusters: Map<string, Found<Cluster>>
  readonly contexts: Map<string, Found<Context>>
  readonly users: Map<string, Found<Account>>
}

/** Of several files the first to name something wins, and those that are not there are passed over, as kubectl does it. */
async function mergeFiles(files: readonly string[]): Promise<Entries> {
  const entries: Entries = { currentContext: undefined, clusters: new Map(), contexts: new Map(), users: new Map() }
  let found = 0
  for (const file of files) {
    const text = await readKubeconfigFile(file)
    if (text === null) continue
    found += 1
    await addEntries(entries, file, text)
  }
  if (found === 0)
    throw new KubeconfigError(
      `KUBECONFIG names ${files.join(', ')}, which is not there. Put the kubeconfig there, name another, or unset KUBECONFIG.`,
    )
  return entries
}

async function readKubeconfigFile(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new KubeconfigError(
      `The kubeconfig ${file} cannot be read (${code}). Make it a file that this process may read.`,
    )
  }
}

interface RawUsers {
  readonly users?: readonly { readonly name?: string; readonly user?: RawUser | null }[]
}

interface RawUser {
  readonly tokenFile?: string
  readonly 'as-groups'?: readonly string[]
}

async function addEntries(entries: Entries, file: string, text: string): Promise<void> {
  const { KubeConfig, loadYaml } = await importClient()
  const read = new KubeConfig()
  let raw: RawUsers | null
  try {
    raw = loadYaml<RawUsers | null>(text)
    if (raw === null || raw === undefined) return
    read.loadFromString(text, { onInvalidEntry: 'filter' })
  } catch (error) {
    // The parser's own message quotes the lines around, credentials among them.
    const line = (error as { mark?: { line?: number } }).mark?.line
    const where = line === undefined ? '' : ` (line ${line + 1})`
    throw new KubeconfigError(`${file} is no kubeconfig: it cannot be parsed as YAML${where}. Mend or replace it.`)
  }
  const folder = dirname(resolve(file))
  read.makePathsAbsolute(folder)
  const add = <T>(map: Map<string, Found<T>>, name: string, value: T) => {
    if (!map.has(name)) map.set(name, { file, value })
  }
  entries.currentContext ||= read.currentContext
  for (const cluster of read.clusters) add(entries.clusters, cluster.name, cluster)
  for (const context of read.contexts) add(entries.contexts, context.name, context)
  for (const user of read.users) {
    const own = raw.users?.find(({ name }) => name === user.name)?.user
    add(entries.users, user.name, {
      user: withPlugin(user, folder),
      tokenFile: own?.tokenFile === undefined ? undefined : resolve(folder, own.tokenFile),
      groups: own?.['as-groups'] ?? [],
    })
  }
}

interface ExecPlugin {
  readonly apiVersion?: string
  readonly command?: string
  readonly env?: readonly { name: string; value: string }[] | null
}

/** Some plugins refuse to work without KUBERNETES_EXEC_INFO, which client-node does not give them. */
function withPlugin(user: User, folder: string): User {
  const exec = user.exec as ExecPlugin | null | undefined
  if (exec?.command === undefined) return user
  const { command, apiVersion, env } = exec
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  const isRelative = command.includes('/') && !isAbsolute(command)
  return {
    ...user,
    exec: {
      ...exec,
      command: isRelative ? resolve(folder, command) : command,
      env: [{ name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }, ...(env ?? [])],
    },
  }
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
  const { KubeConfig } = await importClient()
  const config = new KubeConfig()
  const { user, tokenFile, groups } = account
  config.loadFromOptions({
    // client-node takes plain HTTP only together with this.
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
      `The certificate-authority of the ${source} is no PEM certificate. Write the kubeconfig anew.`,
    )
  }
  try {
    createSecureContext({ ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) })
  } catch {
    throw new KubeconfigError(
      `The client certificate of the ${source} and its key are no PEM, or do not belong together. Write the kubeconfig anew.`,
    )
  }
}

const LONGEST_QUOTE = 300

/** Without the cause: what a plugin printed may be a credential, and JSON.parse quotes it. */
function explain(error: unknown, user: User, source: string): KubeconfigError {
  const { code, syscall, path, message } = error as NodeJS.ErrnoException
  const plugin = (user.exec as ExecPlugin | null | undefined)?.command
  if (plugin !== undefined && (syscall === undefined || syscall.startsWith('spawn'))) {
    const name = `The credential plugin "${plugin}" of the ${source}`
    if (code !== undefined)
      return new KubeconfigError(`${name} cannot be started (${code}). Install it, or mend its path.`)
    if (error instanceof SyntaxError || error instanceof TypeError)
      return new KubeconfigError(`${name} printed something else than an ExecCredential. Run it by hand to see why.`)
    return new KubeconfigError(`${name} failed. It said: ${message.trim().slice(0, LONGEST_QUOTE)}`)
  }
  if (path !== undefined)
    return new KubeconfigError(
      `The ${source} names ${path}, which cannot be read (${code}). Mend the path or the file.`,
    )
  return new KubeconfigError(`The ${source} could not log in. Try it: kubectl get --raw /version`)
}

function importClient() {
  return import('@kubernetes/client-node')
}
