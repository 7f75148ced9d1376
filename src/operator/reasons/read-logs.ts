/**
 * The last lines of a container that failed (`CRONJOB_LOGS=failed`). A log is data of others: the caller makes its text
 * safe.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { Clock } from '../../runtime/clock.ts'
import { createLimiter } from '../../runtime/limiter.ts'
import type { FailedContainer } from './explain-failure.ts'

export interface LogReader {
  /** Resolves within two seconds; null: there is none, or it cannot be read in time. */
  read(namespace: string, container: FailedContainer, signal: AbortSignal): Promise<string | null>
}

export interface LogReaderOptions {
  readonly client: Pick<KubernetesClient, 'raw'>
  readonly clock: Clock
  /** At most once a minute: many logs cannot be read for one reason. */
  readonly onProblem: (error: unknown) => void
}

const LINES = 100
/** The node cuts the end of what is longer, and the end matters: then fewer lines are read. */
const MAX_BYTES = 262_144
const FEWER_LINES = 5
/** A node may be gone. */
const TIMEOUT_MS = 2_000
const AT_ONCE = 10
/** While many Jobs fail together, more are recorded without their log. */
const MAX_WAITING = 100
const PROBLEM_EVERY_MS = 60_000

export function createLogReader({ client, clock, onProblem }: LogReaderOptions): LogReader {
  const inTurn = createLimiter({
    atOnce: AT_ONCE,
    waiting: MAX_WAITING,
    createError: () => new Error('too many logs wait to be read'),
  })

  let problemAt = Number.NEGATIVE_INFINITY

  function report(error: unknown): void {
    if (clock.now() - problemAt < PROBLEM_EVERY_MS) return
    problemAt = clock.now()
    onProblem(error)
  }

  return {
    async read(namespace, { pod, name, isRestarted }, signal) {
      const until = clock.now() + TIMEOUT_MS
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/log`
      const get = async (lines: number): Promise<string | null> => {
        const timeoutMs = until - clock.now()
        if (timeoutMs <= 0) return null
        const query = new URLSearchParams({
          container: name,
          tailLines: String(lines),
          limitBytes: String(MAX_BYTES),
          ...(isRestarted ? { previous: 'true' } : {}),
        })
        return String(await client.raw('GET', `${path}?${query}`, undefined, { signal, timeoutMs, keepsOthers: true }))
      }
      try {
        return await inTurn(async () => {
          const text = await get(LINES)
          const isCut = text !== null && Buffer.byteLength(text) >= MAX_BYTES
          return isCut ? ((await get(FEWER_LINES)) ?? text) : text
        })
      } catch (error) {
        if (!signal.aborted) report(error)
        return null
      }
    },
  }
}
