/** Reads the management API of a healthchecks instance. */

import type { IncomingMessage } from 'node:http'
import { toOneLine } from '../../domain/plain-text.ts'
import { readBounded } from '../../runtime/bounded-body.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sendRequest } from '../../runtime/http-request.ts'
import { SourceError } from '../source.ts'

export interface ClientOptions {
  /** Of the instance, as people open it in a browser. */
  readonly url: URL
  readonly key: string
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
  /** Takes a line that says why a request will be sent again, and when. */
  readonly onWait: (line: string) => void
}

export type GetJson = (path: 'checks' | 'channels') => Promise<unknown>

const VERSIONS = ['v3', 'v2', 'v1']
const REQUEST_MS = 60_000
/** 10,000 checks with long descriptions are less. */
const MAX_BYTES = 64 * 1_048_576
const TRIES = 6
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 120_000

/**
 * Throws SourceError when the instance cannot be reached or rejects the key. Too many requests and faults of the server are tried again, and so are
 * connections that fail after a first response: before it, the address is wrong more often than the network, and a person waits.
 */
export function createClient({ url, key, clock, signal, onWait }: ClientOptions): GetJson {
  const root = `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  let version = 0
  let hasResponded = false
  return async (path) => {
    for (; version < VERSIONS.length; version += 1) {
      const text = await getPatiently(`${root}/api/${VERSIONS[version]}/${path}/`)
      if (text === null) continue
      try {
        return JSON.parse(text)
      } catch {
        break
      }
    }
    throw new SourceError(`${root} does not respond as healthchecks does: give the address of its first page`)
  }

  /** Null: the instance does not know the address. */
  async function getPatiently(address: string): Promise<string | null> {
    for (let tries = 1; ; tries += 1) {
      const given = await get(address)
      if (typeof given !== 'object' || given === null) return given
      if (tries === TRIES) throw new SourceError(`${root}: ${given.fault}, after ${TRIES} tries`)
      const waitMs = given.waitMs ?? FIRST_WAIT_MS * 2 ** (tries - 1)
      onWait(`${root}: ${given.fault}; trying again in ${Math.ceil(waitMs / 1_000)} s`)
      await clock.sleep(waitMs, signal)
    }
  }

  async function get(address: string): Promise<string | null | { fault: string; waitMs?: number }> {
    let response: IncomingMessage
    try {
      response = await sendRequest(new URL(address), {
        headers: { 'x-api-key': key, accept: 'application/json' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
      })
      hasResponded = true
      const { bytes, end } = await readBounded(response, { maxBytes: MAX_BYTES })
      if (end === 'cut') throw new SourceError(`the response of ${url.origin} is above 64 MB`)
      if (end !== 'whole') throw end
      if (response.statusCode === 200) return bytes.toString()
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof SourceError) throw error
      const fault = explain(error)
      if (!hasResponded) throw new SourceError(`${root}: ${fault}`)
      return { fault }
    }
    const { statusCode: status = 0, headers } = response
    if (status === 404) return null
    if (status === 401 || status === 403)
      throw new SourceError(`${root} rejects the key: give a read-write API key of the healthchecks project`)
    if (status === 429 || status >= 500) return { fault: `it responds with ${status}`, ...waitOf(headers) }
    const { location } = headers
    const to = location === undefined ? null : URL.parse(location, address)
    const where = to === null ? '' : ` to ${to.origin}: give that address`
    throw new SourceError(`${root} responds with ${status}${where}`)
  }
}

function waitOf(headers: IncomingMessage['headers']): { waitMs?: number } {
  const seconds = Number(headers['retry-after'] ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? { waitMs: Math.min(seconds * 1_000, LONGEST_WAIT_MS) } : {}
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, code } = error as Error & { code?: string }
  // Of a name with several addresses the message is empty.
  return `it cannot be reached (${toOneLine(message || (code ?? error.name)).trim()})`
}
