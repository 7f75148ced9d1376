/** The checks that a check depends on: what people give, and what is stored of it. */

import type { Tenant } from '../domain/access.ts'
import { describeRing, findRing } from '../domain/dependencies.ts'
import { AppError, invalidField } from '../domain/errors.ts'
import { LIMITS } from '../domain/limits.ts'
import type { StoredCheck } from '../store/checks/checks.ts'
import { findDeclaredIds, findLinks, keepChecks, type Link } from '../store/checks/dependencies.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { Declaration } from './declare/plan.ts'

const FIELD = 'dependsOn'

/**
 * The ids as they are stored; those checks stay until the transaction ends. `of`: the check, whose state is locked
 * behind `lockDependencies`; null: a new one, on which none depends. Throws AppError with the field: `not_found` for an
 * id that is no check of the tenant, unless the check has it already, and `invalid_request` for a ring.
 */
export async function chooseDependencies(
  tx: Queryable,
  tenant: Tenant,
  given: readonly string[],
  of: Pick<StoredCheck, 'id' | 'name' | 'dependsOn'> | null,
): Promise<string[]> {
  const ids = given.map((id) => id.toLowerCase())
  if (ids.length === 0) return ids
  const kept = await keepChecks(tx, tenant, ids)
  const unknown = ids.find((id) => !kept.has(id) && of?.dependsOn.includes(id) !== true)
  if (unknown !== undefined) throw new AppError('not_found', `check ${unknown} not found`, { field: FIELD })
  if (of === null) return ids
  const links = await readLinks(tx, ids, tenant.projectId)
  const ring = findRing(of.id, ids, (id) => links.get(id)?.dependsOn ?? [])
  if (ring === null) return ids
  const names = ring.map((id) => (id === of.id ? of.name : (links.get(id)?.name ?? 'a check of another project')))
  throw invalidField(FIELD, `must make no ring: ${describeRing(names)}`)
}

/** The names of HeartbeatChecks, by what is stored of them. */
export interface ResolvedDependencies {
  /** The stored ones, in the order of the names. */
  readonly ids: string[]
  /** They have no check. */
  readonly missing: readonly string[]
  /** Their checks depend on this one, so they are left out. */
  readonly ringed: readonly string[]
}

/**
 * What a resource depends on, by the names of HeartbeatChecks of its namespace. `id`: of its check; null: it has none.
 * `keep`: as `chooseDependencies`. Throws AppError `invalid_request` for a check that leads to too many others.
 */
export async function resolveDependencies(
  tx: Queryable,
  { resource, projectId }: Pick<Declaration, 'resource' | 'projectId'>,
  names: readonly string[],
  id: string | null,
  purpose: 'read' | 'keep',
): Promise<ResolvedDependencies> {
  if (names.length === 0) return { ids: [], missing: [], ringed: [] }
  const idOf = await findDeclaredIds(tx, resource, names, projectId, purpose)
  const links = id === null ? new Map<string, Link>() : await readLinks(tx, [...idOf.values()], null)
  const isRinged = (name: string) =>
    id !== null && idOf.has(name) && findRing(id, [idOf.get(name)!], (one) => links.get(one)?.dependsOn ?? []) !== null
  const ringed = names.filter(isRinged)
  return {
    ids: names.flatMap((name) => (ringed.includes(name) ? [] : (idOf.get(name) ?? []))),
    missing: names.filter((name) => !idOf.has(name)),
    ringed,
  }
}

async function readLinks(tx: Queryable, ids: readonly string[], projectId: string | null): Promise<Map<string, Link>> {
  const links = await findLinks(tx, ids, projectId)
  const most = LIMITS.reachedDependencies
  if (links.size > most) throw invalidField(FIELD, `must lead to at most ${most} checks, over others too`)
  return links
}
