/**
 * Who watches us: every minute a ping to some other heartbeat service, as long as flips are found and told on time. It stays away
 * when they are not, and when this process is gone, which nobody in here could tell. Not to be confused with
 * kubernetes/watchdog.ts, which watches a silent stream.
 */

import type { Clock } from '../runtime/clock.ts'
import { describeError, type Log } from '../runtime/log.ts'
import type { HttpClient } from './http.ts'
import { sendForOutcome } from './http-outcome.ts'

export type WatchdogResult = 'pinged' | 'failed' | 'withheld'

export interface WatchdogParts {
  /** WATCHDOG_URL. A secret: whoever has it can say that we are well. */
  readonly url: string
  readonly client: HttpClient
  /** Null: on time; else why not, for people. */
  readonly isOnTime: () => Promise<string | null>
  readonly onResult: (result: WatchdogResult) => void
  readonly log: Log
  readonly clock: Clock
}

export interface Watchdog {
  /** One ping, or none. Never throws; says nothing more once `signal` aborts. A loop calls it every minute. */
  run(signal?: AbortSignal): Promise<'done'>
}

const ANSWER_MS = 10_000
const RETRY_MS = 5_000

export function createWatchdog({ url, client, isOnTime, onResult, log, clock }: WatchdogParts): Watchdog {
  let isWithheld = false

  async function findReasonAgainst(): Promise<string | null> {
    try {
      return await isOnTime()
    } catch (error) {
      return `it could not be found out: ${describeError(error).message}`
    }
  }

  /** Null: it arrived. */
  async function ping(signal: AbortSignal): Promise<string | null> {
    const done = new AbortController()
    const late = new AbortController()
    void clock.sleep(ANSWER_MS, done.signal).then(() => late.abort(new Error(`no answer in ${ANSWER_MS / 1_000} s`)))
    try {
      const request = { method: 'GET', url, isTrusted: true } as const
      const outcome = await sendForOutcome(client, request, AbortSignal.any([signal, late.signal]), clock)
      return outcome.kind === 'delivered' ? null : outcome.error
    } finally {
      done.abort()
    }
  }

  return {
    async run(signal = new AbortController().signal) {
      const reason = await findReasonAgainst()
      if (signal.aborted) return 'done'
      if (reason !== null) {
        // Once, not every minute anew: the metric tells for how long.
        if (!isWithheld) log.warn({ why: reason }, 'the watchdog is not pinged: we are not on time')
        isWithheld = true
        onResult('withheld')
        return 'done'
      }
      if (isWithheld) log.info('the watchdog is pinged again: we are on time')
      isWithheld = false

      let fault = await ping(signal)
      if (fault !== null && !signal.aborted) {
        log.warn({ why: fault, retryMs: RETRY_MS }, 'a ping to the watchdog failed')
        await clock.sleep(RETRY_MS, signal)
        if (!signal.aborted) fault = await ping(signal)
      }
      if (signal.aborted) return 'done'
      if (fault !== null) log.warn({ why: fault }, 'a ping to the watchdog failed again: the next is in a minute')
      onResult(fault === null ? 'pinged' : 'failed')
      return 'done'
    },
  }
}
