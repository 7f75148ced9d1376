/** What people see of the dependencies of a check. */

import type { Tenant } from '../domain/access.ts'
import { isUuid } from '../domain/ids.ts'
import type { StoredCheck } from '../store/checks/checks.ts'
import { findIdsOfSlugs, type LinkedCheck, listLinked } from '../store/checks/dependencies.ts'
import type { Context } from '../store/context.ts'
import { hasProject } from '../store/tenancy/projects.ts'

export type { LinkedCheck } from '../store/checks/dependencies.ts'

/** Dependents that are named. */
const SHOWN_DEPENDENTS = 20

export interface Dependencies {
  /** In the order of the list, without those that the tenant may not see. */
  readonly dependsOn: readonly LinkedCheck[]
  /** By their names: up to 20. */
  readonly dependents: readonly LinkedCheck[]
  readonly hasMoreDependents: boolean
}

/** The check is the tenant's. */
export async function findDependencies(
  { database, clock }: Context,
  tenant: Tenant,
  { id, dependsOn: ids }: Pick<StoredCheck, 'id' | 'dependsOn'>,
): Promise<Dependencies> {
  const dependsOn = ids.length === 0 ? [] : await listLinked(database, tenant, { ids }, clock.now())
  const of = { dependOn: id, limit: SHOWN_DEPENDENTS + 1 }
  const found = await listLinked(database, tenant, of, clock.now())
  const hasMoreDependents = found.length > SHOWN_DEPENDENTS
  return { dependsOn, dependents: found.slice(0, SHOWN_DEPENDENTS), hasMoreDependents }
}

/** Each slug of a check of the project as the id of that check; other words stay. */
export async function readSlugs(
  { database }: Context,
  tenant: Tenant,
  projectId: string,
  words: readonly string[],
): Promise<string[]> {
  const slugs = words.filter((word) => !isUuid(word) && /^[\w-]+$/.test(word))
  const isRead = slugs.length > 0 && (await hasProject(database, tenant, projectId, 'read'))
  const idOf = isRead ? await findIdsOfSlugs(database, projectId, slugs) : new Map<string, string>()
  return words.map((word) => idOf.get(word) ?? word)
}
