/**
 * Throttles guesses of passwords by account and address, over all replicas (design, section 3.4). A guess that gets 429
 * counts for no wide limit, and for the strict limit only if a right password would have passed.
 */

import type { Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { addressGroup, networkGroup } from '../runtime/addresses.ts'
import { hashText } from '../runtime/hashes.ts'
import type { Queryable } from '../store/postgres/database.ts'
import * as store from '../store/tenancy/login-failures.ts'
import { takeFromSlidingWindow } from '../store/tenancy/rate-windows.ts'

const WINDOW_MS = 15 * 60_000
/** Strict: for an account from one address. Wide: an account, an address, and an IPv6 network of 256 addresses. */
const FAILURES = { strict: 10, account: 100, address: 50, network: 100 }
/** Of right passwords for an account from one address: a program that logs in every three seconds has a fault. */
const RIGHT = 300
const TOO_MANY_RIGHT = 'too many log-ins of this account from this address: keep a session, or use an API key'

/** How long callers over a limit have to wait; null within it. */
export interface ThrottleState {
  readonly strictMs: number | null
  readonly wideMs: number | null
  /** The wide limits come first: the strict one would show that guesses above the wide limits were counted. */
  readonly waitMs: number | null
}

/** The account's failures are counted by the given e-mail address, in lower case, whether or not the account exists. */
export function createLoginThrottle({ email, address }: { email: string; address: string }) {
  const [group, network] = [addressGroup(address), networkGroup(address)]
  const wide = [
    ...(network === group ? [] : [bucketOf('network', network, FAILURES.network)]),
    bucketOf('address', group, FAILURES.address),
    bucketOf('account', email, FAILURES.account),
  ]
  const strict = bucketOf('strict', `${group} ${email}`, FAILURES.strict)
  // Locked in this order.
  const failures = [...wide, strict]

  async function read(db: Queryable, now: Instant): Promise<ThrottleState> {
    const left = (await store.findFilled(db, failures)).map((at) => leftMs(at, now))
    const [strictMs, wideMs] = [left.pop() ?? null, longest(left)]
    return { strictMs, wideMs, waitMs: wideMs ?? strictMs }
  }

  return {
    read,
    /** Until the transaction ends, no other attempt at this account or from this address is judged. */
    async lock(tx: Queryable, now: Instant): Promise<ThrottleState> {
      await store.lockFailures(tx, failures, now)
      await store.boundFailures(tx, now - WINDOW_MS)
      return read(tx, now)
    },
    /** Counts a failure; above a wide limit, for the strict limit alone. The caller holds the lock. */
    async count(tx: Queryable, now: Instant, limits: 'every' | 'strict'): Promise<ThrottleState> {
      await store.addFailure(tx, limits === 'every' ? failures : [strict], now)
      return read(tx, now)
    },
    /** Throws AppError `too_many_requests` for one right password too many. */
    async countRight(tx: Queryable): Promise<void> {
      const window = { ...bucketOf('logins', `${group} ${email}`, RIGHT), seconds: WINDOW_MS / 1_000 }
      const { isAllowed, resetSeconds } = await takeFromSlidingWindow(tx, window)
      if (!isAllowed) throw throttled(TOO_MANY_RIGHT, resetSeconds * 1_000)
    },
  }
}

function leftMs(filledAt: Instant | null, now: Instant): number | null {
  return filledAt === null || filledAt + WINDOW_MS <= now ? null : filledAt + WINDOW_MS - now
}

function longest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** The same text for every limit of failures, so that it does not show which addresses an account uses. */
export function tooManyFailures(waitMs: number): AppError {
  return throttled('too many failed log-ins for this account or from this address', waitMs)
}

function throttled(why: string, waitMs: number): AppError {
  const retryAfterSeconds = Math.min(Math.max(Math.ceil(waitMs / 1_000), 1), WINDOW_MS / 1_000)
  const message = `${why}; try again in ${retryAfterSeconds} seconds`
  return new AppError('too_many_requests', message, { retryAfterSeconds })
}

/** A hash, so that keys are short and the table holds no addresses. */
function bucketOf(kind: string, text: string, limit: number): store.FailureBucket {
  return { bucket: `${kind}:${hashText(text).toString('base64url')}`, limit }
}
