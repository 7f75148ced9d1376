/**
 * One call: its attempts, its time limit, and the meaning of its response.
 *
 * The time limit covers all attempts and the waits between them. A read is retried after no response and when the
 * server is busy or starting (429, 5xx); a write only after 429, because after any other failure it may have happened.
 * A wait that would exceed the limit is not started: the call fails at once with the last error.
 */

import { backoffMs } from '../runtime/backoff.ts'
import { type Clock, yieldTurn } from '../runtime/clock.ts'
import { DeadlineExceeded, startLimit } from './call-limit.ts'
import { ApiError, readRejection, TransportError } from './errors.ts'
import { type ApiResponse, explain, type Request, type Transport } from './transport.ts'
import { readWatchEvents, type WatchEvent } from './watch-lines.ts'

export interface CallOptions {
  readonly signal?: AbortSignal
  /** For the whole call, waits and further attempts included. */
  readonly timeoutMs?: number
  /**
   * A request without a response in time gives up its own connection only. For short limits, and for what others than
   * the API server respond to. Otherwise all connections are replaced: they may be dead too.
   */
  readonly keepsOthers?: boolean
}

export interface StreamOptions {
  readonly signal: AbortSignal
  /** Called with the head of the response and with each chunk of its body. */
  readonly onContact?: () => void
}

interface CallsOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly random: () => number
  /** Called once for each text of a `Warning` header. */
  readonly onWarning: ((text: string) => void) | undefined
}

const TIMEOUT_MS = 30_000
const RETRIES = 3
const STEPS = { firstMs: 200, maxMs: 5_000 }
/** The longest wait for an API server that cannot be reached, whatever a proxy before it asks for. */
const MAX_UNREACHABLE_MS = 4_000

export function createCalls({ transport, clock, random, onWarning }: CallsOptions) {
  const readWarnings = createWarningReader(onWarning)

  async function attempt(request: Request, isText: boolean, signal: AbortSignal): Promise<unknown> {
    const response = await transport.send(request, 'requests', signal)
    const text = await readText(request, response)
    readWarnings(response.headers.warning)
    if (response.statusCode >= 300) throw rejectionOf(request, response, text)
    const type = String(response.headers['content-type'])
    if (!type.startsWith('application/json')) {
      if (isText) return text
      throw new TransportError(
        `${request.description}: ${transport.host} sent ${type} instead of JSON. Is it an API server?`,
      )
    }
    try {
      return JSON.parse(text)
    } catch {
      // Without a cause: JSON.parse quotes its input, which may be a Secret.
      throw new TransportError(`${request.description}: ${transport.host} sent JSON that cannot be parsed`)
    }
  }

  async function readText(request: Request, response: ApiResponse): Promise<string> {
    try {
      return await response.body.text()
    } catch (error) {
      throw explain(error, request, transport.host)
    }
  }

  /** The wait before the next attempt; null: do not retry. */
  function retryMs({ method }: Request, error: unknown, failures: number): number | null {
    if (failures >= RETRIES) return null
    const isRead = method === 'GET'
    if (error instanceof ApiError) {
      if (error.status !== 429 && !(isRead && error.status >= 500)) return null
      const askedMs = (error.retryAfterSeconds ?? 0) * 1_000
      // Only a server that is busy is obeyed: a proxy does not know when the API server is back.
      const longestMs = error.status === 429 ? askedMs : MAX_UNREACHABLE_MS
      return Math.max(Math.min(askedMs, longestMs), backoffMs(failures, STEPS, random))
    }
    return isRead && error instanceof TransportError ? backoffMs(failures, STEPS, random) : null
  }

  return {
    /** Resolves with the parsed JSON of the response; with `isText` a body that is not JSON is returned as text. */
    async call(request: Request, options: CallOptions & { readonly isText?: boolean } = {}): Promise<unknown> {
      const { signal, timeoutMs = TIMEOUT_MS, keepsOthers = false, isText = false } = options
      const limit = startLimit(clock, timeoutMs, signal, new DeadlineExceeded(keepsOthers))
      const untilMs = clock.now() + timeoutMs
      try {
        for (let failures = 0; ; failures += 1) {
          try {
            return await attempt(request, isText, limit.signal)
          } catch (error) {
            if (limit.signal.aborted) throw limit.explain(request.description, error)
            const waitMs = retryMs(request, error, failures)
            if (waitMs === null || clock.now() + waitMs >= untilMs) throw error
            await clock.sleep(waitMs, limit.signal)
            if (limit.signal.aborted) throw limit.explain(request.description, error)
          }
        }
      } finally {
        limit.end()
      }
    },

    /** A watch: one attempt; the time limit ends with the head of the response. */
    async *stream<T>(
      request: Request,
      { signal, onContact = () => {} }: StreamOptions,
    ): AsyncGenerator<WatchEvent<T>, void> {
      const opening = startLimit(clock, TIMEOUT_MS, signal, new DeadlineExceeded(false))
      try {
        const response = await transport.send(request, 'watches', opening.signal)
        if (response.statusCode !== 200) throw rejectionOf(request, response, await readText(request, response))
        opening.keep()
        readWarnings(response.headers.warning)
        onContact()
        yield* readWatchEvents<T>(withContact(response.body, onContact))
        // undici frees a socket in the tick after the end of its response. The next watch shall reuse it, not open
        // another.
        await yieldTurn()
      } catch (error) {
        if (opening.signal.aborted) throw opening.explain(request.description, error)
        if (error instanceof ApiError || error instanceof TransportError) throw error
        throw explain(error, request, transport.host)
      } finally {
        opening.end()
      }
    },
  }
}

function rejectionOf(request: Request, { statusCode, headers }: ApiResponse, text: string): ApiError {
  const retryAfter = headers['retry-after']
  return readRejection(request.description, statusCode, text, Array.isArray(retryAfter) ? retryAfter[0] : retryAfter)
}

async function* withContact(chunks: AsyncIterable<Uint8Array>, onContact: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    onContact()
    yield chunk
  }
}

/** `299 - "text"`: code, agent, quoted text (RFC 7234, section 5.5). */
const WARNING = /\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g
/** Texts may hold names of objects. This only prevents that a text is reported with every request. */
const MAX_TEXTS = 256

/** Returns a reader of `Warning` headers that calls `onWarning` once for each text. */
function createWarningReader(onWarning: ((text: string) => void) | undefined) {
  const said = new Set<string>()
  return (header: string | string[] | undefined): void => {
    if (header === undefined || onWarning === undefined) return
    for (const value of [header].flat()) {
      for (const [, quoted] of value.matchAll(WARNING)) {
        const text = quoted!.replace(/\\(.)/g, '$1')
        if (said.has(text)) continue
        if (said.size >= MAX_TEXTS) said.clear()
        said.add(text)
        onWarning(text)
      }
    }
  }
}
