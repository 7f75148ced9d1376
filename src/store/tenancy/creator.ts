/** The columns that say who created a user or a key. */

import type { Creator } from '../../domain/access.ts'

export const CREATOR_COLUMNS = 'created_by_kind, created_by_id, created_by_name'

/** As the property `createdBy`. */
export const CREATOR = `case when created_by_kind is not null then
  json_build_object('kind', created_by_kind, 'id', created_by_id, 'name', created_by_name) end as "createdBy"`

export function creatorValues(by: Creator | null): (string | null)[] {
  return [by?.kind ?? null, by?.id ?? null, by?.name ?? null]
}
