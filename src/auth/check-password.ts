/** Judges an address and a password. Neither the outcome nor its time shows whether the account exists. */

import { type Audited, audited } from '../audit/audited.ts'
import type { Instant } from '../domain/check.ts'
import { isEmail, toUserEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import { addressGroup, networkGroup } from '../runtime/addresses.ts'
import { pause } from '../runtime/clock.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { hasLoginAddress } from '../store/tenancy/login-addresses.ts'
import { findUserByEmail, lockUser, type UserWithHash } from '../store/tenancy/users.ts'
import { actorOf, actsOfFailure } from './account-audit.ts'
import { type Keys, verifyPassword } from './passwords.ts'
import { createLoginThrottle, type ThrottleState, tooManyFailures } from './throttle.ts'

export interface PasswordAttempt {
  readonly email: string
  readonly password: string
  readonly address: string
}

/** What a right password does, in the transaction that judges it. The user's row is locked. */
export type OnRight<T> = (tx: Queryable, user: UserWithHash, now: Instant) => Promise<Audited<T>>

/** The error is thrown after the transaction that counts the failure. */
type Outcome<T> = { readonly result: T } | AppError

/** The pruner deletes older addresses. */
const KNOWN_ADDRESS_MS = 30 * 86_400_000
/**
 * Longer than the computation of a hash. Over a wide limit only passwords of accounts that know the address are
 * computed, which must not show: it would name the accounts that log in from there.
 */
const ABOVE_WIDE_MS = 1_000

/** By account and by network: many log-ins to one account, or from one network, leave a place for others. */
function keysOf(email: string, address: string): Keys {
  return [`network:${networkGroup(address)}`, `account:${isEmail(email) ? email : ''}`]
}

/**
 * A right password runs `right` in the transaction that judges the attempt; a wrong password counts there, and throws
 * `wrong`. Throws AppError `too_many_requests`, or `unavailable` when too many passwords are computed.
 */
export async function withPassword<T>(
  context: Context,
  attempt: PasswordAttempt,
  wrong: AppError,
  right: OnRight<T>,
): Promise<T> {
  const { database, clock } = context
  const { address } = attempt
  const given = attempt.email.trim()
  const email = toUserEmail(given) ?? given
  const throttle = createLoginThrottle({ email, address })
  const user = isEmail(email) ? await findUserByEmail(database, email) : null
  const before = await throttle.read(database, clock.now())

  /** Never over the strict limit; over a wide limit if the account has logged in from this address lately. */
  async function passes(db: Queryable, { strictMs, wideMs }: ThrottleState): Promise<boolean> {
    if (strictMs !== null) return false
    if (wideMs === null) return true
    return user !== null && hasLoginAddress(db, user.id, addressGroup(address), clock.now() - KNOWN_ADDRESS_MS)
  }

  async function decide(): Promise<Outcome<T>> {
    // A throttled caller is rejected before it waits for the computation of the hash.
    if (before.waitMs !== null && !(await passes(database, before))) return tooManyFailures(before.waitMs)
    const keys = keysOf(email, address)
    const isRight = await verifyPassword(attempt.password, user?.passwordHash ?? null, context.passwordCost, keys)
    return audited(context, actorOf(user, address), (tx) => judge(tx, user !== null && isRight ? user : null))
  }

  /** `proven`: whose password is right. Of many attempts at a time, as many as the limits leave learn the answer. */
  async function judge(tx: Queryable, proven: UserWithHash | null): Promise<Audited<Outcome<T>>> {
    const now = clock.now()
    const state = await throttle.lock(tx, now)
    const mayPass = await passes(tx, state)
    if (proven !== null) {
      if (state.waitMs !== null && !mayPass) return { result: tooManyFailures(state.waitMs), acts: [] }
      // Removed, or with another password since the computation began: its sessions have ended, and none may begin.
      const current = await lockUser(tx, proven.id, proven.passwordHash)
      if (current === null) return { result: wrong, acts: [] }
      await throttle.countRight(tx)
      const { result, acts } = await right(tx, current, now)
      return { result: { result }, acts }
    }
    // Where a right password would have passed a wide limit, the 429 says that the password is wrong, too.
    const waitMs = before.waitMs ?? state.waitMs
    const result = waitMs === null ? wrong : tooManyFailures(waitMs)
    if (!mayPass) return { result, acts: [] }
    const { waitMs: leftMs, strictMs } = await throttle.count(tx, now, waitMs === null ? 'every' : 'strict')
    const locks = (waitMs === null ? leftMs : strictMs) !== null
    return { result, acts: await actsOfFailure(tx, user, locks) }
  }

  const [outcome] = await Promise.all([decide(), before.wideMs === null ? null : pause(ABOVE_WIDE_MS)])
  if (outcome instanceof AppError) throw outcome
  return outcome.result
}
