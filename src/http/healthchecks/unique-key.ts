import { createHash } from 'node:crypto'

/**
 * How healthchecks names a check for read-only keys, 40 hex digits: the SHA-1 of the first 16 hex digits of its uuid.
 * Pings do not take it.
 */
export function uniqueKeyOf(uuid: string): string {
  return createHash('sha1').update(uuid.replaceAll('-', '').slice(0, 16).toLowerCase()).digest('hex')
}
