/** `scrypt$<log2 N>$<r>$<p>$<salt>$<hash>`: older hashes stay valid when the cost is raised (`isOutdatedHash`). */

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { AppError } from '../domain/errors.ts'
import { GIVEN_LENGTH, type PasswordCost } from '../domain/password.ts'
import { createLimiter } from '../runtime/limiter.ts'

/**
 * One of the settings of equal strength in OWASP's Password Storage Cheat Sheet (N=2^17 p=1 .. N=2^13 p=10). This one
 * needs 32 MiB, which fits twice into a small container, and took 0.22 s where it was measured.
 */
export const COST: PasswordCost = { logN: 15, r: 8, p: 3 }
/** Higher than any cost that we would write: a row with a higher one was not written by this program. */
const MAX_COST = { logN: 20, r: 32, p: 16 }
const SALT_BYTES = 16
const HASH_BYTES = 32

/**
 * scrypt runs on Node's pool of four threads, which DNS and files use too: two computations leave half of it. One runs
 * for each key, so that a client with many log-ins waits behind its own.
 */
const inTurn = createLimiter({
  atOnce: 2,
  perKey: 1,
  waiting: 20,
  waitMs: 10_000,
  createError: () =>
    new AppError('unavailable', 'too many log-ins at the moment; try again shortly', { retryAfterSeconds: 5 }),
})

/** For whom a password is computed: an account, a network, an organization. Those with a key in common take turns. */
export type Keys = readonly string[]

/** Throws AppError `unavailable` when too many computations wait. */
export async function hashPassword(password: string, cost: PasswordCost = COST, keys: Keys = []): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  return format(cost, salt, await inTurn(() => derive(password, salt, cost), keys))
}

/** The hash of a user without a password: no password matches random bytes. */
export function hashOfNone(cost: PasswordCost = COST): string {
  return format(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES))
}

function format({ logN, r, p }: PasswordCost, salt: Buffer, hash: Buffer): string {
  return ['scrypt', logN, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$')
}

/**
 * Whether the password matches `stored`. For null, an account that does not exist, it is false after the same time, and
 * so is a password beyond GIVEN_LENGTH. Throws AppError `unavailable` when too many computations wait.
 */
export async function verifyPassword(
  password: string,
  stored: string | null,
  unknownCost = COST,
  keys: Keys = [],
): Promise<boolean> {
  const { cost, salt, hash } = parseHash(stored ?? hashOfNone(unknownCost))
  // The time to normalise a text grows with the square of its length: 64 KB of combining marks take more than a second.
  const isTooLong = password.length > GIVEN_LENGTH
  const derived = await inTurn(() => derive(isTooLong ? '' : password, salt, cost), keys)
  return timingSafeEqual(derived, hash) && !isTooLong
}

export function isOutdatedHash(stored: string, today: PasswordCost = COST): boolean {
  const { cost } = parseHash(stored)
  return cost.logN !== today.logN || cost.r !== today.r || cost.p !== today.p
}

const STORED = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]{22})\$([\w-]{43})$/

function parseHash(stored: string): { cost: PasswordCost; salt: Buffer; hash: Buffer } {
  const match = STORED.exec(stored)
  const cost = { logN: Number(match?.[1]), r: Number(match?.[2]), p: Number(match?.[3]) }
  if (match === null || cost.logN > MAX_COST.logN || cost.r > MAX_COST.r || cost.p > MAX_COST.p) {
    throw new Error('users.password_hash was not written by this program: remove the user and create it again')
  }
  return { cost, salt: Buffer.from(match[4]!, 'base64url'), hash: Buffer.from(match[5]!, 'base64url') }
}

function derive(password: string, salt: Buffer, { logN, r, p }: PasswordCost): Promise<Buffer> {
  const N = 2 ** logN
  // scrypt needs a little more than 128 * r * (N + p) bytes, which is above Node's default limit.
  const options = { N, r, p, maxmem: 256 * r * (N + p) }
  return new Promise((resolve, reject) => {
    // Systems compose characters differently (é is one code point or two).
    scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, hash) =>
      error ? reject(error) : resolve(hash),
    )
  })
}
