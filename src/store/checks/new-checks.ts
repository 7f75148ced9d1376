/** What the creation of a check writes. */

import type { CheckState, CheckTexts, Instant } from '../../domain/check.ts'
import { entryValues, insertEntryFrom, type NewEntry } from '../audit/entries.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { CHANGE_CHANNEL } from './change-notices.ts'
import type { Resource } from './checks.ts'
import { fieldsOf, namesOf, parametersOf, valuesOf } from './column-lists.ts'
import {
  CHECK,
  type CheckConfigured,
  type CheckFields,
  type CheckIdentity,
  type CheckOrigin,
  type CheckTiming,
  STORED_STATE,
  type StoredSpec,
  type StoredState,
} from './columns.ts'
import { OWNED_BY_API, toOwner } from './declared-checks.ts'

/** Which of these slugs are taken in the project. */
export async function findTakenSlugs(tx: Queryable, projectId: string, slugs: readonly string[]): Promise<Set<string>> {
  const text = 'select slug from checks where project_id = $1 and slug = any($2::text[])'
  const { rows } = await tx.query<{ slug: string }>(text, [projectId, slugs])
  return new Set(rows.map((row) => row.slug))
}

/** All slugs of the project. */
export async function readSlugs(db: Queryable, projectId: string): Promise<Set<string>> {
  const { rows } = await db.query<{ slug: string }>('select slug from checks where project_id = $1', [projectId])
  return new Set(rows.map(({ slug }) => slug))
}

export interface NewCheckRow extends CheckIdentity, CheckTexts, Pick<CheckConfigured, 'updatedAt'> {
  readonly slugLeftEmpty?: true
  /** The key of a check that comes back to its history (tombstones.ts). Default: a new one. */
  readonly key?: number
  /** The resource that declares the check. Default: the check belongs to the API. */
  readonly kubernetes?: Resource & { readonly suspend: boolean | null; readonly origin: CheckOrigin }
}

export type NewDeclaredRow = NewCheckRow & { readonly kubernetes: NonNullable<NewCheckRow['kubernetes']> }

export interface NewState extends CheckTiming {
  readonly spec: StoredSpec
  readonly state: CheckState
}

/** Parameters: the key, CHECK, STORED_STATE, and what a statement adds. */
const CHECK_VALUES = parametersOf<CheckFields>(CHECK, 2)
const STATE_VALUES = parametersOf<StoredState>(STORED_STATE, 2 + fieldsOf(CHECK).length)
const NEXT = 2 + fieldsOf(CHECK).length + fieldsOf(STORED_STATE).length

const COLUMNS = `key, ${namesOf(CHECK)}`
/** A key that was drawn from the sequence once is used again by its owner alone. */
const VALUES = `coalesce($1::int8, nextval('checks_key_seq')), ${Object.values(CHECK_VALUES).join(', ')}`
const INSERT_STATE = `insert into check_states (check_key, ${namesOf(STORED_STATE)}) select key, ${Object.values(STATE_VALUES).join(', ')} from made`

/** Inserts a check. Returns its key; null when its slug is taken, after waiting for a transaction that is about to take it. */
export async function insertCheck(tx: Queryable, check: NewCheckRow, state: NewState): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'insert_check',
    // A violation would end the transaction, and the next slug could not be tried in it.
    text: `with made as (
        insert into checks (${COLUMNS}) overriding system value values (${VALUES})
        on conflict (project_id, slug) do nothing returning key)
      ${INSERT_STATE} returning check_key as key`,
    values: toValues(check, state),
  })
  return rows[0]?.key ?? null
}

/**
 * Inserts the first check of a resource, the flip that its history begins with, and the audit entry about it, in one statement and a
 * transaction by itself. Notifies of the check (change-notices.ts), as the flips of other checks do.
 * Returns its key; null when the project is gone, the slug is taken, or the resource has a check, a tombstone or a retained check. It takes
 * no lock: each moment shows one of these to a reader, and a concurrent writer meets it in a unique index.
 */
export async function insertFirstCheck(
  db: Queryable,
  check: NewDeclaredRow,
  state: NewState,
  flip: { readonly id: string; readonly at: Instant },
  entry: NewEntry,
): Promise<number | null> {
  const { kubernetesCluster, kubernetesNamespace, kubernetesName, projectId } = CHECK_VALUES
  const ofResource = `kubernetes_cluster = ${kubernetesCluster} and kubernetes_namespace = ${kubernetesNamespace} and kubernetes_name = ${kubernetesName}`
  const [flipId, flipAt] = [`$${NEXT}::uuid`, `$${NEXT + 1}::timestamptz`]
  const { rows } = await db.query<{ key: number }>({
    name: 'insert_first_check',
    text: `with kept as (
        select organization_id from projects where id = ${projectId} for key share),
      made as (
        insert into checks (${COLUMNS}) overriding system value select ${VALUES} from kept
        where not exists (select from checks where ${ofResource})
          and not exists (select from tombstones where ${ofResource})
          and not exists (select from retained_checks where ${ofResource})
        on conflict do nothing returning key, id),
      stated as (${INSERT_STATE}),
      flipped as (
        insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, ping_id)
        select ${flipId}, key, ${flipAt}, ${flipAt}, null, ${STATE_VALUES.status}, 'created', null from made),
      audited as (${insertEntryFrom('kept, made', NEXT + 2)})
      select key, pg_notify('${CHANGE_CHANNEL}', json_build_array(organization_id, id)::text) from kept, made`,
    values: [...toValues(check, state), flip.id, timestamp(flip.at), ...entryValues(entry)],
  })
  return rows[0]?.key ?? null
}

function toValues(check: NewCheckRow, { spec, state, ...timing }: NewState): unknown[] {
  const { key, kubernetes } = check
  const owner = kubernetes === undefined ? OWNED_BY_API : toOwner(kubernetes, kubernetes.suspend, kubernetes.origin)
  return [
    key,
    ...valuesOf<CheckFields>(CHECK, { slugLeftEmpty: false, ...check, ...owner }),
    ...valuesOf<StoredState>(STORED_STATE, { ...spec, ...state, ...timing }),
  ]
}

/** Whether the project has at least so many checks. Reads no more of them. */
export async function hasChecks(db: Queryable, projectId: string, count: number): Promise<boolean> {
  const { rows } = await db.query<{ count: number }>({
    name: 'has_checks',
    text: 'select count(*) as count from (select from checks where project_id = $1 limit $2) found',
    values: [projectId, count],
  })
  return rows[0]!.count >= count
}
