/**
 * Passwords are stored as scrypt hashes: `scrypt$<log2 N>$<r>$<p>$<salt>$<hash>`, both in base64url. The parameters are in
 * the text, so raising them leaves older hashes valid (and `isOutdatedHash` tells which to renew).
 */

import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { AppError } from '../domain/errors.ts'
import { createSemaphore } from '../runtime/semaphore.ts'

interface Cost {
  readonly logN: number
  readonly r: number
  readonly p: number
}

/**
 * One of the settings of equal strength in OWASP's Password Storage Cheat Sheet (N=2^17 p=1 .. N=2^13 p=10). This one needs
 * 32 MiB, which a small container can spare twice, and took 0.22 s where it was measured.
 */
const COST: Cost = { logN: 15, r: 8, p: 3 }
/** More than any cost that we would write; a row that asks for more was not written by us. */
const HIGHEST = { logN: 20, r: 32, p: 16 }
const SALT_BYTES = 16
const HASH_BYTES = 32

export const PASSWORD_LENGTH = { min: 8, max: 200 }

/**
 * scrypt runs on the thread pool of four that DNS and files use too: two at a time leave it half. With twenty waiting the
 * last one is answered within some three seconds.
 */
const runInSlot = createSemaphore({
  slots: 2,
  queue: {
    length: 20,
    createError: () =>
      new AppError('unavailable', 'too many log-ins at the moment; try again shortly', { retryAfterSeconds: 5 }),
  },
})

/** Whether a password has 8 .. 200 characters (code points). */
export function isPassword(text: string): boolean {
  const { min, max } = PASSWORD_LENGTH
  // Each code point is one or two units: what is longer than that need not be counted.
  const length = text.length > max * 2 ? Number.POSITIVE_INFINITY : [...text].length
  return length >= min && length <= max
}

/** `cost`: other than today's only to make an old hash. Throws AppError `unavailable` when too many passwords wait for their turn. */
export async function hashPassword(password: string, cost: Cost = COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await runInSlot(() => derive(password, salt, cost))
  return ['scrypt', cost.logN, cost.r, cost.p, salt.toString('base64url'), hash.toString('base64url')].join('$')
}

/** What is compared with for an account that does not exist, at the same cost. No password has a hash of random bytes. */
const NOBODY: ParsedHash = { cost: COST, salt: randomBytes(SALT_BYTES), hash: randomBytes(HASH_BYTES) }

/**
 * Whether the password belongs to `stored`; null stands for an account that does not exist: false, after as long a time.
 * Throws AppError `unavailable` when too many wait for their turn.
 */
export async function verifyPassword(password: string, stored: string | null): Promise<boolean> {
  const { cost, salt, hash } = stored === null ? NOBODY : parseHash(stored)
  return timingSafeEqual(await runInSlot(() => derive(password, salt, cost)), hash)
}

/** Whether the hash was made at another cost than today's. */
export function isOutdatedHash(stored: string): boolean {
  const { cost } = parseHash(stored)
  return cost.logN !== COST.logN || cost.r !== COST.r || cost.p !== COST.p
}

interface ParsedHash {
  readonly cost: Cost
  readonly salt: Buffer
  readonly hash: Buffer
}

const STORED = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]{22})\$([\w-]{43})$/

function parseHash(stored: string): ParsedHash {
  const match = STORED.exec(stored)
  const cost = { logN: Number(match?.[1]), r: Number(match?.[2]), p: Number(match?.[3]) }
  if (match === null || cost.logN > HIGHEST.logN || cost.r > HIGHEST.r || cost.p > HIGHEST.p) {
    throw new Error(
      'users.password_hash is not of the form that this program writes: remove the user and make it again',
    )
  }
  return { cost, salt: Buffer.from(match[4]!, 'base64url'), hash: Buffer.from(match[5]!, 'base64url') }
}

function derive(password: string, salt: Buffer, { logN, r, p }: Cost): Promise<Buffer> {
  const N = 2 ** logN
  // scrypt needs 128 * r * (N + p) bytes and a little; Node's own limit is below that.
  const options = { N, r, p, maxmem: 256 * r * (N + p) }
  return new Promise((resolve, reject) => {
    // The same password typed on another system may be composed otherwise (é as one code point or two).
    scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, hash) =>
      error ? reject(error) : resolve(hash),
    )
  })
}
