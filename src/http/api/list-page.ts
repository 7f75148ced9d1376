/** A page of a list, as the text of its response. */

import type { z } from 'zod'
import type { Caller } from '../../domain/access.ts'
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
import * as field from './fields.ts'
import { present, type Shown } from './present.ts'
import { type Call, endpoint } from './route.ts'

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

type EntryPage<Entry extends z.ZodType> = Page<Placed & Shown<z.output<Entry>>>

/** Declares the endpoint of a list whose entries stand in the order of their times. `read` reads a piece of a page. */
export function listEndpoint<Params extends z.ZodType, Query extends z.ZodObject, Entry extends z.ZodType>({
  list,
  entry,
  read,
  ...declared
}: {
  readonly list: List
  readonly entry: Entry
  readonly summary: string
  readonly params?: Params
  readonly query: Query & z.ZodType<PageQuery>
  readonly read: (
    call: Call<Caller, z.output<Params>, z.output<Query>, unknown>,
    piece: PageRequest,
  ) => Promise<EntryPage<Entry>>
}) {
  return endpoint({
    ...declared,
    response: field.listOf(list, entry),
    handle: (call) => readList(list, entry, call.query, (piece) => read(call, piece)),
  })
}

export function readList<Entry extends z.ZodType>(
  list: List,
  entry: Entry,
  { limit, cursor = null }: PageQuery,
  read: (piece: PageRequest) => Promise<EntryPage<Entry>>,
): Promise<Buffer> {
  return writePage(list, inPieces({ limit, after: cursor }, read), (row) => present(entry, row), IN_TIME)
}

export const showRows = <Row, Entry>({ rows, next }: Page<Row>, show: (row: Row) => Entry): Page<Entry> => ({
  rows: rows.map(show),
  next,
})

/** At least one entry, whatever its size. */
export async function writePage<Row, Place>(
  list: List,
  pieces: AsyncIterable<Page<Row, Place>>,
  toEntry: (row: Row) => unknown,
  places: Places<Row, Place>,
): Promise<Buffer> {
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
  return Buffer.from(`{"${field.entriesOf(list)}":[${entries.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`)
}
