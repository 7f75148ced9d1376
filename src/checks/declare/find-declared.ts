/** Reads of declared checks for the operator: by resource, of any tenant. */

import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import {
  type DeclaredState,
  findDeclaredCheck,
  findPublicHolder,
  listDeclaredStates,
} from '../../store/checks/declared-checks.ts'
import { findRetainedIn, type PublishedObjectName } from '../../store/checks/retained-checks.ts'
import type { Context } from '../../store/context.ts'

export type { Resource, StoredCheck } from '../../store/checks/checks.ts'
export type { DeclaredState } from '../../store/checks/declared-checks.ts'

/** The check of the resource; null when it has none. */
export function findDeclared({ database }: Context, resource: Resource): Promise<StoredCheck | null> {
  return findDeclaredCheck(database, resource)
}

/** The id of the retained check whose URL this object of a namespace keeps; null when it keeps none. */
export function findKeptUrl(
  { database }: Pick<Context, 'database'>,
  namespace: Pick<Resource, 'cluster' | 'namespace'>,
  object: PublishedObjectName,
): Promise<string | null> {
  return findRetainedIn(database, namespace, object)
}

/** A check whose URL an object holds. */
export interface UrlHolder {
  readonly id: string
  /** The name of its resource; null: the API manages the check. */
  readonly resource: string | null
}

/** The check whose URL an object keeps: as a retained one, or by these public ids of its URLs. Null when it keeps none. */
export async function findUrlHolder(
  context: Pick<Context, 'database'>,
  namespace: Pick<Resource, 'cluster' | 'namespace'>,
  object: PublishedObjectName,
  publicIds: readonly string[],
): Promise<UrlHolder | null> {
  const id = await findKeptUrl(context, namespace, object)
  if (id !== null) return { id, resource: null }
  return publicIds.length === 0 ? null : findPublicHolder(context.database, publicIds)
}

/** The states of all declared checks of a cluster in one statement, in no order: for the poll that backs up the flip notices. */
export function listStates({ database }: Context, cluster: string): Promise<DeclaredState[]> {
  return listDeclaredStates(database, cluster)
}
