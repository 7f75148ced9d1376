/**
 * The configuration of checks: reads, each limited to a tenant, and the writes of people's changes. Every change of a check first
 * takes its lock in check_states (states.ts) and then touches `checks`, so that no two changes deadlock.
 */

import type { Tenant } from '../../domain/access.ts'
import type { CheckState, CheckTexts } from '../../domain/check.ts'
import type { Cursor } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { fieldsOf, namesOf, read, settersOf, valuesOf } from './column-lists.ts'
import {
  CHECK,
  type CheckFields,
  type CheckIdentity,
  type CheckOwner,
  type CheckRowsFilter,
  narrow,
  SPEC,
  STATE,
  type StoredSpec,
  TEXTS,
  toState,
  toStoredSpec,
} from './columns.ts'

/** The names of a HeartbeatCheck: its identity here (design, section 6). */
export interface Resource {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export interface CheckRecord extends CheckIdentity, CheckTexts, Pick<CheckOwner, 'managedBy'> {
  readonly key: number
  /** The resource that the check is or was declared by. */
  readonly kubernetes: Resource | null
  readonly spec: StoredSpec
  readonly state: CheckState
}

export interface StoredCheck extends CheckRecord {
  /** spec.suspend of the resource: while it is set, pause and resume belong to the resource. */
  readonly kubernetesSuspend: boolean | null
}

/** What `toCheck` reads. `c` is the check, `s` its state. */
export const CHECK_COLUMNS = `c.key, ${namesOf(CHECK, 'c')}, ${namesOf(SPEC, 's')}, ${namesOf(STATE, 's')}`

const SPEC_AT = 1 + fieldsOf(CHECK).length
const STATE_AT = SPEC_AT + fieldsOf(SPEC).length

export function toCheck(row: readonly unknown[]): StoredCheck {
  const fields = read<CheckFields>(CHECK, row, 1)
  const { kubernetesCluster: cluster, kubernetesNamespace: namespace, kubernetesName: name, ...check } = fields
  return {
    ...check,
    key: row[0] as number,
    kubernetes: cluster === null || namespace === null || name === null ? null : { cluster, namespace, name },
    spec: toStoredSpec(row, SPEC_AT),
    state: toState(row, STATE_AT),
  }
}

/** A project of the tenant. $1 and $2 of every statement that reads for a tenant. */
const OF_TENANT = 'p.organization_id = $1 and ($2::uuid is null or p.id = $2)'

const CHECKS = 'checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key'

/** Null for an unknown check and for another tenant's. `id` is a UUID. */
export async function findCheck(tx: Queryable, tenant: Tenant, id: string): Promise<StoredCheck | null> {
  const [row] = await tx.queryColumns({
    name: 'find_check',
    text: `select ${CHECK_COLUMNS} from ${CHECKS} where ${OF_TENANT} and c.id = $3`,
    values: [tenant.organizationId, tenant.projectId, id],
  })
  return row === undefined ? null : toCheck(row)
}

/** The key alone, to lock a check or to read its history. Null like `findCheck`. */
export async function findCheckKey(tx: Queryable, tenant: Tenant, id: string): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'find_check_key',
    text: `select c.key from checks c join projects p on p.id = c.project_id where ${OF_TENANT} and c.id = $3`,
    values: [tenant.organizationId, tenant.projectId, id],
  })
  return rows[0]?.key ?? null
}

/** Before the first check. */
const START: Cursor = { at: 0, id: '00000000-0000-0000-0000-000000000000' }

/** Up to `limit` checks of a project that pass the filter, by time of creation and id; `after`: null from the start. */
export async function listCheckRows(
  tx: Queryable,
  tenant: Tenant,
  projectId: string,
  filter: CheckRowsFilter,
  { after, limit }: { after: Cursor | null; limit: number },
): Promise<StoredCheck[]> {
  const { at, id } = after ?? START
  const { sql, values } = narrow(filter, 7)
  const rows = await tx.queryColumns({
    text: `select ${CHECK_COLUMNS} from ${CHECKS}
      where ${OF_TENANT} and c.project_id = $3 and (c.created_at, c.id) > ($4::timestamptz, $5::uuid)${sql}
      order by c.created_at, c.id limit $6`,
    values: [tenant.organizationId, tenant.projectId, projectId, timestamp(at), id, limit, ...values],
  })
  return rows.map(toCheck)
}

/** Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. */
export async function saveTexts(tx: Queryable, key: number, slug: string, texts: CheckTexts): Promise<void> {
  const values = [key, slug, ...valuesOf<CheckTexts>(TEXTS, texts)]
  await tx.query(`update checks set slug = $2, ${settersOf(TEXTS, 3)} where key = $1`, values)
}

/** Names of a constraint and of an index in the schema. */
export const SLUG_IS_UNIQUE = 'checks_project_id_slug_key'
export const RESOURCE_IS_UNIQUE = 'checks_resource'

export async function saveSpec(tx: Queryable, key: number, spec: StoredSpec): Promise<void> {
  const values = [key, ...valuesOf<StoredSpec>(SPEC, spec)]
  await tx.query(`update check_states set ${settersOf(SPEC, 2)} where check_key = $1`, values)
}

/** The check and its state. Its history is deleted separately (pings.ts, flips.ts). */
export async function deleteCheck(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from checks where key = $1', [key])
}
