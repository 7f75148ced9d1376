/**
 * The turns of pages and changes. A page may read all checks of an organization: few are read at the same time, the
 * others wait, so that users who look at many pages slow neither pings nor another organization, nor one user the
 * others of the organization. The other processors of PostgreSQL are for pings.
 */

import type { DashboardCaller } from '../../auth/sessions.ts'
import { AppError } from '../../domain/errors.ts'
import { createLimiter } from '../../runtime/limiter.ts'
import { CHANGES, OPEN_PAGES, PAGES, RETRY_SECONDS, TURN_MS } from '../limits.ts'

interface TurnsOptions {
  /** Resolves when no ping is being stored, or after a short time: pings have priority. */
  readonly yieldToPings: () => Promise<void>
  /** For tests. */
  readonly waitMs?: number | undefined
}

type Work<Result> = () => Result | Promise<Result>

/** Each turn throws AppError `unavailable` when it does not come within TURN_MS. */
export function createTurns({ yieldToPings, waitMs = TURN_MS }: TurnsOptions) {
  const pages = createLimiter({ ...PAGES, waitMs, createError: () => busy('pages are being read') })
  const openPages = createLimiter({ ...OPEN_PAGES, waitMs, createError: () => busy('pages are being read') })
  const changes = createLimiter({ ...CHANGES, waitMs, createError: () => busy('changes are being made') })
  const afterPings =
    <Result>(read: Work<Result>) =>
    async () => {
      await yieldToPings()
      return await read()
    }
  return {
    read: <Result>({ id, organizationId }: DashboardCaller, read: Work<Result>) =>
      pages(afterPings(read), [id, organizationId]),
    /** Without a session. `address`: what counts as one client. */
    open: <Result>(address: string, read: Work<Result>) => openPages(afterPings(read), [address]),
    /** A change waits for no page: it is short, and its user waits for it. */
    change: <Result>({ organizationId }: DashboardCaller, change: Work<Result>) =>
      changes(async () => await change(), [organizationId]),
  }
}

function busy(what: string): AppError {
  return new AppError('unavailable', `too many ${what} at the moment`, { retryAfterSeconds: RETRY_SECONDS })
}
