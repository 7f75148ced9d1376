/** All checks of an organization, at a glance: a page in any order, how many have each status, and the last runs of those on the page. */

import type { Tenant } from '../domain/access.ts'
import type { Completion, Instant, ShownStatus } from '../domain/check.ts'
import { type CheckPlace, decodePlace, encodePlace } from '../domain/check-order.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { type RunBar, SURVEY_SORTS, type SurveySort } from '../domain/survey.ts'
import { readStrips, type SurveyRow, surveyRows } from '../store/checks/survey.ts'
import type { Context } from '../store/context.ts'
import { findCovering } from '../store/silences/silences.ts'
import { findProjectByName, type ProjectRow } from '../store/tenancy/projects.ts'

/** Rows of a page. */
export const SURVEY_LIMIT = 100
/** Checks whose runs one statement reads: pings go first between two of them. */
const PIECE_CHECKS = 25

export interface SurveyRequest {
  /** Slug or id of a project. */
  readonly project?: string
  readonly status?: ShownStatus
  /** Of the last completion. */
  readonly outcome?: Completion
  /** Part of the name or of the slug, in any case. */
  readonly q?: string
  readonly sort?: SurveySort
  /** `next` of an earlier page in the same order. */
  readonly cursor?: string
}

export interface SurveyedCheck extends Omit<SurveyRow, 'place'> {
  /** At most STRIP_RUNS, oldest first. */
  readonly runs: readonly RunBar[]
  /** A silence covers it. */
  readonly isSilenced: boolean
}

export interface CheckSurvey {
  readonly checks: readonly SurveyedCheck[]
  /** How many checks have each status: of all that pass the filter but for its status. */
  readonly counts: Readonly<Record<ShownStatus, number>>
  /** When the next one of the counted checks becomes late, unless a ping comes before. Null: none does. */
  readonly nextLateAt: Instant | null
  /** Null: this is the last page. */
  readonly next: string | null
  /** The project of the filter. */
  readonly project: ProjectRow | null
  /** The statuses are those of this moment. */
  readonly now: Instant
}

/**
 * Rows that do not move meanwhile are on one page each, whatever comes and goes between two pages. Throws AppError
 * `invalid_request` for a cursor that is not of this order, `not_found` for a project that the tenant does not have.
 */
export async function surveyChecks(
  { database, clock }: Context,
  tenant: Tenant,
  { project: wanted, sort = SURVEY_SORTS[0], cursor, status, outcome, q }: SurveyRequest,
): Promise<CheckSurvey> {
  const after = cursor === undefined ? null : readPlace(cursor, sort)
  const project = wanted === undefined ? null : await findProjectByName(database, tenant, wanted)
  if (wanted !== undefined && project === null) throw notFound('project')
  const now = clock.now()
  const filter = {
    ...(project === null ? {} : { projectId: project.id }),
    ...(status === undefined ? {} : { status }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(q === undefined ? {} : { q }),
  }
  const range = { sort, after, limit: SURVEY_LIMIT + 1, now }
  const { rows, counts, nextLateAt } = await surveyRows(database, tenant, filter, range)
  const shown = rows.slice(0, SURVEY_LIMIT)
  const strips = new Map<number, RunBar[]>()
  for (let at = 0; at < shown.length; at += PIECE_CHECKS) {
    const keys = shown.slice(at, at + PIECE_CHECKS).map(({ key }) => key)
    for (const [key, runs] of await readStrips(database, keys)) strips.set(key, runs)
  }
  const keys = shown.map(({ key }) => key)
  const covering = await findCovering(database, keys, now)
  const silenced = new Set(covering.map(({ key }) => key))
  const last = rows.length > SURVEY_LIMIT ? shown.at(-1)! : null
  return {
    checks: shown.map(({ place, ...check }) => ({
      ...check,
      runs: strips.get(check.key) ?? [],
      isSilenced: silenced.has(check.key),
    })),
    counts,
    nextLateAt,
    next: last === null ? null : encodePlace(last.place),
    project,
    now,
  }
}

function readPlace(cursor: string, sort: SurveySort): CheckPlace {
  const place = decodePlace(cursor)
  if (place?.sort === sort) return place
  const what = place === null ? 'the address of this page is incomplete or changed' : OTHER_ORDER
  throw new AppError('invalid_request', `${what}: open the list from its start`)
}

const OTHER_ORDER = 'this page belongs to another order of the list'
