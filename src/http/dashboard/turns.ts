/**
 * The turns of pages and changes. A page may read all checks of an organization: few are read at the same time, the
 * others wait, so that users who look at many pages slow neither pings nor another organization, nor one user the
 * others of the organization. The other processors of PostgreSQL are for pings.
 */

import type { DashboardCaller } from '../../auth/sessions.ts'
import { AppError } from '../../domain/errors.ts'
import { createLimiter } from '../../runtime/limiter.ts'
import { CHANGES, OPEN_PAGES, PAGES, RETRY_SECONDS, TURN_MS } from '../limits.ts'

export interface TurnsOptions {
  /** Resolves when no ping is being stored, or after a short time: pings have priority. */
  readonly yieldToPings: () => Promise<void>
  /** For tests. */
  readonly waitMs?: number | undefined
}

export interface Turns {
  /** Runs `read` when it is the user's turn. Throws AppError `unavailable` after TURN_MS. */
  read<Result>(caller: DashboardCaller, read: () => Result | Promise<Result>): Promise<Result>
  /** The same without a session. `address`: what counts as one client. */
  open<Result>(address: string, read: () => Result | Promise<Result>): Promise<Result>
  /** The same for a change, which waits for no page: it is short, and its user waits for it. */
  change<Result>(caller: DashboardCaller, change: () => Result | Promise<Result>): Promise<Result>
}

export function createTurns({ yieldToPings, waitMs = TURN_MS }: TurnsOptions): Turns {
  const pages = createLimiter({ ...PAGES, waitMs, createError: () => busy('pages are being read') })
  const openPages = createLimiter({ ...OPEN_PAGES, waitMs, createError: () => busy('pages are being read') })
  const changes = createLimiter({ ...CHANGES, waitMs, createError: () => busy('changes are being made') })
  const afterPings =
    <Result>(read: () => Result | Promise<Result>) =>
    async () => {
      await yieldToPings()
      return await read()
    }
  return {
    read: ({ id, organizationId }, read) => pages(afterPings(read), [id, organizationId]),
    open: (address, read) => openPages(afterPings(read), [address]),
    change: ({ organizationId }, change) => changes(async () => await change(), [organizationId]),
  }
}

function busy(what: string): AppError {
  return new AppError('unavailable', `too many ${what} at the moment`, { retryAfterSeconds: RETRY_SECONDS })
}
