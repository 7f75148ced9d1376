/**
 * The credential in the link of a message: a person who has the message may acknowledge its incident, and nothing else.
 * A token names a check and the beginning of an incident. It is valid until the incident ends: a reader compares both.
 */

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Incident } from '../domain/check.ts'

/** Names the purpose, which makes the key independent of others derived from SECRET_KEY (RFC 5869, section 3.2). */
const KEY_INFO = 'heartbeat-operator incident token v1'
const ID_BYTES = 16
const TIME_BYTES = 6
const MAC_BYTES = 16
const BYTES = ID_BYTES + TIME_BYTES + MAC_BYTES
/** In base64url, without padding. */
const TOKEN = new RegExp(`^[A-Za-z0-9_-]{${Math.ceil((BYTES * 4) / 3)}}$`)

export type IncidentTokens = ReturnType<typeof createIncidentTokens>

/** `previous`: of PREVIOUS_SECRET_KEYS. They sign nothing, but messages that were sent under them are valid. */
export function createIncidentTokens(secretKey: Buffer, previous: readonly Buffer[]) {
  const keys = [secretKey, ...previous].map((key) => Buffer.from(hkdfSync('sha256', key, '', KEY_INFO, 32)))
  const macOf = (key: Buffer, named: Buffer) => createHmac('sha256', key).update(named).digest().subarray(0, MAC_BYTES)

  return {
    sign({ checkId, since }: Incident): string {
      const named = Buffer.alloc(ID_BYTES + TIME_BYTES)
      named.write(checkId.replaceAll('-', ''), 'hex')
      named.writeUIntBE(since, ID_BYTES, TIME_BYTES)
      return Buffer.concat([named, macOf(keys[0]!, named)]).toString('base64url')
    },

    /** Null for what we have not signed. */
    read(token: string): Incident | null {
      if (!TOKEN.test(token)) return null
      const bytes = Buffer.from(token, 'base64url')
      // The last character has bits that no byte has: one incident has one token.
      if (bytes.toString('base64url') !== token) return null
      const named = bytes.subarray(0, ID_BYTES + TIME_BYTES)
      const mac = bytes.subarray(ID_BYTES + TIME_BYTES)
      // Each key is compared: the time does not show which key fits.
      const fits = keys.map((key) => timingSafeEqual(macOf(key, named), mac))
      if (!fits.includes(true)) return null
      const hex = named.toString('hex', 0, ID_BYTES)
      const checkId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
      return { checkId, since: named.readUIntBE(ID_BYTES, TIME_BYTES) }
    },
  }
}
