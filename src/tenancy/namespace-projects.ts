/**
 * The project of the checks of a namespace (design, section 6, "Projects"). The binding counts, never the slug: the
 * right to create a namespace of a certain name must not give access to a project of that name. The namespace `default`
 * gets the project of the first start, as long as that is unused: both have the same slug.
 */

import { audited } from '../audit/audited.ts'
import { controllerOf } from '../domain/access.ts'
import { DEFAULT_CLUSTER } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { deriveSlug, FIRST_PROJECT_SLUG } from '../domain/slug.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findOldestOrganization, lockOrganization } from '../store/tenancy/organizations.ts'
import {
  bindProject,
  countChecks,
  findNamespaceProjects,
  findOldestProject,
  hasProject,
  insertProject,
  type Namespace,
} from '../store/tenancy/projects.ts'
import { actOn, chooseSlug } from './projects.ts'

export interface NamespaceProject {
  readonly id: string
  readonly slug: string
}

export interface ProjectRequest extends Namespace {
  /** The slugs of the projects that it may use besides its own; null: none were named. */
  readonly allowed: readonly string[] | null
  /** Where they are named. Default: in the annotation of the Namespace. */
  readonly decidedBy?: 'annotation' | 'configuration'
  /** spec.project, a slug. Null: the first of `allowed`, else the namespace's own project. */
  readonly wanted: string | null
  /** Default: the installation's organization. */
  readonly organizationId?: string
}

/**
 * The project to use, created if it is the namespace's own. Throws AppError `forbidden` for a project that it may not
 * use, `not_found` for one that does not exist, `unavailable` before an organization exists.
 */
export async function resolveProject(context: Context, request: ProjectRequest): Promise<NamespaceProject> {
  const { allowed, wanted, organizationId = null } = request
  const asked = wanted ?? allowed?.[0] ?? null
  const { bound, named } = await findNamespaceProjects(context.database, organizationId, request, asked)
  if (asked === null || asked === bound?.slug) return bound ?? (await takeOwnProject(context, request, true))!
  const isAllowed = allowed?.includes(asked) ?? false
  if (named !== null && isAllowed) return named
  // The namespace names its own project before the project exists. Another project may take the slug at this moment.
  if (bound === null && asked === ownSlug(request)) {
    const own = await takeOwnProject(context, request, named === null)
    if (own !== null) return own.slug === asked ? own : resolveProject(context, request)
  }
  throw isAllowed ? unknownProject(request, asked) : notAllowed(request, asked)
}

/**
 * The slugs of the projects that the namespace may use, its own project first, where `wanted` is none of these
 * projects. Null where the namespace may use `wanted`, also where no project has this slug. Changes nothing.
 */
export async function findProjectsInstead(
  { database }: Pick<Context, 'database'>,
  request: ProjectRequest & { readonly wanted: string },
): Promise<readonly string[] | null> {
  const { allowed, wanted, organizationId = null } = request
  if (allowed?.includes(wanted)) return null
  const { bound, named } = await findNamespaceProjects(database, organizationId, request, wanted)
  const own = bound?.slug ?? ownSlug(request)
  if (wanted === own && (bound !== null || named === null || mayGetFirstProject(request))) return null
  return [...new Set([...(bound === null && named?.slug === own ? [] : [own]), ...(allowed ?? [])])]
}

function mayGetFirstProject({ cluster, namespace }: Namespace): boolean {
  return cluster === DEFAULT_CLUSTER && namespace === FIRST_PROJECT_SLUG
}

function ownSlug({ cluster, namespace }: Namespace): string {
  return deriveSlug(cluster === DEFAULT_CLUSTER ? namespace : `${cluster}-${namespace}`, 'project')
}

/**
 * The namespace's own project: one that was bound meanwhile, else the first project for the namespace `default` while
 * the first project has neither checks nor a namespace, else, if `creates`, a new one.
 */
async function takeOwnProject(
  context: Context,
  to: ProjectRequest,
  creates: boolean,
): Promise<NamespaceProject | null> {
  const organizationId = await findOrganization(context, to)
  const now = context.clock.now()
  const id = newId(now)
  const boundTo = { cluster: to.cluster, namespace: to.namespace }
  return audited<NamespaceProject | null>(context, { ...controllerOf(to.cluster), organizationId }, async (tx) => {
    // Every transaction that adds a project takes this lock, so what is read next stays true.
    await lockOrganization(tx, organizationId)
    const { bound, named } = await findNamespaceProjects(tx, organizationId, to, FIRST_PROJECT_SLUG)
    if (bound !== null) return { result: bound, acts: [] }
    if (named !== null && mayGetFirstProject(to) && (await bindFirstProject(tx, organizationId, named.id, to)))
      return { result: named, acts: [actOn(named, 'project.changed', { changed: ['namespace'] })] }
    if (!creates) return { result: null, acts: [] }
    const slug = await chooseSlug(tx, organizationId, ownSlug(to))
    const made = (await insertProject(tx, { id, organizationId, name: slug, slug, createdAt: now, boundTo }))!
    return { result: made, acts: [actOn(made, 'project.created', { slug })] }
  })
}

/** Whether the project is the first one, and is bound now. */
async function bindFirstProject(tx: Queryable, organizationId: string, id: string, to: Namespace): Promise<boolean> {
  // Locked before the count, so that no check is added in between.
  if (id !== (await findOldestProject(tx, organizationId)) || !(await hasProject(tx, null, id, 'remove'))) return false
  return (await countChecks(tx, id)) === 0 && (await bindProject(tx, id, to))
}

async function findOrganization({ database }: Context, to: ProjectRequest): Promise<string> {
  const organizationId = to.organizationId ?? (await findOldestOrganization(database))
  if (organizationId !== null) return organizationId
  const message = 'the database has no organization yet: start the service in the role api or all, which creates one'
  throw new AppError('unavailable', message)
}

function notAllowed({ namespace, allowed, decidedBy }: ProjectRequest, asked: string): AppError {
  const rule = allowed?.length ? `it may use ${allowed.join(', ')} and its own` : 'it may use its own project only'
  const message = `namespace ${namespace} may not use the project "${asked}": ${rule}. Remove spec.project, or let an administrator add "${asked}" to ${PLACES[decidedBy ?? 'annotation']}`
  return new AppError('forbidden', message)
}

/** Where the projects of a namespace are named. */
const PLACES = {
  annotation: 'the annotation heartbeat-operator.io/projects of the Namespace',
  configuration: 'its projects in the variable PROJECTS (chart value projects)',
} as const

function unknownProject({ namespace, decidedBy }: ProjectRequest, asked: string): AppError {
  const message = `namespace ${namespace} may use the project "${asked}", but there is none with that slug: create it, or correct the slug in spec.project or in ${PLACES[decidedBy ?? 'annotation']}`
  return new AppError('not_found', message)
}
