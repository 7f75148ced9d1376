/** Randomness as a part. */

import { randomFillSync } from 'node:crypto'

const POOL_BYTES = 8_192
let pool = Buffer.alloc(0)
let used = 0

/** Sixteen random bytes of their own; drawn from a pool, since one system call for each ping's id would cost more than the id. */
export function randomIdBytes(): Buffer {
  if (used + 16 > pool.length) {
    pool = randomFillSync(Buffer.allocUnsafeSlow(POOL_BYTES))
    used = 0
  }
  used += 16
  return pool.subarray(used - 16, used)
}
