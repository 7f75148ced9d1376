/** Adds a check: its rows, its slug, and the flip that its history begins with. */

import type { CheckState, Instant } from '../domain/check.ts'
import { withSuffix } from '../domain/slug.ts'
import { deadlineOf } from '../domain/transition.ts'
import { newIdBytes } from '../runtime/ids.ts'
import { saveChanges } from '../store/checks/change-sets.ts'
import type { StoredSpec } from '../store/checks/columns.ts'
import { findTakenSlugs, insertCheck, type NewCheckRow } from '../store/checks/new-checks.ts'
import type { Queryable } from '../store/postgres/database.ts'

type SlugWanted =
  | { readonly exactly: string }
  /** With a number at the end if it is taken. */
  | { readonly like: string }

/** The transaction keeps the project (hasProject). `stampedAt` dates the first entry. Null when the slug is taken. */
export async function addCheck(
  tx: Queryable,
  check: Omit<NewCheckRow, 'slug'>,
  wanted: SlugWanted,
  { spec, state, stampedAt }: { spec: StoredSpec; state: CheckState; stampedAt: Instant },
): Promise<{ key: number; slug: string } | null> {
  const stored = { spec, state, stampedAt, wakeAt: deadlineOf(state) }
  let slug = 'like' in wanted ? wanted.like : wanted.exactly
  let key = await insertCheck(tx, { ...check, slug }, stored)
  // Another transaction may take the slug between the two statements; then the next number is tried.
  while (key === null && 'like' in wanted) {
    slug = await findFreeSlug(tx, check.projectId, wanted.like)
    key = await insertCheck(tx, { ...check, slug }, stored)
  }
  if (key === null) return null
  const at = Math.floor(stampedAt)
  const id = newIdBytes(stampedAt)
  const flip = { id, key, from: null, to: state.status, reason: 'created', at, detectedAt: at, pingId: null } as const
  await saveChanges(tx, { states: [], pings: [], flips: [flip], events: [] })
  return { key, slug }
}

/** A slug that no check of the project has. Growing windows keep the number of queries small where thousands share a name. */
export async function findFreeSlug(tx: Queryable, projectId: string, like: string): Promise<string> {
  for (let first = 1, count = 1; ; first += count, count *= 8) {
    const choices = Array.from({ length: count }, (_, index) => withSuffix(like, first + index))
    const taken = await findTakenSlugs(tx, projectId, choices)
    const free = choices.find((slug) => !taken.has(slug))
    if (free !== undefined) return free
  }
}
