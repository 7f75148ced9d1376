/** What the creation of a check writes. */

import type { CheckState, CheckTexts } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
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

export interface NewState extends CheckTiming {
  readonly spec: StoredSpec
  readonly state: CheckState
}

/** Parameters: the key, CHECK, STORED_STATE. */
const CHECK_VALUES = parametersOf<CheckFields>(CHECK, 2)
const STATE_VALUES = parametersOf<StoredState>(STORED_STATE, 2 + fieldsOf(CHECK).length)

/** Inserts a check. Returns its key; null when its slug is taken, after waiting for a transaction that is about to take it. */
export async function insertCheck(tx: Queryable, check: NewCheckRow, state: NewState): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'insert_check',
    // A violation would end the transaction, and the next slug could not be tried in it. A key that was drawn from the
    // sequence once is used again by its owner alone.
    text: `with made as (
        insert into checks (key, ${namesOf(CHECK)}) overriding system value
        values (coalesce($1::int8, nextval('checks_key_seq')), ${Object.values(CHECK_VALUES).join(', ')})
        on conflict (project_id, slug) do nothing returning key)
      insert into check_states (check_key, ${namesOf(STORED_STATE)})
      select key, ${Object.values(STATE_VALUES).join(', ')} from made returning check_key as key`,
    values: toValues(check, state),
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
