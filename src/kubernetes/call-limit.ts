import type { Clock } from '../runtime/clock.ts'
import { TransportError } from './errors.ts'

/** A signal that aborts after a time or with another signal, and lets go of both when the call has ended. */
export interface CallLimit {
  readonly signal: AbortSignal
  /** What to throw once `signal` has aborted: the caller's reason, or that time is up. */
  explain(description: string, last: unknown): unknown
  /** Takes the time limit away; the caller's signal goes on to count. */
  keep(): void
  end(): void
}

/** Why the signal of a call has aborted, when nobody wanted it to. */
export class TimeIsUp extends Error {
  override readonly name = 'TimeIsUp'
}

/** A reason that is given spares each call the making of an AbortError with its stack. */
const ENDED = 'ended'

/** Made by hand: AbortSignal.any() keeps what it made for as long as a signal lives, and some live as long as the process. */
export function startLimit(clock: Clock, ms: number, signal: AbortSignal | undefined): CallLimit {
  const limit = new AbortController()
  const kept = new AbortController()
  const follow = () => limit.abort(signal?.reason)
  if (signal?.aborted) follow()
  signal?.addEventListener('abort', follow, { once: true })
  void clock.sleep(ms, kept.signal).then(() => {
    if (kept.signal.aborted) return
    limit.abort(new TimeIsUp())
  })
  return {
    signal: limit.signal,
    explain(description, last) {
      if (!(limit.signal.reason instanceof TimeIsUp)) return signal?.reason ?? last
      return new TransportError(`${description}: no answer within ${ms / 1_000} s`, { cause: last })
    },
    keep: () => kept.abort(ENDED),
    end() {
      kept.abort(ENDED)
      signal?.removeEventListener('abort', follow)
    },
  }
}
