/** What the tests of the verbs start from: a database, a clock moved by hand, tenants, and checks that were pinged. */

import { beforeEach } from 'vitest'
import { type Change, decideChanges } from '../../../src/checks/change.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import {
  PRUNE_START,
  type PruneBatch,
  type PruneLimits,
  type PrunePosition,
  pruneHistory,
} from '../../../src/checks/prune-history.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { PING_TYPES, type PingType, SHOWN_STATUSES, type ShownStatus } from '../../../src/domain/check.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { saveChanges } from '../../../src/store/checks/change-sets.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { StoredSpec } from '../../../src/store/checks/columns.ts'
import { lockStates } from '../../../src/store/checks/states.ts'
import type { Context } from '../../../src/store/context.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { addCheck } from '../../support/check.ts'
import { createTestDatabase, type TestDatabase, untilWaiting } from '../../support/database.ts'
import { addTenant, type TestTenant } from '../../support/tenant.ts'
import { use, useEach } from '../../support/use.ts'

export { addProject, addTenant, type TestTenant } from '../../support/tenant.ts'
export { addCheck, untilWaiting }

export const NOW = Date.UTC(2026, 5, 15, 12)

export interface Fixture extends TestDatabase {
  readonly context: Context
  readonly clock: { time: number; now: () => number }
}

export async function createFixture(): Promise<Fixture> {
  const test = await createTestDatabase()
  const clock = { time: NOW, now: () => clock.time }
  return { ...test, clock, context: { database: test.database, clock } }
}

/** A fixture for all tests of a file. Before each of them its database is emptied and gets a tenant, and its clock shows NOW. */
export function useFixture(): Fixture & { readonly tenant: TestTenant } {
  const fixture = use(createFixture)
  beforeEach(async () => {
    await fixture.clear()
    fixture.clock.time = NOW
  })
  return Object.assign(fixture, { tenant: useEach(() => addTenant(fixture)) })
}

/** Context whose verbs join the transaction at hand, so that a test can hold one open in the middle of its effects. */
export function contextWithin({ context }: Fixture, tx: Queryable): Context {
  return { ...context, database: { ...context.database, transaction: (work) => work(tx) } }
}

export function periodSpec(spec: Partial<StoredSpec> = {}): StoredSpec {
  return {
    ...NO_SPEC,
    periodSeconds: 3_600,
    dialect: null,
    graceSeconds: 300,
    ...spec,
  }
}

export function cronSpec(schedule: string, spec: Partial<StoredSpec> = {}): StoredSpec {
  return periodSpec({ periodSeconds: null, schedule, timeZone: 'UTC', dialect: 'cron', ...spec })
}

export async function manageByKubernetes(
  { database }: Fixture,
  { key }: CheckRecord,
  suspend: boolean | null,
): Promise<void> {
  await database.query(
    `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'payments',
       kubernetes_name = 'nightly', kubernetes_suspend = $2 where key = $1`,
    [key, suspend],
  )
}

/** A change as the ping path makes it, in a transaction that the caller holds open as long as it likes. */
export async function ping(
  tx: Queryable,
  { key }: Pick<CheckRecord, 'key'>,
  type: PingType,
  at: number,
  given: { runId?: string; body?: Buffer } = {},
): Promise<string> {
  const { runId = null, body = null } = given
  const event: Change['event'] =
    type === 'start' ? { kind: type, runId } : type === 'log' ? { kind: type } : { kind: type, runId, durationMs: null }
  const exitCode = type === 'success' ? 0 : null
  const { decisions, changeSet } = decideChanges(
    await lockStates(tx, [key]),
    [{ key, event, at, ping: { type, exitCode, runId, body } }],
    'earlier',
  )
  await saveChanges(tx, changeSet)
  return decisions[0]!.kind
}

