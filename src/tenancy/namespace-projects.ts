/**
 * The project of the checks of a namespace (design, section 6, "Projects"). By default a namespace has a project of its own, which is
 * created on demand and bound to it; an annotation of the Namespace allows others. The binding counts, never the slug: the right to
 * create a namespace of a certain name must not give access to a project of that name.
 */

import { DEFAULT_CLUSTER } from '../domain/check.ts'
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
  /** The slugs in the Namespace's annotation; null without the annotation. */
  readonly allowed: readonly string[] | null
  /** spec.project, a slug. Null: the first of `allowed`, else the namespace's own project. */
  readonly wanted: string | null
  /** Default: the installation's organization. */
  readonly organizationId?: string
}

/**
 * The project to use, created if it is the namespace's own. Throws AppError `forbidden` for a project that the namespace may not use,
 * `not_found` for one that it may use and that does not exist, `unavailable` before the first start has created an organization.
 */
export async function resolveProject(context: Context, request: ProjectRequest): Promise<NamespaceProject> {
  const { allowed, wanted, organizationId = null } = request
  const asked = wanted ?? allowed?.[0] ?? null
  const { bound, named } = await findNamespaceProjects(context.database, organizationId, request, asked)
  if (asked === null || asked === bound?.slug) return bound ?? createOwnProject(context, request)
  const isAllowed = allowed?.includes(asked) ?? false
  if (named !== null && isAllowed) return named
  // It names its own project before that exists. Another project may take the slug at this moment.
  if (named === null && bound === null && asked === ownSlug(request)) {
    const own = await createOwnProject(context, request)
    return own.slug === asked ? own : resolveProject(context, request)
  }
  throw isAllowed ? unknownProject(request, asked) : notAllowed(request, asked)
}

function ownSlug({ cluster, namespace }: Namespace): string {
  return deriveSlug(cluster === DEFAULT_CLUSTER ? namespace : `${cluster}-${namespace}`, 'project')
}

async function createOwnProject(context: Context, to: ProjectRequest): Promise<NamespaceProject> {
  const organizationId = to.organizationId ?? (await findOldestOrganization(context.database))
  if (organizationId === null) {
    const message = 'the database has no organization yet: start the service in the role api or all, which creates one'
    throw new AppError('unavailable', message)
  }
  const now = context.clock.now()
  const id = newId(now)
  const boundTo = { cluster: to.cluster, namespace: to.namespace }
  return context.database.transaction(async (tx) => {
    // Every transaction that adds a project takes this lock, so what is read next stays true.
    await lockOrganization(tx, organizationId)
    const { bound } = await findNamespaceProjects(tx, organizationId, to, null)
    if (bound !== null) return bound
    const slug = await chooseSlug(tx, organizationId, ownSlug(to))
    return (await insertProject(tx, { id, organizationId, name: slug, slug, createdAt: now, boundTo }))!
  })
}

function notAllowed({ namespace, allowed }: ProjectRequest, asked: string): AppError {
  const rule = allowed?.length ? `it may use ${allowed.join(', ')} and its own` : 'it may use its own project only'
  const message = `namespace ${namespace} may not use the project "${asked}": ${rule}. Remove spec.project, or let an administrator add "${asked}" to the annotation heartbeat-operator.io/projects of the Namespace`
  return new AppError('forbidden', message)
}

function unknownProject({ namespace }: ProjectRequest, asked: string): AppError {
  const message = `namespace ${namespace} may use the project "${asked}", but there is none with that slug: create it, or correct the slug in spec.project or in the annotation heartbeat-operator.io/projects of the Namespace`
  return new AppError('not_found', message)
}
