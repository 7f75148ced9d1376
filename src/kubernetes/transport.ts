/**
 * One attempt of one request: sockets, credentials and metrics. It owns two pools. Requests share a few keep-alive
 * sockets, by HTTP/2 where the server offers it; each watch has a socket of its own, by HTTP/1.1. Both pools are
 * replaced when the TLS material has changed, and after a request without a response in time: the other sockets may be
 * dead too, and each would cost another time limit. A caller whose limit says nothing about other sockets asks for
 * `keepsOthers`. Requests and watches in flight finish on the old sockets.
 */

import type { Dispatcher } from 'undici'
import { unlessAborted } from '../runtime/abort.ts'
import type { Clock } from '../runtime/clock.ts'
import { DeadlineExceeded } from './call-limit.ts'
import type { Connection, Credentials, TlsMaterial } from './connection.ts'
import { TransportError } from './errors.ts'

export interface RequestMetrics {
  /**
   * @param verb get, list, watch, create, update, patch, delete or raw
   * @param method GET, POST ...
   * @param code the status code, or `<error>` when there was no response, as client-go counts
   * @param seconds until the head of the response
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

export type ApiResponse = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>

export type Transport = ReturnType<typeof createTransport>

interface TransportOptions {
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

/**
 * Go's servers close idle sockets after 90 s or more. We must close first, or a request may use a socket that has just
 * been closed.
 */
const KEEP_ALIVE_MS = 55_000
/** The first keep-alive probe of an idle socket, before load balancers drop it. */
const PROBE_AFTER_MS = 30_000
const CONNECT_MS = 10_000

export function createTransport(options: TransportOptions) {
  const { connection, clock, metrics, userAgent } = options
  const { origin, host, pathname } = new URL(connection.server)
  /** Servers behind Rancher and similar proxies are below a path. */
  const prefix = pathname.replace(/\/+$/, '')
  const all = new Set<Dispatcher>()
  let imported: Promise<typeof import('undici')> | undefined
  let pools: Pools | null = null
  let isClosed = false

  async function findPools(tls: TlsMaterial): Promise<Pools> {
    // Imported on demand: a process without a cluster saves 80 ms and 7 MB. Once, because a repeated import() costs
    // too.
    imported ??= import('undici')
    const undici = await imported
    if (isClosed) throw new TransportError('the client is closed')
    if (pools?.tls === tls) return pools
    retireAll()
    pools = makePools(tls, undici)
    for (const dispatcher of [pools.requests, pools.watches]) all.add(dispatcher)
    return pools
  }

  /** They close when their requests in flight have ended. */
  function retireAll(): void {
    pools = null
    for (const dispatcher of all) {
      const forget = () => all.delete(dispatcher)
      dispatcher.close().then(forget, forget)
    }
  }

  function makePools(tls: TlsMaterial, { Agent, ProxyAgent }: typeof import('undici')): Pools {
    const common = {
      // The limits are those of call.ts. A watch may be silent for long.
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
      // HTTP/2 puts many small requests into one write: a quarter less time on both sides.
      requests: make(options.requestConnections, true),
      // With HTTP/2 they would share one socket and its flow control, and break together.
      watches: make(null, false),
    }
  }

  async function exchange(request: Request, dispatcher: Dispatcher, { headers }: Credentials, signal: AbortSignal) {
    const from = clock.now()
    const count = (code: string) =>
      metrics?.request(request.verb, request.method, host, code, (clock.now() - from) / 1_000)
    try {
      const answer = dispatcher.request({
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
        signal: request.body === undefined ? signal : null,
      })
      const response = await (request.body === undefined ? answer : leaveWhenAborted(answer, signal))
      count(String(response.statusCode))
      return response
    } catch (error) {
      count('<error>')
      throw error
    }
  }

  return {
    /** For messages. */
    host,
    /**
     * Resolves with the head of the response, whatever its status; the caller reads the body. When the server
     * rejects our credentials, or ours do not trust its certificate, it retries once with credentials read again.
     * Throws TransportError without a response, KubeconfigError without credentials.
     */
    async send(request: Request, pool: 'requests' | 'watches', signal: AbortSignal): Promise<ApiResponse> {
      // A credential plugin may hang.
      let credentials = await unlessAborted(connection.readCredentials(), signal)
      for (let isRenewed = false; ; isRenewed = true) {
        const found = await findPools(credentials.tls)
        try {
          const response = await exchange(request, found[pool], credentials, signal)
          if (response.statusCode !== 401 || isRenewed) return response
          await response.body.dump()
        } catch (error) {
          const { reason } = signal
          if (reason instanceof DeadlineExceeded && !reason.keepsOthers && found === pools) retireAll()
          if (isRenewed || !UNTRUSTED.test((error as NodeJS.ErrnoException).code ?? ''))
            throw explain(error, request, host)
        }
        credentials = await unlessAborted(connection.renewCredentials(credentials), signal)
      }
    },
    async close(): Promise<void> {
      isClosed = true
      await Promise.all([...all].map((dispatcher) => dispatcher.destroy()))
    },
  }
}

/**
 * As a request with this signal, but one that was not sent yet is left alone: Node 26 never returns from closing an
 * HTTP/2 stream whose body waits to be sent, and takes all memory meanwhile. What comes of it after the abort is read
 * and dropped.
 */
async function leaveWhenAborted(answer: Promise<ApiResponse>, signal: AbortSignal): Promise<ApiResponse> {
  answer.then(({ body }) => (signal.aborted ? body.dump() : undefined)).catch(() => {})
  const response = await unlessAborted(answer, signal)
  const cut = () => response.body.destroy(signal.reason)
  signal.addEventListener('abort', cut, { once: true })
  response.body.once('close', () => signal.removeEventListener('abort', cut))
  return response
}

/** Codes of Node and OpenSSL for an untrusted certificate, the server's or ours, as after a change of authority. */
const UNTRUSTED = /^(UNABLE_TO_(GET|VERIFY)|SELF_SIGNED|DEPTH_ZERO|CERT_|ERR_SSL_.*(CERT|UNKNOWN_CA))/

/** The TransportError for a failed request. It holds the kind of failure and the address, never a header or a body. */
export function explain(error: unknown, request: Request, host: string): Error {
  const { code, name, message } = error as NodeJS.ErrnoException
  if (name === 'AbortError' || error instanceof DeadlineExceeded) return error as Error
  return new TransportError(`${request.description}: no response from ${host}: ${message || code || name}`, {
    cause: error,
  })
}
