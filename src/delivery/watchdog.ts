/**
 * Lets another heartbeat service monitor this one: pings WATCHDOG_URL every minute, as long as flips are found and delivered on
 * time. The ping is withheld when they are not, and is missing when this process is gone, which it could not report itself.
 */

import type { Clock } from '../runtime/clock.ts'
import { describeError, type Log } from '../runtime/log.ts'
import type { HttpClient } from './http.ts'
import { sendForOutcome } from './http-outcome.ts'

export type WatchdogResult = 'pinged' | 'failed' | 'withheld'

export interface WatchdogOptions {
  /** WATCHDOG_URL. A secret: with it, others could report that this service is well. */
  readonly url: string
  readonly client: HttpClient
  /** Resolves to null when this replica is on time, else to the reason why it is not. */
  readonly whyNotOnTime: () => Promise<string | null>
  readonly onResult: (result: WatchdogResult) => void
  readonly log: Log
  readonly clock: Clock
}

export type Watchdog = ReturnType<typeof createWatchdog>

const RESPONSE_MS = 10_000
const RETRY_MS = 5_000

export function createWatchdog({ url, client, whyNotOnTime, onResult, log, clock }: WatchdogOptions) {
  let isWithheld = false

  async function findReason(): Promise<string | null> {
    try {
      return await whyNotOnTime()
    } catch (error) {
      return `the check failed: ${describeError(error).message}`
    }
  }

  /** Resolves to null when the ping has arrived, else to the reason why it has not. */
  async function ping(signal: AbortSignal): Promise<string | null> {
    const done = new AbortController()
    const late = new AbortController()
    void clock.sleep(RESPONSE_MS, done.signal).then(() => late.abort())
    try {
      const request = { method: 'GET', url, isTrusted: true, tenant: undefined } as const
      const outcome = await sendForOutcome(client, request, AbortSignal.any([signal, late.signal]), clock)
      return outcome.kind === 'delivered' ? null : outcome.error
    } finally {
      done.abort()
    }
  }

  return {
    /** Sends one ping, or withholds it. Never throws. Reports nothing after `signal` has aborted. */
    async run(signal = new AbortController().signal): Promise<'done'> {
      const reason = await findReason()
      if (signal.aborted) return 'done'
      if (reason !== null) {
        // Logged once; the metric shows how long it lasts.
        if (!isWithheld) log.warn({ why: reason }, 'the watchdog is not pinged: we are not on time')
        isWithheld = true
        onResult('withheld')
        return 'done'
      }
      if (isWithheld) log.info('the watchdog is pinged again: we are on time')
      isWithheld = false

      let problem = await ping(signal)
      if (problem !== null && !signal.aborted) {
        log.warn({ why: problem, retryMs: RETRY_MS }, 'a ping to the watchdog failed')
        await clock.sleep(RETRY_MS, signal)
        if (!signal.aborted) problem = await ping(signal)
      }
      if (signal.aborted) return 'done'
      if (problem !== null) log.warn({ why: problem }, 'a ping to the watchdog failed again: the next is in a minute')
      onResult(problem === null ? 'pinged' : 'failed')
      return 'done'
    },
  }
}
