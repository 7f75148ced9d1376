import { randomUUID } from 'node:crypto'
import type { Queryable } from '../../src/store/postgres/database.ts'
import type { TestTenant } from './tenant.ts'

/** A silence of all checks of the tenant's project, from an hour ago until an hour from now. Returns its id. */
export async function addSilence(
  { database }: { readonly database: Queryable },
  { organizationId, project }: TestTenant,
  now: number,
): Promise<string> {
  const id = randomUUID()
  await database.query(
    `insert into silences (id, organization_id, project_id, starts_at, ends_at, comment, created_by, created_at)
      values ($1, $2, $3, to_timestamp($4::float8 / 1000) - interval '1 hour', to_timestamp($4::float8 / 1000) + interval '1 hour',
        'test', '{"kind": "user", "id": null, "name": null}', now())`,
    [id, organizationId, project, now],
  )
  return id
}

/** A channel of the organization that wants these events. Returns its id. */
export async function addWebhook(
  { database }: { readonly database: Queryable },
  { organizationId }: Pick<TestTenant, 'organizationId'>,
  eventTypes: readonly string[],
): Promise<string> {
  const id = randomUUID()
  await database.query(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values ($1, $2, 'webhook', 'Team', '\\x00', '\\x00', $3, now())`,
    [id, organizationId, eventTypes],
  )
  return id
}

/** Of each delivery of the check, in their order: `check.down`, or `(check.down: silenced)` where it is not sent. */
export async function messagesOf(
  { database }: { readonly database: Queryable },
  { key }: { readonly key: number },
): Promise<string[]> {
  const { rows } = await database.query<{ type: string; reason: string | null }>(
    'select type, reason from deliveries where check_key = $1 order by event_id',
    [key],
  )
  return rows.map(({ type, reason }) => (reason === null ? type : `(${type}: ${reason})`))
}
