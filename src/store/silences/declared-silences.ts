/** The silences that HeartbeatSilences declare. */

import { ofResource, type Resource } from '../checks/checks.ts'
import type { Queryable } from '../postgres/database.ts'
import { parametersOf, SILENCE_COLUMNS, type SilenceRow } from './silences.ts'

/** Null: the resource has none. */
export async function findDeclaredSilence(
  db: Queryable,
  { cluster, namespace, name }: Resource,
  lock: '' | 'for update' = '',
): Promise<SilenceRow | null> {
  const text = `select ${SILENCE_COLUMNS} from silences q where ${ofResource('q')} ${lock}`
  const { rows } = await db.query<SilenceRow>(text, [cluster, namespace, name])
  return rows[0] ?? null
}

/** What a resource says of its silence. */
export async function saveDeclaredSilence(tx: Queryable, silence: SilenceRow): Promise<void> {
  const { id, organizationId, projectId, selector, comment } = silence
  await tx.query(
    `update silences set organization_id = $2, project_id = $3, selector = $4, comment = $5, starts_at = $6::timestamptz,
        ends_at = $7::timestamptz, schedule = $8, time_zone = $9, dialect = $10, duration_seconds = $11
      where id = $1`,
    [id, organizationId, projectId, JSON.stringify(selector), comment, ...parametersOf(silence)],
  )
}

/** Which resource declares which silence. */
export interface DeclaredSilencePlace {
  readonly namespace: string
  readonly name: string
  readonly silenceId: string
}

/** Of all resources of the cluster, in no order. */
export async function listDeclaredSilences(db: Queryable, cluster: string): Promise<DeclaredSilencePlace[]> {
  const { rows } = await db.query<DeclaredSilencePlace>(
    `select q.kubernetes_namespace as namespace, q.kubernetes_name as name, q.id as "silenceId"
      from silences q where q.kubernetes_cluster = $1 and q.kubernetes_name is not null`,
    [cluster],
  )
  return rows
}
