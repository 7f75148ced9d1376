/**
 * Requests by Node's own client, which passes over interim responses (RFC 9110, section 15.2): `fetch` takes `100
 * Continue` for a fault. It follows no redirects.
 */

import { type Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { type Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { type BodyLimits, readBounded } from './bounded-body.ts'
import { startTimer } from './clock.ts'
import { limitChunks } from './short-chunks.ts'

export interface Request {
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | null | undefined
  readonly signal: AbortSignal
}

/** Where the request gets its connection. Default: from the connections of the process, by the system's lookup. */
export interface Route {
  readonly agent: HttpAgent | HttpsAgent
  readonly lookup: LookupFunction
}

const CONNECT_MS = 10_000

/**
 * Resolves with the head of the response, for any status. The signal ends the body, too. A request that is aborted
 * while its connection is made is not sent.
 */
export function sendRequest(
  url: URL,
  { method = 'GET', headers, body, signal }: Request,
  route?: Route,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const isSecure = url.protocol === 'https:'
    const named = { 'user-agent': 'heartbeat-operator', ...headers }
    const request = (isSecure ? requestHttps : requestHttp)(url, { method, headers: named, ...route })
    let isConnected = false
    const abort = () => {
      reject(signal.reason)
      if (isConnected) request.destroy()
    }
    const stopTimer = startTimer(CONNECT_MS, () =>
      request.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })),
    )
    signal.addEventListener('abort', abort, { once: true })
    request.on('socket', (socket) => {
      const begin = () => {
        isConnected = true
        stopTimer()
        if (signal.aborted) request.destroy()
        else request.end(body ?? undefined)
      }
      if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', begin)
      else begin()
    })
    const refuseUpgrade = () => {
      reject(Object.assign(new Error('the server changes the protocol'), { code: 'HPE_PAUSED_UPGRADE' }))
      request.destroy()
    }
    request.on('upgrade', (_, socket) => {
      socket.destroy()
      refuseUpgrade()
    })
    request.on('response', (response) => {
      if (response.statusCode! < 200) return refuseUpgrade()
      limitChunks(response)
      resolve(response)
    })
    request.on('error', reject)
    request.on('close', () => {
      stopTimer()
      signal.removeEventListener('abort', abort)
      reject(new Error('the connection closed before the response'))
    })
  })
}

export interface Fetched {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
}

/** With the body of the response, and the errors of `fetch`. `createError`: for a body above the limits. */
export async function fetchBounded(
  url: string,
  request: Request,
  { createError, ...limits }: BodyLimits & { readonly createError: () => Error },
): Promise<Fetched> {
  const { signal } = request
  const fail = (message: string, cause: unknown) => (signal.aborted ? signal.reason : new Error(message, { cause }))
  const response = await sendRequest(new URL(url), request).catch((error) => {
    throw fail('fetch failed', error)
  })
  const { bytes, end } = await readBounded(response, limits)
  if (end === 'cut') throw createError()
  if (end !== 'whole') throw fail('terminated', end)
  const headers = new Headers()
  for (const [name, values] of Object.entries(response.headersDistinct))
    for (const value of values ?? []) headers.append(name, value)
  return { status: response.statusCode!, headers, bytes }
}
