/**
 * Which checks depend on which (`depends_on`). Order of the locks: `lockDependencies`, the states of checks
 * (states.ts), the rows of the checks that one depends on.
 */

import type { Tenant } from '../../domain/access.ts'
import type { Instant, ShownStatus } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { DEPENDENCY_LOCKS } from '../postgres/locks.ts'
import { CHECKS_OF_PROJECTS, OF_TENANT, type Resource } from './checks.ts'
import { wakeHeld } from './circumstances.ts'
import { shownStatusSql } from './columns.ts'
import { lockStates } from './states.ts'

/** Checks that leave out one in a transaction: their pings wait until it ends, some 20 ms. */
const UNLINKED_AT_ONCE = 100

/** Until the transaction ends no other one adds a dependency in the organization, or in that of the project. */
export async function lockDependencies(
  tx: Queryable,
  of: { readonly organizationId: string } | { readonly inProject: string },
): Promise<void> {
  const [organizationId, projectId] = 'inProject' in of ? [null, of.inProject] : [of.organizationId, null]
  await tx.query(
    `select pg_advisory_xact_lock($1, hashtext(
        coalesce($2::uuid, (select organization_id from projects where id = $3::uuid))::text))`,
    [DEPENDENCY_LOCKS, organizationId, projectId],
  )
}

/** Those of the ids that are checks of the tenant; they stay until the transaction ends. */
export async function keepChecks(tx: Queryable, tenant: Tenant, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ id: string }>(
    `select c.id from checks c join projects p on p.id = c.project_id
      where ${OF_TENANT} and c.id = any($3::uuid[]) for key share of c`,
    [tenant.organizationId, tenant.projectId, ids],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * The ids of the checks of these resources of a namespace, by their names, where they are in the organization of the
 * project. `keep`: they stay until the transaction ends.
 */
export async function findDeclaredIds(
  db: Queryable,
  { cluster, namespace }: Pick<Resource, 'cluster' | 'namespace'>,
  names: readonly string[],
  projectId: string,
  purpose: 'read' | 'keep',
): Promise<Map<string, string>> {
  const { rows } = await db.query<{ name: string; id: string }>(
    `select c.kubernetes_name as name, c.id from checks c join projects p on p.id = c.project_id
      where c.kubernetes_cluster = $1 and c.kubernetes_namespace = $2 and c.kubernetes_name = any($3::text[])
        and p.organization_id = (select organization_id from projects where id = $4)
      ${purpose === 'keep' ? 'for key share of c' : ''}`,
    [cluster, namespace, names, projectId],
  )
  return new Map(rows.map(({ name, id }) => [name, id]))
}

export interface Link {
  readonly id: string
  /** Null: of another project than that of the tenant. */
  readonly name: string | null
  readonly dependsOn: readonly string[]
}

/** These checks and all that they depend on, over others too: one more than LIMITS.reachedDependencies at most. */
export async function findLinks(
  tx: Queryable,
  ids: readonly string[],
  projectId: string | null,
): Promise<Map<string, Link>> {
  const { rows } = await tx.query<Link>(
    `with recursive reached (id) as (
        select unnest($1::uuid[]) union
        select d.id from reached r join checks c on c.id = r.id cross join unnest(c.depends_on) d (id))
      select c.id, case when $2::uuid is null or c.project_id = $2 then c.name end as name,
        coalesce(c.depends_on, '{}') as "dependsOn"
      from (select id from reached limit $3) r join checks c on c.id = r.id`,
    [ids, projectId, LIMITS.reachedDependencies + 1],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** The keys of up to `limit` checks that depend on some of these, which are given by their keys. */
export async function findDependents(
  tx: Queryable,
  keys: readonly number[],
  limit = UNLINKED_AT_ONCE,
): Promise<number[]> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'find_dependents',
    text: `select key from checks
      where depends_on && array(select id from checks where key = any($1::int8[])) limit $2`,
    values: [keys, limit],
  })
  return rows.map(({ key }) => key)
}

/**
 * Takes the check, whose state is locked, out of the lists of up to 100 others; of those that the transaction has not
 * locked, and another one has, none. True: no list has it, and none gets it until the transaction ends.
 */
export async function leaveLists(tx: Queryable, { key, id }: { readonly key: number; readonly id: string }) {
  // A transaction that has chosen it ends first.
  await tx.query('select from checks where key = $1 for update', [key])
  const locked = (await lockStates(tx, await findDependents(tx, [key]), 'skip locked')).map((one) => one.key)
  if (locked.length > 0) {
    await tx.query(
      `update checks set depends_on = nullif(array(
            select u.id from unnest(depends_on) with ordinality u (id, place) where u.id <> $1 order by place), '{}')
        where key = any($2::int8[]) and depends_on @> array[$1::uuid]`,
      [id, locked],
    )
    await wakeHeld(tx, locked)
  }
  return (await findDependents(tx, [key], 1)).length === 0
}

/** A check as the page of another one names it. */
export interface LinkedCheck {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly projectId: string
  readonly status: ShownStatus
}

/** Of the tenant: the checks of these ids in their order, or up to `limit` that depend on one, by their names. */
export async function listLinked(
  db: Queryable,
  tenant: Tenant,
  of: { readonly ids: readonly string[] } | { readonly dependOn: string; readonly limit: number },
  now: Instant,
): Promise<LinkedCheck[]> {
  const [condition, order, ...values] =
    'ids' in of
      ? ['c.id = any($4::uuid[])', 'array_position($4::uuid[], c.id) limit $5', of.ids, of.ids.length]
      : ['c.depends_on @> array[$4::uuid]', 'c.name, c.id limit $5', of.dependOn, of.limit]
  const { rows } = await db.query<LinkedCheck>(
    `select c.id, c.name, c.slug, c.project_id as "projectId", ${shownStatusSql('$3::timestamptz')} as status
      from ${CHECKS_OF_PROJECTS} where ${OF_TENANT} and ${condition} order by ${order}`,
    [tenant.organizationId, tenant.projectId, timestamp(now), ...values],
  )
  return rows
}

/** The ids of the checks of a project by their slugs. */
export async function findIdsOfSlugs(
  db: Queryable,
  projectId: string,
  slugs: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.query<{ slug: string; id: string }>(
    'select slug, id from checks where project_id = $1 and slug = any($2::text[])',
    [projectId, slugs],
  )
  return new Map(rows.map(({ slug, id }) => [slug, id]))
}