/** One check of each status at NOW + an hour, by its name; the clock is there. */
export async function addEachStatus(fixture: Fixture, tenant: TestTenant): Promise<Record<ShownStatus, CheckRecord>> {
  const checks = {} as Record<ShownStatus, CheckRecord>
  for (const name of SHOWN_STATUSES) checks[name] = await addCheck(fixture, tenant, { name })
  await fixture.database.transaction(async (tx) => {
    await ping(tx, checks.up, 'success', NOW + 30 * MINUTE)
    await ping(tx, checks.late, 'success', NOW)
    await ping(tx, checks.down, 'fail', NOW + MINUTE)
  })
  await pauseCheck(fixture.context, tenant, checks.paused.id)
  fixture.clock.time = NOW + HOUR
  return checks
}

/** A row of history that the state knows nothing of. Returns its id. */
export async function addPingRow(
  { database }: Fixture,
  key: number,
  at: number,
  given: { type?: PingType; runId?: string; body?: Buffer } = {},
): Promise<string> {
  const id = newId(at)
  await database.query(
    'insert into pings (id, check_key, type, run_id, source, created_at) values ($1, $2, $3, $4, 0, to_timestamp($5 / 1000.0))',
    [id, key, PING_TYPES.indexOf(given.type ?? 'log'), given.runId ?? null, at],
  )
  if (given.body !== undefined)
    await database.query('insert into ping_bodies (check_key, ping_id, body) values ($1, $2, $3)', [
      key,
      id,
      given.body,
    ])
  return id
}

export async function countRows({ database }: Fixture, table: string, key: number): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `select count(*) as count from ${table} where check_key = $1`,
    [key],
  )
  return rows[0]!.count
}

export interface OpenTransaction {
  commit(): Promise<void>
  rollback(): Promise<void>
  /** Commits when `act` waits for it; returns what `act` returns then. */
  commitBefore<T>(act: () => Promise<T>): Promise<T>
  rollbackBefore<T>(act: () => Promise<T>): Promise<T>
}

/** A transaction that stays open after `work` until it is committed or rolled back. */
export async function openTransaction(
  { database }: Fixture,
  work: (tx: Queryable) => Promise<unknown>,
): Promise<OpenTransaction> {
  const worked = Promise.withResolvers<void>()
  const ending = Promise.withResolvers<void>()
  class Undone extends Error {}
  const transaction = database.transaction(async (tx) => {
    await work(tx)
    worked.resolve()
    await ending.promise
  })
  transaction.catch(worked.reject)
  await worked.promise
  async function commit() {
    ending.resolve()
    await transaction
  }
  async function rollback() {
    ending.reject(new Undone())
    await transaction.catch((error) => {
      if (!(error instanceof Undone)) throw error
    })
  }
  async function endBefore<T>(act: () => Promise<T>, end: () => Promise<void>): Promise<T> {
    const acting = act()
    acting.catch(() => {})
    await untilWaiting({ database }, 1)
    await end()
    return acting
  }
  return {
    commit,
    rollback,
    commitBefore: (act) => endBefore(act, commit),
    rollbackBefore: (act) => endBefore(act, rollback),
  }
}

export const KEEP_ALL: PruneLimits = { maxPings: 1_000_000, maxFlips: 1_000_000, maxDays: 36_500, auditMaxDays: 36_500 }

/** The whole walk: how many rows of which table went, and the places where it was. */
export async function pruneAll({ context }: Fixture, limits: Partial<PruneLimits>, batch?: PruneBatch) {
  const positions: PrunePosition[] = []
  const deleted: Partial<Record<PrunePosition['table'], number>> = {}
  let position: PrunePosition | null = PRUNE_START
  while (position !== null) {
    positions.push(position)
    const pruned = await pruneHistory(context, { ...KEEP_ALL, ...limits }, position, batch)
    if (pruned === null || positions.length > 1_000) throw new Error('the walk does not end')
    if (pruned.deleted > 0) deleted[position.table] = (deleted[position.table] ?? 0) + pruned.deleted
    position = pruned.next
  }
  return { deleted, positions }
}
