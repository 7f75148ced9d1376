/** Mappings that many requests and responses share. */

import type { Instant } from '../../domain/check.ts'
import { toIso } from '../../domain/instant.ts'
import { type Cursor, encodeCursor, type Page, type PageRequest } from '../../domain/page.ts'

export { toIso }

export function toIsoOrNull(at: Instant | null): string | null {
  return at === null ? null : toIso(at)
}

export function toPageRequest(query: { limit: number; cursor?: Cursor | null | undefined }): PageRequest {
  return { limit: query.limit, after: query.cursor ?? null }
}

/** `next_cursor`, when there are more entries. */
export function presentNext({ next }: Page<unknown>): { next_cursor?: string } {
  return next === null ? {} : { next_cursor: encodeCursor(next) }
}

/** Returns `fields` without those that are undefined: the verbs expect them to be absent. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
