/**
 * A page may read all checks of an organization: few are read at the same time, so that users who look at many pages
 * slow neither pings nor another organization, nor one user the others. Other processors are for pings.
 */

import type { DashboardCaller } from '../../auth/sessions.ts'
import { AppError } from '../../domain/errors.ts'
import { createLimiter } from '../../runtime/limiter.ts'
import { CHANGES, OPEN_PAGES, PAGES, RETRY_SECONDS, TURN_MS } from '../limits.ts'

type Work<Result> = () => Result | Promise<Result>

export type Turns = ReturnType<typeof createTurns>

/** Each turn throws AppError `unavailable` when it does not come within `waitMs`, which is another one in tests. */
export function createTurns(waitMs = TURN_MS) {
  const pages = createLimiter({ ...PAGES, waitMs, createError: () => busy('pages are being read') })
  const openPages = createLimiter({ ...OPEN_PAGES, waitMs, createError: () => busy('pages are being read') })
  const changes = createLimiter({ ...CHANGES, waitMs, createError: () => busy('changes are being made') })
  return {
    read: <Result>({ id, organizationId }: DashboardCaller, read: Work<Result>) =>
      pages(async () => read(), [id, organizationId]),
    /** Without a session. `address`: what counts as one client. */
    open: <Result>(address: string, read: Work<Result>) => openPages(async () => read(), [address]),
    /** A change waits for no page: it is short, and its user waits for it. */
    change: <Result>({ organizationId }: DashboardCaller, change: Work<Result>) =>
      changes(async () => change(), [organizationId]),
  }
}

function busy(what: string): AppError {
  return new AppError('unavailable', `too many ${what} at the moment`, { retryAfterSeconds: RETRY_SECONDS })
}
