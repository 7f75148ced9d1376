import { after, type Clock } from '../runtime/clock.ts'
import { TransportError } from './errors.ts'

/**
 * The reason of a call's signal after its own time limit. The limit of a caller around several calls has another
 * reason.
 */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
  /** Whether that says nothing about other connections. */
  readonly keepsOthers: boolean

  constructor(keepsOthers: boolean) {
    super()
    this.keepsOthers = keepsOthers
  }
}

/** An explicit reason spares each call an AbortError with its stack. */
const ENDED = 'ended'

/**
 * A signal that aborts after a time or with the caller's signal, until end() detaches it from both. Not
 * AbortSignal.any(), which keeps its result for as long as a source lives: some sources live as long as the process.
 */
export function startLimit(clock: Clock, ms: number, signal: AbortSignal | undefined, reason: unknown = ENDED) {
  const limit = new AbortController()
  const follow = () => limit.abort(signal?.reason)
  if (signal?.aborted) follow()
  signal?.addEventListener('abort', follow, { once: true })
  const keep = after(clock, ms, () => limit.abort(reason))
  return {
    signal: limit.signal,
    /** The error to throw once `signal` has aborted: the caller's reason, or TransportError after the time limit. */
    explain(description: string, last: unknown): unknown {
      if (!(limit.signal.reason instanceof DeadlineExceeded)) return signal?.reason ?? last
      return new TransportError(`${description}: no response within ${ms / 1_000} s`, { cause: last })
    },
    /** Removes the time limit; the caller's signal still counts. */
    keep,
    end(): void {
      keep()
      signal?.removeEventListener('abort', follow)
    },
  }
}
