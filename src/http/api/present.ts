/** Mappings that many requests and responses share. */

import type { Instant } from '../../domain/check.ts'
import { toIso } from '../../domain/instant.ts'
import { type Cursor, cursorOf, encodeCursor, type Page, type PageRequest, type Placed } from '../../domain/page.ts'
import type { List } from './fields.ts'

export { toIso }

export function toIsoOrNull(at: Instant | null): string | null {
  return at === null ? null : toIso(at)
}

export function toPageRequest(query: { limit: number; cursor?: Cursor | null | undefined }): PageRequest {
  return { limit: query.limit, after: query.cursor ?? null }
}

/** Bytes of JSON at which a page of a list ends, though it may have fewer entries than `limit` then. */
export const PAGE_BYTES = 1_048_576

/** How a list writes where a page ends. */
export interface Places<Row, Place> {
  readonly of: (row: Row) => Place
  readonly encode: (place: Place) => string
}

const IN_TIME: Places<Placed, Cursor> = { of: cursorOf, encode: encodeCursor }

/** The entries of a list, under its name. At least one entry, whatever its size. */
export const readEntries = <Row extends Placed, Entry>(
  list: List,
  pieces: AsyncIterable<Page<Row>>,
  present: (row: Row) => Entry,
) => readPlaced(list, pieces, present, IN_TIME)

export async function readPlaced<Row, Place, Entry>(
  list: List,
  pieces: AsyncIterable<Page<Row, Place>>,
  present: (row: Row) => Entry,
  places: Places<Row, Place>,
): Promise<{ entries: Entry[]; next_cursor: string | null }> {
  // A cursor begins with the name of its list, so that it is not taken for a cursor of another one (fields.ts).
  const toText = (place: Place) => `${list}.${places.encode(place)}`
  const entries: Entry[] = []
  let bytes = 0
  let last: Row | undefined
  let next: Place | null = null
  for await (const piece of pieces) {
    for (const row of piece.rows) {
      const entry = present(row)
      bytes += Buffer.byteLength(JSON.stringify(entry)) + 1
      if (bytes > PAGE_BYTES && last !== undefined) return { entries, next_cursor: toText(places.of(last)) }
      entries.push(entry)
      last = row
    }
    next = piece.next
  }
  return { entries, next_cursor: next === null ? null : toText(next) }
}

/** Returns `fields` without those that are undefined: the verbs expect them to be absent. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
