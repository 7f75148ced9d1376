import type { Tenant } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import { notFound } from '../../domain/errors.ts'
import { isUuid } from '../../domain/ids.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface ProjectRow {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly createdAt: Instant
}

const COLUMNS = `id, name, slug, created_at as "createdAt"`

export interface NewProject extends ProjectRow {
  readonly organizationId: string
  /** The namespace that the project is bound to. */
  readonly boundTo?: Namespace
}

/** A namespace of a cluster. */
export interface Namespace {
  readonly cluster: string
  readonly namespace: string
}

/** Null when the organization has a project with that slug. */
export async function insertProject(db: Queryable, project: NewProject): Promise<ProjectRow | null> {
  const { id, organizationId, name, slug, createdAt, boundTo } = project
  const { rows } = await db.query<ProjectRow>(
    `insert into projects (id, organization_id, name, slug, created_at, kubernetes_cluster, kubernetes_namespace)
      values ($1, $2, $3, $4, $5::timestamptz, $6, $7)
      on conflict (organization_id, slug) do nothing
      returning ${COLUMNS}`,
    [id, organizationId, name, slug, timestamp(createdAt), boundTo?.cluster, boundTo?.namespace],
  )
  return rows[0] ?? null
}

/** False: the project has a namespace already. Fails with a unique violation when the namespace has a project. */
export async function bindProject(tx: Queryable, id: string, { cluster, namespace }: Namespace): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update projects set kubernetes_cluster = $2, kubernetes_namespace = $3 where id = $1 and kubernetes_namespace is null`,
    [id, cluster, namespace],
  )
  return rowCount === 1
}

/**
 * `bound`: the project that is bound to the namespace. `named`: the organization's project with the slug. Each is null
 * when there is none. `organizationId` null stands for the oldest organization.
 */
export async function findNamespaceProjects(
  db: Queryable,
  organizationId: string | null,
  { cluster, namespace }: Namespace,
  slug: string | null,
): Promise<{ bound: ProjectRow | null; named: ProjectRow | null }> {
  const { rows } = await db.query<ProjectRow & { isBound: boolean }>({
    name: 'find_namespace_projects',
    text: `select ${COLUMNS}, true as "isBound" from projects where kubernetes_cluster = $2 and kubernetes_namespace = $3
      union all
      select ${COLUMNS}, false as "isBound" from projects
      where organization_id = coalesce($1, (select id from organizations order by created_at, id limit 1)) and slug = $4`,
    values: [organizationId, cluster, namespace, slug],
  })
  return { bound: rows.find((row) => row.isBound) ?? null, named: rows.find((row) => !row.isBound) ?? null }
}

/** The first of these slugs that no project of the organization has; null when all are taken. */
export async function findFreeProjectSlug(
  db: Queryable,
  organizationId: string,
  slugs: readonly string[],
): Promise<string | null> {
  const { rows } = await db.query<{ slug: string }>(
    `select c.slug from unnest($2::text[]) with ordinality c (slug, place)
      where not exists (select from projects p where p.organization_id = $1 and p.slug = c.slug)
      order by c.place limit 1`,
    [organizationId, slugs],
  )
  return rows[0]?.slug ?? null
}

/** In order of creation. */
export async function listProjects(
  db: Queryable,
  tenant: Tenant,
  { limit, after }: PageRequest,
): Promise<ProjectRow[]> {
  const { rows } = await db.query<ProjectRow>(
    `select ${COLUMNS} from projects
      where organization_id = $1 and ($2::uuid is null or id = $2)
        and ($4::uuid is null or (created_at, id) > ($3::timestamptz, $4))
      order by created_at, id limit $5`,
    [tenant.organizationId, tenant.projectId, timestamp(after?.at ?? null), after?.id ?? null, limit],
  )
  return rows
}

/** Throws AppError `not_found`. */
export async function findOrganizationOf(db: Queryable, projectId: string): Promise<string> {
  const { rows } = await db.query<{ id: string }>('select organization_id as id from projects where id = $1', [
    projectId,
  ])
  if (rows[0] === undefined) throw notFound('project')
  return rows[0].id
}

export async function findOldestProject(db: Queryable, organizationId: string): Promise<string | null> {
  const text = 'select id from projects where organization_id = $1 order by created_at, id limit 1'
  const { rows } = await db.query<{ id: string }>(text, [organizationId])
  return rows[0]?.id ?? null
}

const LOCKS = { read: '', keep: 'for key share', change: 'for no key update', remove: 'for update' } as const

/**
 * What a project is looked for. `keep`: the project stays until the transaction ends. `change`: also, it does not
 * change. `remove`: also, nothing can be added to it until then.
 */
export type ProjectPurpose = keyof typeof LOCKS

/** Null for an unknown, foreign or malformed id. A null tenant stands for every tenant. */
export async function findProject(
  db: Queryable,
  tenant: Tenant | null,
  id: string,
  purpose: ProjectPurpose,
): Promise<ProjectRow | null> {
  if (!isUuid(id)) return null
  const { rows } = await db.query<ProjectRow>({
    name: `${purpose}_project`,
    text: `select ${COLUMNS} from projects
      where id = $1 and ($2::uuid is null or organization_id = $2) and ($3::uuid is null or id = $3) ${LOCKS[purpose]}`,
    values: [id, tenant?.organizationId ?? null, tenant?.projectId ?? null],
  })
  return rows[0] ?? null
}

/** Whether the project exists and belongs to the tenant. `id` may be any text. */
export async function hasProject(
  db: Queryable,
  tenant: Tenant | null,
  id: string,
  purpose: ProjectPurpose,
): Promise<boolean> {
  return (await findProject(db, tenant, id, purpose)) !== null
}

/** By slug or id; a slug that has the form of an id comes second. Null for any other text. */
export async function findProjectByName(db: Queryable, tenant: Tenant, slugOrId: string): Promise<ProjectRow | null> {
  // PostgreSQL rejects text with a NUL.
  if (slugOrId.includes('\0') || !slugOrId.isWellFormed()) return null
  const { rows } = await db.query<ProjectRow>(
    `select ${COLUMNS} from projects
      where organization_id = $1 and ($2::uuid is null or id = $2) and (slug = $3 or id = $4::uuid)
      order by (id = $4::uuid) is true desc limit 1`,
    [tenant.organizationId, tenant.projectId, slugOrId, isUuid(slugOrId) ? slugOrId : null],
  )
  return rows[0] ?? null
}

export interface ProjectOfAll extends ProjectRow {
  readonly organizationId: string
  readonly organization: string
}

/** Of every organization, at most 1,000, by slug: for who runs the installation, never for a caller. */
export async function listProjectsOfAll(db: Queryable, slugOrId: string | null): Promise<ProjectOfAll[]> {
  const { rows } = await db.query<ProjectOfAll>(
    `select p.id, p.name, p.slug, p.created_at as "createdAt", o.id as "organizationId", o.name as organization
      from projects p join organizations o on o.id = p.organization_id
      where $1::text is null or p.slug = $1 or p.id::text = lower($1)
      order by p.slug, p.id limit 1000`,
    [slugOrId],
  )
  return rows
}

export async function saveProjectName(tx: Queryable, id: string, name: string): Promise<void> {
  await tx.query('update projects set name = $2 where id = $1', [id, name])
}

export async function countChecks(tx: Queryable, projectId: string): Promise<number> {
  const text = 'select count(*) as count from checks where project_id = $1'
  const { rows } = await tx.query<{ count: number }>(text, [projectId])
  return rows[0]!.count
}

interface Removed {
  readonly id: string
  readonly name: string
}

/** Also deletes the bound API keys and channels, which it returns, and the tombstones of deleted checks. */
export async function deleteProject(tx: Queryable, id: string): Promise<{ keys: Removed[]; channels: Removed[] }> {
  const { rows: keys } = await tx.query<Removed>('delete from api_keys where project_id = $1 returning id, name', [id])
  const { rows: channels } = await tx.query<Removed>('delete from channels where project_id = $1 returning id, name', [
    id,
  ])
  await tx.query('delete from projects where id = $1', [id])
  return { keys, channels }
}
