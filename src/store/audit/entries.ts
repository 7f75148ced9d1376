/** The audit log: entries are added in the transaction of what they record, and never changed. */

import type { ActorKind, Tenant } from '../../domain/access.ts'
import { type AuditAction, type AuditDetail, type AuditEntry, targetKindOf } from '../../domain/audit.ts'
import type { Instant } from '../../domain/check.ts'
import { CHANGE_CHANNEL } from '../checks/change-notices.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface NewEntry {
  readonly entry: AuditEntry
  /** Null: that of the project, or of the installation (the oldest one). */
  readonly organizationId: string | null
  readonly projectId: string | null
}

/** Flips notify of the rest (../history/new-flips.ts), the first one of a new check too. */
const NOTIFIED = (
  ['check.changed', 'check.removed', 'check.acknowledged', 'check.unacknowledged'] satisfies AuditAction[]
)
  .map((action) => `'${action}'`)
  .join(', ')

/** Notifies of checks that were changed, acknowledged or removed when the transaction commits (change-notices.ts). */
export async function insertEntries(tx: Queryable, entries: readonly NewEntry[]): Promise<void> {
  const insert = ({ entry, organizationId, projectId }: NewEntry) => {
    const { id, at, actor, action, target, address, detail } = entry
    return tx.query({
      name: 'insert_audit_entry',
      text: `with added as (
          insert into audit_log (organization_id, project_id, id, at, actor_kind, actor_id, actor_name, action,
            target_id, target_name, address, detail)
          select coalesce($1::uuid, (select organization_id from projects where id = $2::uuid),
            (select id from organizations order by created_at, id limit 1)),
            $2::uuid, $3::uuid, $4::timestamptz, $5::text, $6::uuid, $7::text, $8::text, $9::uuid, $10::text, $11::text,
            $12::jsonb
          returning organization_id, target_id, action)
        select pg_notify('${CHANGE_CHANNEL}', json_build_array(organization_id, target_id)::text) from added
          where action in (${NOTIFIED})`,
      values: [
        ...[organizationId, projectId, id, timestamp(at), actor.kind, actor.id, actor.name, action],
        ...[target?.id ?? null, target?.name ?? null, address, JSON.stringify(detail)],
      ],
    })
  }
  // In one round trip.
  await Promise.all(entries.map(insert))
}

export interface EntryFilter {
  readonly action?: AuditAction
  readonly actorId?: string
  readonly targetId?: string
}

interface Row {
  readonly id: string
  readonly at: Instant
  readonly actorKind: ActorKind
  readonly actorId: string | null
  readonly actorName: string | null
  readonly action: AuditAction
  readonly targetId: string | null
  readonly targetName: string | null
  readonly address: string | null
  readonly detail: AuditDetail
}

/** Up to `limit` entries older than `beforeId`, newest first; ids are in order of time. A bound tenant sees those of its project. */
export async function listEntryRows(
  db: Queryable,
  tenant: Tenant,
  { action, actorId, targetId }: EntryFilter,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<AuditEntry[]> {
  const values: unknown[] = [tenant.organizationId, limit]
  const conditions: string[] = []
  // The statement has only the given conditions, so that the planner can choose an index for them.
  const add = (condition: string, value: unknown) => {
    values.push(value)
    conditions.push(`and ${condition} $${values.length}`)
  }
  if (tenant.projectId !== null) add('project_id =', tenant.projectId)
  if (beforeId !== null) add('id <', beforeId)
  if (action !== undefined) add('action =', action)
  if (actorId !== undefined) add('actor_id =', actorId)
  if (targetId !== undefined) add('target_id =', targetId)
  const { rows } = await db.query<Row>(
    `select id, at, actor_kind as "actorKind", actor_id as "actorId", actor_name as "actorName", action, target_id as "targetId",
        target_name as "targetName", address, detail
      from audit_log where organization_id = $1 ${conditions.join(' ')} order by id desc limit $2`,
    values,
  )
  return rows.map(toEntry)
}

function toEntry({ actorKind, actorId, actorName, targetId, targetName, ...row }: Row): AuditEntry {
  const target = targetId === null ? null : { kind: targetKindOf(row.action), id: targetId, name: targetName }
  return { ...row, actor: { kind: actorKind, id: actorId, name: actorName }, target }
}
