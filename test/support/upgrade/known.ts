/** What the dump of a release consists of, and what the tests know of it beside its rows. */

import { readFileSync } from 'node:fs'

export interface Known {
  readonly project: string
  readonly payments: string
  /** By name: the text of each key. */
  readonly keys: Record<string, string>
  readonly refreshTokens: { readonly unspent: string; readonly spent: string }
  /** By name: the id. */
  readonly channels: Record<string, string>
  readonly checks: Record<string, { readonly id: string; readonly publicId: string }>
  /** By path: what GET returned to an admin when the dump was made. */
  readonly responses: Record<string, unknown>
}

export const SECRET_KEY = Buffer.alloc(32, 7)
export const PASSWORDS = {
  admin: 'the phrase of an admin',
  writer: 'the phrase of a writer',
  reader: 'the phrase of a reader',
}
export const ADMIN_KEY = `hbk_before_${'example'.repeat(6).slice(0, 40)}`
/** All channels of the dump send here. Below the ports that systems give to outgoing connections. */
export const RECEIVER_PORT = 29_471

const FOLDER = new URL('../../fixtures/release/', import.meta.url)
export const FILES = { dump: new URL('dump.sql', FOLDER), known: new URL('known.json', FOLDER) }

export const readKnown = (): Known => JSON.parse(readFileSync(FILES.known, 'utf8'))
