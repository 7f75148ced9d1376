/** Paging by cursor. Rows that are added or removed between two pages shift nothing. */

import type { Instant } from './check.ts'
import { isUuid } from './ids.ts'

/** The last row of a page: its time, to the microsecond, and its id. Opaque to callers. */
export interface Cursor {
  readonly at: Instant
  readonly id: string
}

/** `Place`: where a page ends. */
export interface PageRequest<Place = Cursor> {
  /** 1 to PAGE_LIMIT. */
  readonly limit: number
  /** Null: from the start. */
  readonly after: Place | null
}

export interface Page<Row, Place = Cursor> {
  readonly rows: readonly Row[]
  /** Null: this is the last page. */
  readonly next: Place | null
}

export const PAGE_LIMIT = 1_000

/** What lists are in the order of: the time, then the id. */
export type Placed = { readonly id: string } & ({ readonly at: Instant } | { readonly createdAt: Instant })

/** The cursor of the page that follows `row`. */
export function cursorOf(row: Placed): Cursor {
  return { at: 'at' in row ? row.at : row.createdAt, id: row.id }
}

/** A page of at most `limit` rows, from rows that were read with `limit + 1`. */
export function toPage<Row extends Placed>(rows: readonly Row[], limit: number): Page<Row> {
  if (rows.length <= limit) return { rows, next: null }
  const kept = rows.slice(0, limit)
  return { rows: kept, next: cursorOf(kept[limit - 1]!) }
}

/** The page of `request`. `read` gets a limit of one row more, which says whether another page follows. */
export async function readPage<Row extends Placed>(
  { limit, after }: PageRequest,
  read: (request: PageRequest) => Promise<readonly Row[]>,
): Promise<Page<Row>> {
  return toPage(await read({ limit: limit + 1, after }), limit)
}

/** Rows that are read by one statement. */
const PIECE_ROWS = 100

/** Few rows are in memory at a time. The last piece has the `next` of the whole page of `request`. */
export async function* inPieces<Row>(
  { limit, after }: PageRequest,
  read: (request: PageRequest) => Promise<Page<Row>>,
): AsyncGenerator<Page<Row>> {
  let left = limit
  let from = after
  do {
    const page = await read({ limit: Math.min(left, PIECE_ROWS), after: from })
    yield page
    left -= page.rows.length
    from = page.next
  } while (left > 0 && from !== null)
}

export function encodeCursor({ at, id }: Cursor): string {
  return Buffer.from(`${Math.round(at * 1_000)}.${id}`).toString('base64url')
}

/** Null for a text that `encodeCursor` did not make. */
export function decodeCursor(text: string): Cursor | null {
  const match = /^(\d{1,16})\.(.{36})$/.exec(Buffer.from(text, 'base64url').toString('latin1'))
  if (match === null || !isUuid(match[2]!)) return null
  const cursor = { at: Number(match[1]) / 1_000, id: match[2]! }
  return encodeCursor(cursor) === text ? cursor : null
}
