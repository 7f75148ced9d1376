/** Paging by cursor: the place of the last row of a page, opaque to callers. Rows added or removed meanwhile shift nothing. */

import type { Instant } from './check.ts'
import { isUuid } from './ids.ts'

/** Where a page ended: the row's time (to the microsecond) and id. */
export interface Place {
  readonly at: Instant
  readonly id: string
}

export interface PageRequest {
  /** 1 .. 1,000 */
  readonly limit: number
  /** Null: from the start. */
  readonly after: Place | null
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  /** Null: this was the last page. */
  readonly next: Place | null
}

export const PAGE_LIMIT = 1_000

/** Cuts a page out of rows that were asked for with `limit + 1`. */
export function toPage<Row>(rows: readonly Row[], limit: number, placeOf: (row: Row) => Place): Page<Row> {
  if (rows.length <= limit) return { rows, next: null }
  const kept = rows.slice(0, limit)
  return { rows: kept, next: placeOf(kept[limit - 1]!) }
}

export function encodeCursor({ at, id }: Place): string {
  return Buffer.from(`${Math.round(at * 1_000)}.${id}`).toString('base64url')
}

/** Null when it is not one of ours. */
export function decodeCursor(text: string): Place | null {
  const match = /^(\d{1,16})\.(.{36})$/.exec(Buffer.from(text, 'base64url').toString('latin1'))
  if (match === null || !isUuid(match[2]!)) return null
  const place = { at: Number(match[1]) / 1_000, id: match[2]! }
  return encodeCursor(place) === text ? place : null
}
