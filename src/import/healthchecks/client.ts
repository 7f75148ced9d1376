/** Reads the management API of a healthchecks instance. */

import { toOneLine } from '../../domain/plain-text.ts'
import type { Clock } from '../../runtime/clock.ts'
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
    let response: Response
    try {
      response = await fetch(address, {
        headers: { 'x-api-key': key, accept: 'application/json' },
        // The key must not follow to another host.
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
      })
      hasResponded = true
      if (response.status === 200) return await readBounded(response)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof SourceError) throw error
      const fault = explain(error)
      if (!hasResponded) throw new SourceError(`${root}: ${fault}`)
      return { fault }
    }
    await response.body?.cancel()
    const { status, headers } = response
    if (status === 404) return null
    if (status === 401 || status === 403)
      throw new SourceError(`${root} rejects the key: give a read-write API key of the healthchecks project`)
    if (status === 429 || status >= 500) return { fault: `it responds with ${status}`, ...waitOf(headers) }
    const location = headers.get('location')
    const where = location === null ? '' : ` to ${new URL(location, address).origin}: give that address`
    throw new SourceError(`${root} responds with ${status}${where}`)
  }
}

function waitOf(headers: Headers): { waitMs?: number } {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? { waitMs: Math.min(seconds * 1_000, LONGEST_WAIT_MS) } : {}
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > MAX_BYTES) throw new SourceError(`the response of ${new URL(response.url).origin} is above 64 MB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause as (Error & { code?: string }) | undefined
  // Of a name with several addresses the message is empty.
  return `it cannot be reached (${toOneLine(cause?.message || cause?.code || error.message).trim()})`
}
