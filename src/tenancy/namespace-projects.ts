/**
 * Which project the checks of a namespace belong to (design, section 6, "Projects"). Without a word from anybody a namespace
 * has a project of its own, made on demand and bound to it; the Namespace's annotation opens others. Whoever may make a
 * namespace must not get into somebody's project by its name: it is the binding that counts, never the slug.
 */

import { AppError } from '../domain/errors.ts'
import { deriveSlug } from '../domain/slug.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import { findOldestOrganization, lockOrganization } from '../store/tenancy/organizations.ts'
import { findNamespaceProjects, insertProject, type Namespace } from '../store/tenancy/projects.ts'
import { chooseSlug } from './projects.ts'

export interface NamespaceProject {
  readonly id: string
  readonly slug: string
}

export interface ProjectRequest extends Namespace {
  /** Slugs, from the Namespace's annotation; null: it has none. */
  readonly allowed: readonly string[] | null
  /** spec.project, a slug; null: the first of `allowed`, else the namespace's own. */
  readonly wanted: string | null
  /** Left out: the installation's one. */
  readonly organizationId?: string
}

/** The cluster of an installation that has one: its name is left out of what people read. */
const DEFAULT_CLUSTER = 'default'

/**
 * Throws AppError `forbidden` for a project that the namespace may not use, `not_found` for one that it may use and that is
 * not there, `unavailable` before the first start has made an organization.
 */
export async function resolveProject(context: Context, request: ProjectRequest): Promise<NamespaceProject> {
  const { allowed, wanted, organizationId = null } = request
  const asked = wanted ?? allowed?.[0] ?? null
  const { bound, named } = await findNamespaceProjects(context.database, organizationId, request, asked)
  if (asked === null || asked === bound?.slug) return bound ?? makeProject(context, request)
  const isAllowed = allowed?.includes(asked) ?? false
  if (named !== null && isAllowed) return named
  // It asks for its own by the slug that its own will have, unless somebody takes it at this moment.
  if (named === null && bound === null && asked === ownSlug(request)) {
    const made = await makeProject(context, request)
    return made.slug === asked ? made : resolveProject(context, request)
  }
  throw isAllowed ? unknownProject(request, asked) : notAllowed(request, asked)
}

function ownSlug({ cluster, namespace }: Namespace): string {
  return deriveSlug(cluster === DEFAULT_CLUSTER ? namespace : `${cluster}-${namespace}`, 'project')
}

async function makeProject(context: Context, to: ProjectRequest): Promise<NamespaceProject> {
  const organizationId = to.organizationId ?? (await findOldestOrganization(context.database))
  if (organizationId === null) {
    const message = 'the database has no organization yet: start the service in the role api or all, which makes one'
    throw new AppError('unavailable', message)
  }
  const now = context.clock.now()
  const id = newId(now)
  const boundTo = { cluster: to.cluster, namespace: to.namespace }
  return context.database.transaction(async (tx) => {
    // Taken by everybody who adds a project: neither this namespace's own nor a slug comes up after the look.
    await lockOrganization(tx, organizationId)
    const { bound } = await findNamespaceProjects(tx, organizationId, to, null)
    if (bound !== null) return bound
    const slug = await chooseSlug(tx, organizationId, ownSlug(to))
    const made = await insertProject(tx, { id, organizationId, name: slug, slug, createdAt: now, boundTo })
    return made!
  })
}

function notAllowed({ namespace, allowed }: ProjectRequest, asked: string): AppError {
  const rule =
    allowed === null || allowed.length === 0
      ? 'it may use its own project only'
      : `it may use ${allowed.join(', ')} and its own`
  return new AppError(
    'forbidden',
    `namespace ${namespace} may not use the project "${asked}": ${rule}. Remove spec.project, or let an administrator add "${asked}" to the annotation heartbeat-operator.io/projects of the Namespace`,
  )
}

function unknownProject({ namespace }: ProjectRequest, asked: string): AppError {
  return new AppError(
    'not_found',
    `namespace ${namespace} may use the project "${asked}", but there is none with that slug: create it, or correct the slug in spec.project or in the annotation heartbeat-operator.io/projects of the Namespace`,
  )
}
