import { createHash } from 'node:crypto'

/** The name of a check for read-only keys: the SHA-1 of the first 16 hex digits of its uuid. Pings do not take it. */
export function uniqueKeyOf(uuid: string): string {
  return createHash('sha1').update(uuid.replaceAll('-', '').slice(0, 16).toLowerCase()).digest('hex')
}
