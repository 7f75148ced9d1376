/**
 * One attempt of one request: sockets, credentials, and what is counted. It owns two pools. Requests share a few sockets that
 * are kept alive, by HTTP/2 where the server offers it; each watch has one of its own, by HTTP/1.1, for as long as it runs. Both are replaced when TLS material has changed, and when
 * a request got no answer in time: then the other sockets may be dead as well, and each would cost another time limit to
 * find out. Requests and watches that are on their way go on over the old ones.
 */

import type { Dispatcher } from 'undici'
import type { Clock } from '../runtime/clock.ts'
import { TimeIsUp } from './call-limit.ts'
import type { Connection, Credentials, TlsMaterial } from './connection.ts'
import { TransportError } from './errors.ts'

export interface RequestMetrics {
  /**
   * @param verb get, list, watch, create, update, patch, delete or raw
   * @param method GET, POST ...
   * @param code the status code, or `<error>` when there was no answer, as client-go counts
   * @param seconds until the answer began
   */
  request(verb: string, method: string, host: string, code: string, seconds: number): void
}

export interface Request {
  readonly verb: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  /** `patch secrets shop/prices`, for messages. */
  readonly description: string
  readonly body?: unknown
  readonly contentType?: string
}

export type Answer = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>

export interface Transport {
  /** For messages. */
  readonly host: string
  /**
   * The answer's beginning, whatever its status; the body is the caller's to read. Credentials that are turned down, and a
   * server that ours does not vouch for, are given one more try with credentials read anew. Throws TransportError without an
   * answer, KubeconfigError without credentials.
   */
  send(request: Request, pool: 'requests' | 'watches', signal: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export interface TransportOptions {
  readonly connection: Connection
  readonly clock: Clock
  readonly requestConnections: number
  readonly userAgent: string
  readonly metrics: RequestMetrics | undefined
}

interface Pools {
  readonly tls: TlsMaterial
  readonly requests: Dispatcher
  readonly watches: Dispatcher
}

/** Go's servers close after 90 s or more; whoever closes first must be us, or a request meets a socket that has just gone. */
const KEEP_ALIVE_MS = 55_000
/** The first probe of an idle socket, below what load balancers take for dead. */
const PROBE_AFTER_MS = 30_000
const CONNECT_MS = 10_000

export function createTransport(options: TransportOptions): Transport {
  const { connection, clock, metrics, userAgent } = options
  const { origin, host, pathname } = new URL(connection.server)
  /** Servers behind Rancher and the like live below a path. */
  const prefix = pathname.replace(/\/+$/, '')
  const all = new Set<Dispatcher>()
  let imported: Promise<typeof import('undici')> | undefined
  let pools: Pools | null = null
  let isClosed = false

  async function findPools(tls: TlsMaterial): Promise<Pools> {
    // Imported where it is needed: 80 ms and 7 MB that a process without a cluster does not pay. Once: each asking costs as well.
    imported ??= import('undici')
    const undici = await imported
    if (isClosed) throw new TransportError('the client is closed')
    if (pools?.tls === tls) return pools
    retireAll()
    pools = makePools(tls, undici)
    for (const dispatcher of [pools.requests, pools.watches]) all.add(dispatcher)
    return pools
  }

  /** They close when what is on its way has ended. */
  function retireAll(): void {
    pools = null
    for (const dispatcher of all) {
      const forget = () => all.delete(dispatcher)
      dispatcher.close().then(forget, forget)
    }
  }

  function makePools(tls: TlsMaterial, { Agent, ProxyAgent }: typeof import('undici')): Pools {
    const common = {
      // Limits are ours (see client.ts). A watch may be silent for long.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    }
    const connect = { ...tls, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS, timeout: CONNECT_MS }
    const make = (connections: number | null, allowH2: boolean): Dispatcher =>
      connection.proxyUrl === null
        ? new Agent({ ...common, connect, connections, allowH2 })
        : new ProxyAgent({ ...common, uri: connection.proxyUrl, requestTls: connect, connections, allowH2: false })
    return {
      tls,
      // Many small requests in one write, which takes both sides a quarter less time than one by one.
      requests: make(options.requestConnections, true),
      // They would share one socket, its flow control and its fate.
      watches: make(null, false),
    }
  }

  async function exchange(request: Request, dispatcher: Dispatcher, { headers }: Credentials, signal: AbortSignal) {
    const from = clock.now()
    const count = (code: string) =>
      metrics?.request(request.verb, request.method, host, code, (clock.now() - from) / 1_000)
    try {
      const answer = await dispatcher.request({
        origin,
        path: prefix + request.path,
        method: request.method,
        headers: {
          accept: 'application/json',
          'user-agent': userAgent,
          ...headers,
          ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
        },
        body: request.body === undefined ? null : JSON.stringify(request.body),
        signal,
      })
      count(String(answer.statusCode))
      return answer
    } catch (error) {
      count('<error>')
      throw error
    }
  }

  return {
    host,
    async send(request, pool, signal) {
      let credentials = await unlessAborted(connection.readCredentials(), signal)
      for (let isRenewed = false; ; isRenewed = true) {
        const found = await findPools(credentials.tls)
        try {
          const answer = await exchange(request, found[pool], credentials, signal)
          if (answer.statusCode !== 401 || isRenewed) return answer
          await answer.body.dump()
        } catch (error) {
          if (signal.reason instanceof TimeIsUp && found === pools) retireAll()
          if (isRenewed || !isUntrusted(error)) throw explain(error, request, host)
        }
        credentials = await unlessAborted(connection.renewCredentials(credentials), signal)
      }
    },
    async close() {
      isClosed = true
      await Promise.all([...all].map((dispatcher) => dispatcher.destroy()))
    },
  }
}

/** A credential plugin may hang. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const give = () => reject(signal.reason)
    if (signal.aborted) give()
    signal.addEventListener('abort', give, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', give))
  })
}

/** Node's and OpenSSL's names for a certificate that nobody vouches for, theirs or ours, as after a change of authority. */
const UNTRUSTED = /^(UNABLE_TO_(GET|VERIFY)|SELF_SIGNED|DEPTH_ZERO|CERT_|ERR_SSL_.*(CERT|UNKNOWN_CA))/

function isUntrusted(error: unknown): boolean {
  return UNTRUSTED.test((error as NodeJS.ErrnoException).code ?? '')
}

/** Only the kind of failure and the address: never a header or a body. */
export function explain(error: unknown, request: Request, host: string): Error {
  const { code, name, message } = error as NodeJS.ErrnoException
  if (name === 'AbortError' || error instanceof TimeIsUp) return error as Error
  return new TransportError(`${request.description}: no answer from ${host}: ${message || code || name}`, {
    cause: error,
  })
}
