/** A page of a list, as the text of its response. */

import type { z } from 'zod'
import {
  type Cursor,
  cursorOf,
  encodeCursor,
  inPieces,
  type Page,
  type PageRequest,
  type Placed,
} from '../../domain/page.ts'
import type { List } from './fields.ts'
import { present, type Shown } from './present.ts'
import { Text } from './route.ts'

/** Bytes of JSON at which a page of a list ends, though it may have fewer entries than `limit` then. */
export const PAGE_BYTES = 1_048_576

/** How a list writes where a page ends. */
export interface Places<Row, Place> {
  readonly of: (row: Row) => Place
  readonly encode: (place: Place) => string
}

const IN_TIME: Places<Placed, Cursor> = { of: cursorOf, encode: encodeCursor }

interface PageQuery {
  readonly limit: number
  readonly cursor?: Cursor | null | undefined
}

/** The page of a list that `query` asks for. `show`: what is shown of a row that does not show itself. */
export function readList<Entry extends z.ZodType>(
  list: List,
  entry: Entry,
  query: PageQuery,
  read: (piece: PageRequest) => Promise<Page<Placed & Shown<z.output<Entry>>>>,
): Promise<Text>
export function readList<Row extends Placed, Entry extends z.ZodType>(
  list: List,
  entry: Entry,
  query: PageQuery,
  read: (piece: PageRequest) => Promise<Page<Row>>,
  show: (row: Row) => Shown<z.output<Entry>>,
): Promise<Text>
export function readList<Row extends Placed>(
  list: List,
  entry: z.ZodType,
  { limit, cursor = null }: PageQuery,
  read: (piece: PageRequest) => Promise<Page<Row>>,
  show: (row: Row) => unknown = (row) => row,
): Promise<Text> {
  const pieces = inPieces({ limit, after: cursor }, read)
  return writePage(list, pieces, (row) => present(entry, show(row) as never), IN_TIME)
}

/** At least one entry, whatever its size. */
export async function writePage<Row, Place>(
  list: List,
  pieces: AsyncIterable<Page<Row, Place>>,
  toEntry: (row: Row) => unknown,
  places: Places<Row, Place>,
): Promise<Text> {
  const entries: string[] = []
  let bytes = 0
  let last: Row | undefined
  let next: Place | null = null
  pages: for await (const piece of pieces) {
    next = piece.next
    for (const row of piece.rows) {
      const entry = JSON.stringify(toEntry(row))
      bytes += Buffer.byteLength(entry) + 1
      if (bytes > PAGE_BYTES && last !== undefined) {
        next = places.of(last)
        break pages
      }
      entries.push(entry)
      last = row
    }
  }
  // A cursor begins with the name of its list, so that it is not taken for a cursor of another one (fields.ts).
  const cursor = next === null ? null : `${list}.${places.encode(next)}`
  const name = list === 'audit' ? 'entries' : list
  return new Text(Buffer.from(`{"${name}":[${entries.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`))
}
