/**
 * The address of the cluster and our credentials, searched in controller-runtime's order: the files of KUBECONFIG, the
 * ServiceAccount of this pod, and ~/.kube/config where the caller asks for it.
 *
 * Tokens and certificates change while we run (a projected token lives for an hour), so credentials are read again
 * every half a minute, and immediately when the API server rejects them.
 */

import { access, readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { delimiter, join } from 'node:path'
import type { Clock } from '../runtime/clock.ts'
import { type Authentication, KubeconfigError, loadKubeconfig, type TlsMaterial } from './kubeconfig.ts'

export { KubeconfigError, type TlsMaterial } from './kubeconfig.ts'

export interface ConnectionEnvironment {
  readonly KUBECONFIG?: string | undefined
  readonly HOME?: string | undefined
  readonly KUBERNETES_SERVICE_HOST?: string | undefined
  readonly KUBERNETES_SERVICE_PORT?: string | undefined
}

export interface Credentials {
  readonly headers: Readonly<Record<string, string | string[]>>
  /** The same object for as long as nothing in it has changed: sockets live as long. */
  readonly tls: TlsMaterial
}

export interface Connection {
  /** `https://10.96.0.1:443`, without a slash at the end. */
  readonly server: string
  /** The default namespace. */
  readonly namespace: string
  /** For people: `context "kind" of /home/ada/.kube/config`. */
  readonly source: string
  /** An HTTP proxy on the way. */
  readonly proxyUrl: string | null
  /** At most half a minute old. Throws KubeconfigError when they cannot be read. */
  readCredentials(): Promise<Credentials>
  /**
   * Reads them from their source again, unless that has happened since `used` were returned. Throws KubeconfigError.
   */
  renewCredentials(used: Credentials): Promise<Credentials>
}

export interface ConnectionOptions {
  readonly clock: Clock
  /** Look for ~/.kube/config too. Default: no. That file names whatever cluster a person worked with last. */
  readonly looksAtHome?: boolean
  readonly serviceAccountFolder?: string
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
const FRESH_MS = 30_000

/** Returns null when no cluster is configured. Throws KubeconfigError when a configured one cannot be used. */
export async function findConnection(
  environment: ConnectionEnvironment,
  { clock, looksAtHome = false, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER }: ConnectionOptions,
): Promise<Connection | null> {
  const named = environment.KUBECONFIG?.split(delimiter).filter((file) => file !== '') ?? []
  if (named.length > 0) return connectByKubeconfig(named, clock)
  const address = serviceAddress(environment)
  if (address !== null && (await isThere(join(serviceAccountFolder, 'token'))))
    return connectByServiceAccount(address, serviceAccountFolder, clock)
  const usual = looksAtHome ? await findHomeKubeconfig(environment) : null
  return usual === null ? null : connectByKubeconfig([usual], clock)
}

/** The path of ~/.kube/config; null where it is not there. */
export async function findHomeKubeconfig({ HOME }: ConnectionEnvironment): Promise<string | null> {
  if (!HOME) return null
  const usual = join(HOME, '.kube', 'config')
  return (await isThere(usual)) ? usual : null
}

async function connectByKubeconfig(files: readonly string[], clock: Clock): Promise<Connection> {
  const first = await loadKubeconfig(files, null)
  const { server, namespace, source, proxyUrl } = first
  let current = first
  const reload = async () => {
    const next = await loadKubeconfig(files, first.context)
    // Credentials are sent only to the server that they belong to.
    if (next.server !== server)
      throw new KubeconfigError(`The server of the ${source} is another one now. Restart to follow it.`)
    current = next
  }
  return { ...createCredentialCache(() => current.authenticate(), reload, clock), server, namespace, source, proxyUrl }
}

async function connectByServiceAccount(server: string, folder: string, clock: Clock): Promise<Connection> {
  const read = async (name: string) => {
    const file = join(folder, name)
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new KubeconfigError(
        `The pod's ServiceAccount has no readable ${file} (${error.code}). Mount its token whole, or set automountServiceAccountToken: false.`,
      )
    })
    return text.trim()
  }
  const authenticate = async () => {
    const [token, ca] = await Promise.all([read('token'), read('ca.crt')])
    return { headers: { Authorization: `Bearer ${token}` }, tls: { ca } }
  }
  const namespace = await readFile(join(folder, 'namespace'), 'utf8').catch(() => '')
  const connection: Connection = {
    ...createCredentialCache(authenticate, async () => {}, clock),
    server,
    namespace: namespace.trim() || 'default',
    source: "the pod's ServiceAccount",
    proxyUrl: null,
  }
  await connection.readCredentials()
  return connection
}

/** @param reload drops what `authenticate` has cached. */
function createCredentialCache(
  authenticate: () => Promise<Authentication>,
  reload: () => Promise<void>,
  clock: Clock,
): Pick<Connection, 'readCredentials' | 'renewCredentials'> {
  let current: Credentials | null = null
  let readAt = 0
  let reading: Promise<Credentials> | null = null

  /** Concurrent callers share one read: a plugin is started once. */
  const read = (isForced: boolean): Promise<Credentials> => {
    reading ??= readNow(isForced).finally(() => {
      reading = null
    })
    return reading
  }

  async function readNow(isForced: boolean): Promise<Credentials> {
    try {
      if (isForced) await reload()
      const { headers, tls } = await authenticate()
      current = { headers, tls: current !== null && isSame(current.tls, tls) ? current.tls : tls }
    } catch (error) {
      // A file that is being replaced is missing for an instant. The current credentials are valid until the API server
      // rejects them.
      if (isForced || current === null) throw error
    }
    readAt = clock.now()
    return current
  }

  return {
    async readCredentials() {
      return current !== null && clock.now() - readAt < FRESH_MS ? current : read(false)
    },
    async renewCredentials(used) {
      if (reading !== null) await reading.catch(() => {})
      return current !== null && current !== used ? current : read(true)
    },
  }
}

const isSame = (a: TlsMaterial, b: TlsMaterial) =>
  (['ca', 'cert', 'key', 'servername', 'rejectUnauthorized'] as const).every((name) => a[name] === b[name])

/** Null outside a cluster. */
function serviceAddress({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port }: ConnectionEnvironment) {
  if (!host || !port) return null
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
}

async function isThere(file: string): Promise<boolean> {
  try {
    await access(file)
    return true
  } catch {
    return false
  }
}
