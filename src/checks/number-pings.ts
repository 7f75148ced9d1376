/** The pings of a check by their numbers: the first that was stored since the check was made is 1. */

import type { Tenant } from '../domain/access.ts'
import { notFound } from '../domain/errors.ts'
import type { Context } from '../store/context.ts'
import { findNumberedIds } from '../store/history/numbered-pings.ts'
import { findPing, type PingRecord, readPings } from '../store/history/pings.ts'
import { findKey } from './find-checks.ts'

/** The newest pings of a check that have a number. */
export const NUMBERED_PINGS = 1_000

export interface NumberedPing {
  readonly number: number
  readonly hasBody: boolean
  readonly ping: PingRecord
}

/** Pings that one statement reads, with the first byte of each body: whether there is one. */
const PIECE_PINGS = 100
const NO_BODIES = { bodyBytes: 1, maxBytes: 65_536 }

/** Newest first, without their bodies, in pieces. Those that arrive meanwhile are not among them. */
export async function* listNumberedPings(
  context: Context,
  tenant: Tenant,
  checkId: string,
): AsyncGenerator<readonly NumberedPing[]> {
  const { database } = context
  const key = await findKey(context, tenant, checkId)
  const { ids, total } = await findNumberedIds(database, key, NUMBERED_PINGS)
  const numbers = new Map(ids.map((id, place) => [id, total - place]))
  for (let at = 0; at < ids.length; at += PIECE_PINGS) {
    const rows = await readPings(database, key, ids.slice(at, at + PIECE_PINGS), NO_BODIES)
    yield rows.map((ping) => ({
      number: numbers.get(ping.id)!,
      hasBody: ping.body !== null && ping.body.length > 0,
      ping: { ...ping, body: null },
    }))
  }
}

/** One ping, with all of its body. Throws AppError `not_found` also for a ping that is not among the newest. */
export async function getNumberedPing(
  context: Context,
  tenant: Tenant,
  checkId: string,
  number: number,
): Promise<PingRecord> {
  const { database } = context
  const key = await findKey(context, tenant, checkId)
  const { ids, total } = await findNumberedIds(database, key, NUMBERED_PINGS)
  const id = ids[total - number]
  const ping = id === undefined ? null : await findPing(database, key, id)
  if (ping === null) throw notFound('ping')
  return ping
}
