/** Reads of checks by other things than their ids: by their configuration, and all of a project with their texts. */

import type { Queryable } from '../postgres/database.ts'
import { CHECK_COLUMNS, CHECKS, type StoredCheck, toCheck } from './checks.ts'

/** The checks of these keys with all of their texts, in the order of the keys. */
export async function readWholeChecks(db: Queryable, keys: readonly number[]): Promise<StoredCheck[]> {
  const rows = await db.queryColumns({
    name: 'read_whole_checks',
    text: `select ${CHECK_COLUMNS} from ${CHECKS}
      where c.key = any($1::int8[]) order by array_position($1::int8[], c.key)`,
    values: [keys],
  })
  return rows.map(toCheck)
}

/** Up to `limit` public ids of a project, in their order, after this one; null: from the first. */
export async function readPublicIdsOf(
  db: Queryable,
  projectId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ publicId: string }>({
    name: 'read_public_ids_of',
    text: `select public_id as "publicId" from checks
      where project_id = $1 and ($2::uuid is null or public_id > $2) order by public_id limit $3`,
    values: [projectId, after, limit],
  })
  return rows.map(({ publicId }) => publicId)
}

/** The first `limit` tags of a project, each once. */
export async function readTags(db: Queryable, projectId: string, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ tag: string }>({
    name: 'read_tags',
    text: `select distinct t.tag collate "C" as tag from checks c, unnest(c.tags) t (tag)
      where c.project_id = $1 order by 1 limit $2`,
    values: [projectId, limit],
  })
  return rows.map(({ tag }) => tag)
}

/** What a check must have; all of what is given. */
export interface CheckMatch {
  readonly name?: string
  /** Empty: a check whose slug a client left empty. */
  readonly slug?: string
  /** These, in this order, and no others. */
  readonly tags?: readonly string[]
  readonly periodSeconds?: number
  readonly graceSeconds?: number
}

/** The id of the oldest check of a project that matches, or null. */
export async function findMatch(
  db: Queryable,
  projectId: string,
  { name, slug, tags, periodSeconds, graceSeconds }: CheckMatch,
): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find_match',
    text: `select c.id from ${CHECKS}
      where c.project_id = $1 and ($2::text is null or c.name = $2) and ($3::text is null or case $3 when '' then c.slug_left_empty else c.slug = $3 end)
        and ($4::text[] is null or c.tags = $4) and ($5::int4 is null or s.period_seconds = $5)
        and ($6::int4 is null or s.grace_seconds = $6)
      order by c.created_at, c.id limit 1`,
    values: [projectId, name, slug, tags, periodSeconds, graceSeconds],
  })
  return rows[0]?.id ?? null
}
