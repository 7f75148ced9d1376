/**
 * Throttles log-ins for each account and each network address, over all replicas. A try is counted before its outcome is
 * returned, and given back when the password was right, so that many tries at the same time cannot exceed the limit.
 */

import { createHash } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { AppError } from '../domain/errors.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findFullWindow, forgiveWindows, takeFromWindow } from '../store/tenancy/rate-windows.ts'

const LOGIN_WINDOW_SECONDS = 15 * 60
const FAILED_TRIES = { account: 10, address: 50 }

export interface LoginTry {
  /** Throws AppError `too_many_requests` when no tries are left. Counts nothing. */
  assertLeft(): Promise<void>
  /** Counts one try. Throws like `assertLeft`. */
  take(): Promise<void>
  /** After a right password: the account's count starts again, and the address gets its try back. */
  forgive(): Promise<void>
}

/** The account's count is kept by the given e-mail address, whether or not the account exists. */
export function createLoginTry(db: Queryable, { email, address }: { email: string; address: string }): LoginTry {
  const seconds = LOGIN_WINDOW_SECONDS
  const account = { bucket: bucketOf('account', email.toLowerCase()), limit: FAILED_TRIES.account, seconds }
  const origin = { bucket: bucketOf('address', addressGroup(address)), limit: FAILED_TRIES.address, seconds }
  return {
    async assertLeft() {
      const waitSeconds = await findFullWindow(db, [account, origin])
      if (waitSeconds !== null) throw tooManyTries(waitSeconds)
    },
    async take() {
      // The address first: once it is rejected, it cannot use up the tries of accounts.
      for (const window of [origin, account]) {
        const { isAllowed, resetSeconds } = await takeFromWindow(db, window)
        if (!isAllowed) throw tooManyTries(resetSeconds)
      }
    },
    forgive: () => forgiveWindows(db, account.bucket, origin.bucket),
  }
}

function tooManyTries(retryAfterSeconds: number): AppError {
  const message = `too many failed log-ins for this account or from this address; try again in ${retryAfterSeconds} seconds`
  return new AppError('too_many_requests', message, { retryAfterSeconds })
}

/** A hash, so that keys are short and the table holds no addresses. */
function bucketOf(kind: string, text: string): string {
  return `login:${kind}:${createHash('sha256').update(text).digest('base64url')}`
}

/** The part of an address that identifies its holder: with IPv6 the first 64 bits, because one host can use all the others. */
export function addressGroup(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  if (!isIPv6(address)) return address
  const [bare = ''] = address.split('%')
  const [head = '', tail] = bare.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  // A dotted quad at the end counts as two groups.
  const given = before.length + after.length + (bare.includes('.') ? 1 : 0)
  const groups = tail === undefined ? before : [...before, ...Array<string>(8 - given).fill('0'), ...after]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
