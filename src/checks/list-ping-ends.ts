/** The pings of a check with the ends of their texts: the end of a log says why a job failed. */

import type { Tenant } from '../domain/access.ts'
import type { Page, PageRequest } from '../domain/page.ts'
import type { Context } from '../store/context.ts'
import { type BodyEnd, type PingRow, readBodyEnds } from '../store/history/pings.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findKey } from './find-checks.ts'
import { listPings, type PingFilter } from './find-history.ts'

export type { BodyEnd, PingRow } from '../store/history/pings.ts'

/** The most bytes of a text that are read. */
export const TEXT_END_BYTES = 4_096
/** Texts that one statement reads: 100 KB. */
const PIECE_TEXTS = 25

export interface PingWithEnd extends PingRow {
  /** Null: the ping came without a text. */
  readonly text: BodyEnd | null
}

/** A page of a check's pings, newest first. Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function listPingEnds(
  context: Context,
  tenant: Tenant,
  checkId: string,
  filter: PingFilter,
  request: PageRequest,
): Promise<Page<PingWithEnd>> {
  const { rows, next } = await listPings(context, tenant, checkId, { ...filter, body: 'none' }, request)
  const key = await findKey(context, tenant, checkId)
  return { rows: await addEnds(context.database, key, rows), next }
}

/** These pings with the ends of their texts, which are read in pieces. */
export async function addEnds(database: Queryable, key: number, pings: readonly PingRow[]): Promise<PingWithEnd[]> {
  const ends = new Map<string, BodyEnd>()
  for (let at = 0; at < pings.length; at += PIECE_TEXTS) {
    const ids = pings.slice(at, at + PIECE_TEXTS).map(({ id }) => id)
    for (const end of await readBodyEnds(database, key, ids, TEXT_END_BYTES)) ends.set(end.pingId, end)
  }
  return pings.map((ping) => ({ ...ping, text: ends.get(ping.id) ?? null }))
}
