/** Where names and tokens led last, for pings while the database is away. Hashes: a text would keep its request. */

import { createHash } from 'node:crypto'

/** About 200 bytes each. */
const MOST = 100_000

/** The addresses that were not used for the longest time are forgotten first. */
export function createLastFound(most = MOST) {
  const publicIds = new Map<string, string>()
  return {
    /** After each look-up. Null: the address leads to no check any more. */
    note(address: string, publicId: string | null): void {
      const hash = hashOf(address)
      // A Map keeps the order in which its entries were added.
      publicIds.delete(hash)
      if (publicId === null) return
      publicIds.set(hash, publicId)
      if (publicIds.size > most) publicIds.delete(publicIds.keys().next().value!)
    },
    /** Null: not known. */
    recall: (address: string): string | null => publicIds.get(hashOf(address)) ?? null,
  }
}

const hashOf = (address: string) => createHash('sha256').update(address).digest('base64url')
