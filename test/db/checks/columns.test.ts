/** The tables of src/store/checks/columns.ts and the closed sets of the domain are those of the schema: a change of one needs a migration. */

import { expect, it } from 'vitest'
import { SCOPES } from '../../../src/domain/access.ts'
import { MANAGERS, PING_SOURCES, PING_TYPES, STATUSES } from '../../../src/domain/check.ts'
import { type Column, columnOf, fieldsOf, valuesOf } from '../../../src/store/checks/column-lists.ts'
import { CHECK, SPEC, SPEC_HASH, STORED_STATE, type StoredSpec } from '../../../src/store/checks/columns.ts'
import { TOMBSTONE } from '../../../src/store/checks/tombstones.ts'
import { createTestDatabase } from '../../support/database.ts'
import { use } from '../../support/use.ts'

const test = use(createTestDatabase)

it.each<[string, Record<string, Pick<Column<never>, 'type'>>, string[]]>([
  ['checks', CHECK, ['key']],
  ['check_states', STORED_STATE, ['check_key']],
  [
    'tombstones',
    TOMBSTONE,
    ['check_key', 'kubernetes_cluster', 'kubernetes_namespace', 'kubernetes_name', 'deleted_at'],
  ],
])('%s has the declared columns and no others', async (table, columns, others) => {
  const { rows } = await test.database.query<{ name: string; type: string }>(
    'select column_name as name, udt_name as type from information_schema.columns where table_name = $1',
    [table],
  )
  const stored = new Map(rows.map(({ name, type }) => [name, type.replace(/^_(.*)/, '$1[]')]))
  for (const name of others) expect(stored.delete(name)).toBe(true)
  expect(stored).toEqual(new Map(Object.entries(columns).map(([field, { type }]) => [columnOf(field), type])))
})

it.each([
  ['check_states', 'status', STATUSES],
  ['check_states', 'notified', STATUSES],
  ['flips', 'from_status', STATUSES],
  ['flips', 'to_status', STATUSES],
  ['pings', 'type', PING_TYPES],
  ['pings', 'source', PING_SOURCES],
])('%s.%s stores its words as the numbers that its comment names', async (table, column, words) => {
  const { rows } = await test.database.query<{ comment: string }>(
    `select col_description($1::regclass, attnum) as comment from pg_attribute where attrelid = $1::regclass and attname = $2`,
    [table, column],
  )
  expect(words.map((word, code) => `${code} ${word}`).join(', ')).toBe(rows[0]!.comment)
})

it.each([
  ['checks', 'managed_by', MANAGERS],
  ['users', 'scope', SCOPES],
  ['api_keys', 'scope', SCOPES],
])('%s.%s accepts the words of the domain and no others', async (table, column, words) => {
  const { rows } = await test.database.query<{ definition: string }>(
    'select pg_get_constraintdef(oid) as definition from pg_constraint where conname = $1',
    [`${table}_${column}_check`],
  )
  expect(Array.from(rows[0]!.definition.matchAll(/'([^']*)'/g), ([, word]) => word)).toEqual(words)
})

it('each column of a spec changes its hash', async () => {
  // Without the constraints of check_states, so that one column can change alone.
  await test.database.query('create table specs (like check_states)')
  await test.database.query(
    'insert into specs (check_key, grace_seconds, resume_on_ping, status, since, pings_total, stamped_at) values (1, 0, false, 0, now(), 0, now())',
  )
  const others: StoredSpec = {
    periodSeconds: 60,
    schedule: '0 * * * *',
    timeZone: 'UTC',
    dialect: 'cron',
    graceSeconds: 60,
    maxRuntimeSeconds: 60,
    warnExitCodes: [3],
    jobArea: 'area',
    resumeOnPing: true,
  }
  const fields = fieldsOf<StoredSpec>(SPEC)
  const hashes = new Set<number>()
  for (const field of fields) {
    const { rows } = await test.database.query<{ hash: number }>(
      `update specs set ${columnOf(field)} = $1 returning ${SPEC_HASH} as hash`,
      valuesOf<Record<string, unknown>>({ [field]: SPEC[field] as Column<unknown> }, { [field]: others[field] }),
    )
    hashes.add(rows[0]!.hash)
  }
  expect(hashes.size).toBe(fields.length)
})
