import { randomUUID } from 'node:crypto'
import type { Tenant } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { formatUuid, isUuid, writeTimeOrderedId } from '../domain/ids.ts'
import { deriveSlug, withSuffix } from '../domain/slug.ts'
import { deadlineOf, initialState } from '../domain/transition.ts'
import { randomIdBytes } from '../runtime/random.ts'
import { type CheckRecord, hasProject } from '../store/checks.ts'
import type { Queryable } from '../store/database.ts'
import { findTakenSlugs, insertCheck, insertState, type NewCheckRow } from '../store/new-checks.ts'
import { type StoredSpec, saveChanges } from '../store/states.ts'
import type { Parts } from './parts.ts'
import { DEFAULT_TIME_ZONE, readSpec } from './read-spec.ts'

export interface NewCheck {
  readonly projectId: string
  readonly name: string
  /** Derived from the name when it is left out. */
  readonly slug?: string
  readonly description?: string | null
  readonly spec: StoredSpec
}

/**
 * Makes a check. It is not armed before its first ping (design, section 4). Throws AppError `not_found` for an unknown or
 * foreign project, `invalid` for a schedule that makes no sense, `conflict` for a slug that is taken.
 */
export async function createCheck(parts: Parts, tenant: Tenant, input: NewCheck): Promise<CheckRecord> {
  const { projectId, name, description = null } = input
  if (!isUuid(projectId)) throw notFound('project')
  const spec =
    input.spec.schedule === null ? input.spec : { ...input.spec, timeZone: input.spec.timeZone ?? DEFAULT_TIME_ZONE }
  // To the microsecond, as the database keeps it.
  const createdAt = Math.round(parts.clock.now() * 1_000) / 1_000
  const now = Math.floor(createdAt)
  const state = initialState(readSpec(spec, now), false, now)
  const identity = {
    id: formatUuid(writeTimeOrderedId(randomIdBytes(), createdAt)),
    publicId: randomUUID(),
    projectId: projectId.toLowerCase(),
  }

  return parts.database.transaction(async (tx) => {
    // Kept until the check is in it: nobody removes the project in between.
    if (!(await hasProject(tx, tenant, projectId, 'keep'))) throw notFound('project')
    const texts = { ...identity, name, description, createdAt }
    const { key, slug } =
      input.slug === undefined
        ? await insertUnderFreeSlug(tx, texts)
        : await insertUnderSlug(tx, { ...texts, slug: input.slug })
    await insertState(tx, { key, spec, state, stampedAt: createdAt, wakeAt: deadlineOf(state) })
    const flip = {
      from: null,
      to: state.status,
      reason: 'created',
      at: now,
      detectedAt: now,
      key,
      pingId: null,
    } as const
    const id = writeTimeOrderedId(randomIdBytes(), createdAt)
    await saveChanges(tx, { states: [], pings: [], flips: [{ ...flip, id }], events: [] })
    return { ...texts, key, slug, managedBy: 'api', kubernetes: null, spec, state }
  })
}

async function insertUnderSlug(tx: Queryable, check: NewCheckRow): Promise<{ key: number; slug: string }> {
  const key = await insertCheck(tx, check)
  if (key === null) throw slugTaken(check.slug)
  return { key, slug: check.slug }
}

/** Somebody may take the slug between the look and the insert; then there is one more check, and the next number is tried. */
async function insertUnderFreeSlug(
  tx: Queryable,
  check: Omit<NewCheckRow, 'slug'>,
): Promise<{ key: number; slug: string }> {
  const derived = deriveSlug(check.name, 'check')
  for (;;) {
    const slug = await findFreeSlug(tx, check.projectId, derived)
    const key = await insertCheck(tx, { ...check, slug })
    if (key !== null) return { key, slug }
  }
}

/** Most names are taken by nobody; where thousands share one, ever longer windows keep the number of questions small. */
async function findFreeSlug(tx: Queryable, projectId: string, derived: string): Promise<string> {
  for (let first = 1, count = 1; ; first += count, count *= 8) {
    const choices = Array.from({ length: count }, (_, index) => withSuffix(derived, first + index))
    const taken = await findTakenSlugs(tx, projectId, choices)
    const free = choices.find((slug) => !taken.has(slug))
    if (free !== undefined) return free
  }
}

export function slugTaken(slug: string): AppError {
  const message = `another check of the project has the slug "${slug}": choose another`
  return new AppError('conflict', message, { details: [{ path: 'body.slug', message }] })
}
