/** The keys of a project: that of the addresses of its pings by name, and that of its badges (design, section 3.5). */

import type { Queryable } from '../postgres/database.ts'

/** Each is a column of projects. */
export type ProjectKeyKind = 'ping' | 'badge'

/** The caller has found or locked the project. Null: it has no key of this kind. */
export async function findProjectKey(db: Queryable, id: string, kind: ProjectKeyKind): Promise<string | null> {
  const { rows } = await db.query<{ key: string | null }>(`select ${kind}_key as key from projects where id = $1`, [id])
  return rows[0]?.key ?? null
}

/** Replaces the key that the project has. The caller has locked the project. Returns the new key. */
export async function renewProjectKey(tx: Queryable, id: string, kind: ProjectKeyKind): Promise<string> {
  const text = `update projects set ${kind}_key = make_project_key() where id = $1 returning ${kind}_key as key`
  const { rows } = await tx.query<{ key: string }>(text, [id])
  return rows[0]!.key
}

/** False when the project has none. */
export async function deleteProjectKey(tx: Queryable, id: string, kind: ProjectKeyKind): Promise<boolean> {
  const text = `update projects set ${kind}_key = null where id = $1 and ${kind}_key is not null`
  const { rowCount } = await tx.query(text, [id])
  return rowCount === 1
}
