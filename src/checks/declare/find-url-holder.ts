import type { Resource } from '../../store/checks/checks.ts'
import { findPublicHolder } from '../../store/checks/declared-checks.ts'
import { findRetainedIn, type PublishedObjectName } from '../../store/checks/retained-checks.ts'
import type { Context } from '../../store/context.ts'

/** A check whose URL an object holds. */
export interface UrlHolder {
  readonly id: string
  /** The name of its resource; null: the API manages the check. */
  readonly resource: string | null
}

/**
 * The check whose URL an object keeps: a retained check, or the check with one of these public ids of the object's URLs.
 * Null when the object keeps no URL of a check.
 */
export async function findUrlHolder(
  { database }: Pick<Context, 'database'>,
  namespace: Pick<Resource, 'cluster' | 'namespace'>,
  object: PublishedObjectName,
  publicIds: readonly string[],
): Promise<UrlHolder | null> {
  const id = await findRetainedIn(database, namespace, object)
  if (id !== null) return { id, resource: null }
  return publicIds.length === 0 ? null : findPublicHolder(database, publicIds)
}
