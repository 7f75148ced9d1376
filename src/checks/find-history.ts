/** Reads of the history of checks, newest first. Unknown, foreign and malformed ids all give AppError `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { Instant, PingType } from '../domain/check.ts'
import { notFound } from '../domain/errors.ts'
import { FIRST_ID, isUuid, LAST_ID } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { firstIdAt, timeOfId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import { type FlipRecord, listFlipRows } from '../store/history/flips.ts'
import {
  type BodyEnd,
  findPing,
  findPingIds,
  type PingRange,
  type PingRecord,
  type PingRow,
  readBodyEnds,
  readPings,
} from '../store/history/pings.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findKey } from './find-checks.ts'

export type { FlipRecord } from '../store/history/flips.ts'
export type { BodyEnd, PingRecord, PingRow } from '../store/history/pings.ts'

export interface HistoryFilter {
  /** From this time on. */
  readonly since?: Instant
  /** Before this time. */
  readonly until?: Instant
}

export interface PingFilter extends HistoryFilter {
  readonly type?: PingType
}

/** How much of a body is read: nothing, enough for BODY_CUT characters, or all of it. */
export const BODY_FORMS = ['none', 'cut', 'full'] as const
export type BodyForm = (typeof BODY_FORMS)[number]

/** Characters of a body in the form `cut`. */
export const BODY_CUT = 200
/** A character has at most four bytes. More than a stored body has. */
const BODY_BYTES: Record<BodyForm, number> = { none: 0, cut: 4 * BODY_CUT, full: 1_048_576 }

/** The most bytes of the end of a body that are read: the end of a log says why a job failed. */
export const TEXT_END_BYTES = 4_096
/** Ends of bodies that one statement reads: 100 KB. */
const PIECE_ENDS = 25

export interface PingWithEnd extends PingRow {
  /** Null: the ping came without a text. */
  readonly text: BodyEnd | null
}

/** Bytes of bodies that one statement reads. */
const MOST_BODY_BYTES = 65_536

/**
 * The pings of a check. A page with bodies may have less than `limit` of them, and at least one while there are more.
 */
export async function listPings(
  context: Context,
  tenant: Tenant,
  checkId: string,
  filter: PingFilter & { body: BodyForm },
  request: PageRequest,
): Promise<Page<PingRecord>> {
  return listPingsOf(context, await findKey(context, tenant, checkId), filter, request)
}

/** The same with the ends of their texts. */
export async function listPingEnds(
  context: Context,
  tenant: Tenant,
  checkId: string,
  filter: PingFilter,
  request: PageRequest,
): Promise<Page<PingWithEnd>> {
  const key = await findKey(context, tenant, checkId)
  const { rows, next } = await listPingsOf(context, key, { ...filter, body: 'none' }, request)
  return { rows: await addEnds(context.database, key, rows), next }
}

/** These pings with the ends of their texts, which are read in pieces. */
export async function addEnds(database: Queryable, key: number, pings: readonly PingRow[]): Promise<PingWithEnd[]> {
  const ends = new Map<string, BodyEnd>()
  for (let at = 0; at < pings.length; at += PIECE_ENDS) {
    const ids = pings.slice(at, at + PIECE_ENDS).map(({ id }) => id)
    for (const end of await readBodyEnds(database, key, ids, TEXT_END_BYTES)) ends.set(end.pingId, end)
  }
  return pings.map((ping) => ({ ...ping, text: ends.get(ping.id) ?? null }))
}

async function listPingsOf(
  context: Context,
  key: number,
  { type, since, until, body }: PingFilter & { body: BodyForm },
  { limit, after }: PageRequest,
): Promise<Page<PingRecord>> {
  const untilId = until === undefined ? LAST_ID : firstIdAt(storable(until))
  const beforeId = after !== null && after.id < untilId ? after.id : untilId
  const range = {
    beforeId,
    fromId: since === undefined ? FIRST_ID : firstIdAt(storable(since)),
    ...(type === undefined ? {} : { type }),
  }
  const ids = await findIds(context, key, range, limit + 1)
  const wanted = ids.slice(0, limit)
  if (wanted.length === 0) return { rows: [], next: null }
  const amount = { bodyBytes: BODY_BYTES[body], maxBytes: MOST_BODY_BYTES }
  const rows = await readPings(context.database, key, wanted, amount)
  // No rows: they were deleted meanwhile.
  const last = (rows.at(-1) ?? { id: wanted.at(-1)! }).id
  return { rows, next: last === ids.at(-1) ? null : { at: timeOfId(last), id: last } }
}

/** Up to `count` ids, by statements that each read a bounded number of rows. */
async function findIds({ database }: Context, key: number, range: PingRange, count: number): Promise<string[]> {
  const ids: string[] = []
  let beforeId: string | null = range.beforeId
  while (beforeId !== null) {
    const found = await findPingIds(database, key, { ...range, beforeId }, count - ids.length)
    ids.push(...found.ids)
    beforeId = found.readTo
  }
  return ids
}

/** One ping of a check, with all of its body. */
export async function getPing(context: Context, tenant: Tenant, checkId: string, pingId: string): Promise<PingRecord> {
  const key = await findKey(context, tenant, checkId)
  const ping = isUuid(pingId) ? await findPing(context.database, key, pingId) : null
  if (ping === null) throw notFound('ping')
  return ping
}

/** The flips of a check. */
export async function listFlips(
  context: Context,
  tenant: Tenant,
  checkId: string,
  page: PageRequest,
  { since, until }: HistoryFilter = {},
): Promise<Page<FlipRecord>> {
  const key = await findKey(context, tenant, checkId)
  const range = {
    since: since === undefined ? null : storable(since),
    until: until === undefined ? null : storable(until),
  }
  return readPage(page, ({ limit, after }) =>
    listFlipRows(context.database, key, { ...range, beforeId: after?.id ?? null }, limit),
  )
}

/** The nearest time that an entry can have: ids have none before 1970, and PostgreSQL's text has four digits for the year. */
function storable(at: Instant): Instant {
  return Math.min(Math.max(at, 0), Date.UTC(9999, 11, 31))
}
