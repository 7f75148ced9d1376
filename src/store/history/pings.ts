/** Reads of the history of pings. Written by saveChanges (change-sets.ts), pruned by pruning.ts. */

import { type Instant, PING_SOURCES, PING_TYPES, type PingSource, type PingType } from '../../domain/check.ts'
import { pingTypeCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'

export interface PingRecord {
  readonly id: string
  readonly type: PingType
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly source: PingSource
  readonly createdAt: Instant
  /** The bytes that were sent, or the first of them; null for none. */
  readonly body: Buffer | null
  /** Whether more was sent than `body`. */
  readonly isBodyTruncated: boolean
}

/** Ids have the order of the history, and carry its times: the newest first, older than `beforeId`, not older than `fromId`. */
export interface PingRange {
  readonly beforeId: string
  readonly fromId: string
  readonly type?: PingType
}

/** Rows of the primary key that one statement reads to find pings of a type. */
export const SCANNED_ROWS = 5_000

/** Newest first. `readTo`: where the statement stopped after SCANNED_ROWS rows; null: at the end, or at `limit`. */
export async function findPingIds(
  db: Queryable,
  key: number,
  { beforeId, fromId, type }: PingRange,
  limit: number,
): Promise<{ ids: string[]; readTo: string | null }> {
  const range = 'check_key = $1 and id < $2 and id >= $3'
  if (type === undefined) {
    const { rows } = await db.query<{ id: string }>({
      name: 'find_ping_ids',
      text: `select id from pings where ${range} order by id desc limit $4`,
      values: [key, beforeId, fromId, limit],
    })
    return { ids: rows.map(({ id }) => id), readTo: null }
  }
  const { rows } = await db.query<{ ids: string[]; readTo: string | null }>({
    name: 'find_ping_ids_of_type',
    text: `with read as materialized (
        select id, type from pings where ${range} order by id desc limit ${SCANNED_ROWS})
      select array(select id from read where type = $5 order by id desc limit $4) as ids,
        (select id from read order by id desc offset ${SCANNED_ROWS - 1}) as "readTo"`,
    values: [key, beforeId, fromId, limit, pingTypeCode(type)],
  })
  const { ids, readTo } = rows[0]!
  return { ids, readTo: ids.length < limit ? readTo : null }
}

const COLUMNS = `p.id, p.type, p.exit_code as "exitCode", p.duration_ms as "durationMs", p.run_id as "runId", p.source,
  p.created_at as "createdAt"`

/**
 * The first of the pings `ids`, newest first, with the first `bodyBytes` of each body: as many pings as have at most `maxBytes` of these together,
 * and at least one. Pings that are gone are left out.
 */
export async function readPings(
  db: Queryable,
  key: number,
  ids: readonly string[],
  { bodyBytes, maxBytes }: { bodyBytes: number; maxBytes: number },
): Promise<PingRecord[]> {
  const { rows } = await db.query<StoredPing>({
    name: 'read_pings',
    // The length of a stored value is known without reading it; bodies beyond the limit are not read.
    text: `select ${COLUMNS}, case when $3 > 0 then substring(p.body for $3) end as body, p.is_truncated is true as "isBodyTruncated"
      from (
        select p.*, b.body, b.is_truncated, sum(least(coalesce(octet_length(b.body), 0), $3)) over newest as sum, row_number() over newest as place
        from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
        where p.check_key = $1 and p.id = any($2::uuid[])
        window newest as (order by p.id desc)) p
      where p.sum <= $4 or p.place = 1
      order by p.id desc`,
    values: [key, ids, bodyBytes, maxBytes],
  })
  return rows.map(toPing)
}

/** A ping without its text. */
export type PingRow = Omit<PingRecord, 'body' | 'isBodyTruncated'>

/** Up to `limit` pings of a check without their texts, newest first. */
export async function listNewestPings(
  db: Queryable,
  key: number,
  { beforeId, limit }: { beforeId: string; limit: number },
): Promise<PingRow[]> {
  const { rows } = await db.query<Omit<StoredPing, 'body' | 'isBodyTruncated'>>({
    name: 'list_newest_pings',
    text: `select ${COLUMNS} from pings p where p.check_key = $1 and p.id < $2 order by p.id desc limit $3`,
    values: [key, beforeId, limit],
  })
  return rows.map((row) => ({ ...row, type: PING_TYPES[row.type]!, source: PING_SOURCES[row.source]! }))
}

/** The end of a ping's text. */
export interface BodyEnd {
  readonly pingId: string
  /** Empty: nothing of the text is stored. */
  readonly bytes: Buffer
  /** Bytes of the text that is stored. */
  readonly size: number
  /** Whether the job sent more than is stored. */
  readonly isTruncated: boolean
}

const END_COLUMNS = `b.ping_id as "pingId", coalesce(substring(b.body from greatest(1, octet_length(b.body) - $2 + 1)), '') as bytes,
  coalesce(octet_length(b.body), 0) as size, b.is_truncated as "isTruncated"`

/** The last `most` bytes of the texts of these pings, in no order; pings without a text are left out. */
export async function readBodyEnds(
  db: Queryable,
  key: number,
  ids: readonly string[],
  most: number,
): Promise<BodyEnd[]> {
  const { rows } = await db.query<BodyEnd>({
    name: 'read_body_ends',
    text: `select ${END_COLUMNS} from ping_bodies b where b.check_key = $1 and b.ping_id = any($3::uuid[]) and (b.body <> '' or b.is_truncated)`,
    values: [key, most, ids],
  })
  return rows
}

/** The last `most` bytes of the newest text of a check; null: no ping has a text. */
export async function findNewestBodyEnd(db: Queryable, key: number, most: number): Promise<BodyEnd | null> {
  const { rows } = await db.query<BodyEnd>({
    name: 'find_newest_body_end',
    text: `select ${END_COLUMNS} from ping_bodies b where b.check_key = $1 and b.body <> '' order by b.ping_id desc limit 1`,
    values: [key, most],
  })
  return rows[0] ?? null
}

/** Null for an unknown ping. */
export async function findPing(db: Queryable, key: number, id: string): Promise<PingRecord | null> {
  const { rows } = await db.query<StoredPing>({
    name: 'find_ping',
    text: `select ${COLUMNS}, b.body, b.is_truncated is true as "isBodyTruncated"
      from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
      where p.check_key = $1 and p.id = $2`,
    values: [key, id],
  })
  return rows[0] === undefined ? null : toPing(rows[0])
}

type StoredPing = Omit<PingRecord, 'type' | 'source'> & { type: number; source: number }

function toPing(row: StoredPing): PingRecord {
  return { ...row, type: PING_TYPES[row.type]!, source: PING_SOURCES[row.source]! }
}

/**
 * Deletes up to `limit` pings of a check that is being removed, with their bodies. Rows are taken in their physical order
 * (PostgreSQL sorts an array of ctids), as pruning takes them, so that the two never wait for each other in a circle.
 */
export async function deletePings(tx: Queryable, key: number, limit: number): Promise<void> {
  await tx.query(
    `with gone as (
        delete from pings where ctid = any(array(select ctid from pings where check_key = $1 limit $2)) returning id)
      delete from ping_bodies b using gone where b.check_key = $1 and b.ping_id = gone.id`,
    [key, limit],
  )
}
