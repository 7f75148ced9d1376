/**
 * One call: attempts, time limit, and what its answer means.
 *
 * The time limit is over all attempts and the waits between them. Reads are tried again when there was no answer, and when
 * the server is busy or starting (429, 5xx); writes only on 429, since after anything else they may have happened. A wait
 * that would outlast the limit is not begun: the caller then learns why at once.
 */

import { backoffMs } from '../runtime/backoff.ts'
import { type Clock, yieldTurn } from '../runtime/clock.ts'
import { startLimit } from './call-limit.ts'
import { ApiError, readRefusal, TransportError } from './errors.ts'
import { type Answer, explain, type Request, type Transport } from './transport.ts'
import { readWatchEvents, type WatchEvent } from './watch-lines.ts'

export interface CallOptions {
  readonly signal?: AbortSignal
  /** For the whole call, waits and further attempts included. */
  readonly timeoutMs?: number
}

export interface StreamOptions {
  readonly signal: AbortSignal
  /** Something was heard of the server: the answer's beginning, then each piece of it. */
  readonly onContact?: () => void
}

export interface Calls {
  /** The answer's JSON; with `isText` what is not JSON as text. */
  call(request: Request, options?: CallOptions & { readonly isText?: boolean }): Promise<unknown>
  /** A watch: one attempt, the time limit only for its beginning. */
  stream<T>(request: Request, options: StreamOptions): AsyncGenerator<WatchEvent<T>>
}

export interface CallsOptions {
  readonly transport: Transport
  readonly clock: Clock
  readonly random: () => number
  readonly readWarnings: (header: string | string[] | undefined) => void
}

const TIMEOUT_MS = 30_000
const RETRIES = 3
const STEPS = { firstMs: 200, maxMs: 5_000 }

export function createCalls({ transport, clock, random, readWarnings }: CallsOptions): Calls {
  async function attempt(request: Request, isText: boolean, signal: AbortSignal): Promise<unknown> {
    const answer = await transport.send(request, 'requests', signal)
    const text = await readText(request, answer)
    readWarnings(answer.headers.warning)
    if (answer.statusCode >= 300) throw refusalOf(request, answer, text)
    const type = String(answer.headers['content-type'])
    if (!type.startsWith('application/json')) {
      if (isText) return text
      throw new TransportError(
        `${request.description}: ${transport.host} answered with ${type} and not with JSON. Is it an API server?`,
      )
    }
    try {
      return JSON.parse(text)
    } catch {
      // Not as its cause: JSON.parse quotes what it could not read, and that may be a Secret.
      throw new TransportError(`${request.description}: ${transport.host} answered with JSON that cannot be read`)
    }
  }

  async function readText(request: Request, answer: Answer): Promise<string> {
    try {
      return await answer.body.text()
    } catch (error) {
      throw explain(error, request, transport.host)
    }
  }

  /** Null: not to be tried again. */
  function retryMs({ method }: Request, error: unknown, failures: number): number | null {
    if (failures >= RETRIES) return null
    const isRead = method === 'GET'
    if (error instanceof ApiError) {
      if (error.status !== 429 && !(isRead && error.status >= 500)) return null
      return Math.max((error.retryAfterSeconds ?? 0) * 1_000, backoffMs(failures, STEPS, random))
    }
    return isRead && error instanceof TransportError ? backoffMs(failures, STEPS, random) : null
  }

  return {
    async call(request, { signal, timeoutMs = TIMEOUT_MS, isText = false } = {}) {
      const limit = startLimit(clock, timeoutMs, signal)
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

    async *stream<T>(request: Request, { signal, onContact = () => {} }: StreamOptions) {
      const opening = startLimit(clock, TIMEOUT_MS, signal)
      try {
        const answer = await transport.send(request, 'watches', opening.signal)
        if (answer.statusCode !== 200) throw refusalOf(request, answer, await readText(request, answer))
        opening.keep()
        readWarnings(answer.headers.warning)
        onContact()
        yield* readWatchEvents<T>(hear(answer.body, onContact))
        // undici gives a socket free in the turn after its answer's end. The next watch shall find it, not open another.
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

function refusalOf(request: Request, { statusCode, headers }: Answer, text: string): ApiError {
  const retryAfter = headers['retry-after']
  return readRefusal(request.description, statusCode, text, Array.isArray(retryAfter) ? retryAfter[0] : retryAfter)
}

async function* hear(chunks: AsyncIterable<Uint8Array>, onContact: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    onContact()
    yield chunk
  }
}
