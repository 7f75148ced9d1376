/**
 * The turns of pages and changes. A page may read all checks of an organization: few are read at the same time, the others wait, so that users who
 * look at many pages slow neither pings nor each other's organization, nor one user the others of the organization.
 */

import type { DashboardCaller } from '../../auth/dashboard-session.ts'
import { AppError } from '../../domain/errors.ts'
import { createSharedPlaces } from '../../runtime/places.ts'

/** As for lists of the API (http/api/send-pages.ts): the other processors of PostgreSQL are for pings. */
const PAGES_AT_ONCE = 2
/** Of these, those of one organization. */
const PAGES_PER_ORGANIZATION = 1
/** Of those that wait for the place of the organization: the others of the user wait behind. */
const PAGES_PER_USER = 1
/** Without a session: each address waits for itself. */
const OPEN_AT_ONCE = 2
const OPEN_PER_ADDRESS = 1
/** Each takes a connection of the pool. */
const CHANGES_AT_ONCE = 8
const CHANGES_PER_ORGANIZATION = 4
/** The longest wait. A page takes a few hundredths of a second. */
const WAIT_MS = 5_000
const RETRY_SECONDS = 5

export interface TurnsOptions {
  /** Resolves when no ping is being stored, or after a short time: pings have priority. */
  readonly yieldToPings: () => Promise<void>
  /** For tests. */
  readonly waitMs?: number | undefined
}

export interface Turns {
  /** Runs `read` when it is the user's turn. Throws AppError `unavailable` after WAIT_MS. */
  read<Result>(caller: DashboardCaller, read: () => Result | Promise<Result>): Promise<Result>
  /** The same without a session. `address`: what counts as one client. */
  open<Result>(address: string, read: () => Result | Promise<Result>): Promise<Result>
  /** The same for a change, which waits for no page: it is short, and its user waits for it. */
  change<Result>(caller: DashboardCaller, change: () => Result | Promise<Result>): Promise<Result>
}

export function createTurns({ yieldToPings, waitMs = WAIT_MS }: TurnsOptions): Turns {
  const users = createSharedPlaces(Number.POSITIVE_INFINITY, PAGES_PER_USER)
  const pages = createSharedPlaces(PAGES_AT_ONCE, PAGES_PER_ORGANIZATION)
  const openPages = createSharedPlaces(OPEN_AT_ONCE, OPEN_PER_ADDRESS)
  const changes = createSharedPlaces(CHANGES_AT_ONCE, CHANGES_PER_ORGANIZATION)
  return {
    async read({ id, organizationId }, read) {
      const giveUpAt = performance.now() + waitMs
      const leaveUser = await users.take(id, waitMs)
      if (leaveUser === null) throw busy('pages are being read')
      const leave = await pages.take(organizationId, Math.max(0, giveUpAt - performance.now()))
      try {
        if (leave === null) throw busy('pages are being read')
        await yieldToPings()
        return await read()
      } finally {
        leave?.()
        leaveUser()
      }
    },
    async open(address, read) {
      const leave = await openPages.take(address, waitMs)
      if (leave === null) throw busy('pages are being read')
      try {
        await yieldToPings()
        return await read()
      } finally {
        leave()
      }
    },
    async change({ organizationId }, change) {
      const leave = await changes.take(organizationId, waitMs)
      if (leave === null) throw busy('changes are being made')
      try {
        return await change()
      } finally {
        leave()
      }
    },
  }
}

function busy(what: string): AppError {
  return new AppError('unavailable', `too many ${what} at the moment`, { retryAfterSeconds: RETRY_SECONDS })
}
