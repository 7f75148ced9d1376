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

export function createWatchdog({ url, client, whyNotOnTime, onResult, log, clock }: WatchdogOptions) {
  let isWithheld = false

  /** Resolves to null when the ping has arrived, else to the reason why it has not. */
  async function ping(signal: AbortSignal): Promise<string | null> {
    const over = new AbortController()
    void clock.sleep(RESPONSE_MS, over.signal).then(() => over.abort())
    const request = { method: 'GET', url, isTrusted: true, tenant: undefined } as const
    const outcome = await sendForOutcome(client, request, AbortSignal.any([signal, over.signal]), clock)
    over.abort()
    return outcome.kind === 'delivered' ? null : outcome.error
  }

  return {
    /** Sends one ping, or withholds it. Never throws. Reports nothing after `signal` has aborted. */
    async run(signal = new AbortController().signal): Promise<'done'> {
      const reason = await whyNotOnTime().catch((error) => `the check failed: ${describeError(error).message}`)
      if (signal.aborted) return 'done'
      // Logged once; the metric shows how long it lasts.
      if (reason !== null && !isWithheld) log.warn({ why: reason }, 'the watchdog is not pinged: we are not on time')
      if (reason === null && isWithheld) log.info('the watchdog is pinged again: we are on time')
      isWithheld = reason !== null

      const problem = isWithheld ? null : await ping(signal)
      if (signal.aborted) return 'done'
      if (problem !== null) log.warn({ why: problem }, 'a ping to the watchdog failed: the next is in a minute')
      onResult(isWithheld ? 'withheld' : problem === null ? 'pinged' : 'failed')
      return 'done'
    },
  }
}
