import type { Instant } from '../domain/check.ts'
import { formatUuid, writeTimeOrderedId } from '../domain/ids.ts'

/** The smallest id of its microsecond: ids carry their time, so a primary key finds what is older. No id is from before 1970. */
export function firstIdAt(at: Instant): string {
  return formatUuid(writeTimeOrderedId(Buffer.alloc(16), Math.max(0, at)))
}
