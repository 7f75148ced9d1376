/** Replicas that commit pings, rows that a test holds, and what is stored in the end. */

import pg from 'pg'
import { afterEach, beforeEach, expect } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { createGroupCommitter, type GroupCommit, PING_LIMITS, ROW_LOCK_MS } from '../../../src/checks/ping/commit.ts'
import type { KnownKeys } from '../../../src/checks/ping/known-checks.ts'
import { isDisconnected } from '../../../src/checks/ping/outcomes.ts'
import type { PingFailure, PingOutcome, PingResult } from '../../../src/checks/ping/ping.ts'
import { createPingRecorder, type Ping, type PingRecorder } from '../../../src/checks/ping/record.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { createDatabase, type Database, type Session } from '../../../src/store/postgres/database.ts'
import { addCheck, type CheckInput } from '../../support/check.ts'
import { createTestDatabase } from '../../support/database.ts'
import { listFlips, listPings } from '../../support/lists.ts'
import { eventTypesOf } from '../../support/state.ts'
import { addTenant, type TestTenant } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'

export const clock = { now: systemClock.now }

/** A process of its own: its connections, and the checks that it knows. */
export interface Replica {
  readonly name: string
  readonly database: Database
  readonly recorder: PingRecorder
  readonly errors: unknown[]
  /** Pings of the transactions that committed. */
  readonly groups: number[]
  record(check: Pick<CheckRecord, 'publicId'>, overrides?: Partial<Ping>): Promise<PingResult>
  /** Commits the pings as one group, on a session that `wrap` may change. */
  commit(pings: readonly Ping[], wrap?: (session: Session) => Session, wait?: GroupCommit['wait']): Promise<Committed>
}

export interface Committed {
  /** The kind of a failure in place of the failure. */
  readonly outcomes: (Exclude<PingResult, 'unavailable'> | PingFailure['kind'])[]
  /** What was done, in order. */
  readonly tries: ('look-up' | 'plain' | 'locked')[]
}

export const PLAIN: Committed = { outcomes: ['stored'], tries: ['plain'] }
export const LOCKED: Committed = { outcomes: ['stored'], tries: ['locked'] }
/** The plain statement has left it alone. */
export const LEFT: Committed = { outcomes: ['stored'], tries: ['plain', 'locked'] }

export function pingOf({ publicId }: Pick<CheckRecord, 'publicId'>, overrides: Partial<Ping> = {}): Ping {
  const standard = { type: 'success', exitCode: 0, durationMs: null, runId: null, body: null } as const
  return { publicId, ...standard, at: clock.now(), ...overrides }
}

export function createReplica(url: string, name: string, known?: KnownKeys): Replica {
  // As the service makes it: with plans that take rows in the order of the keys, however few there are.
  const settings = { genericPlans: true, looksUp: true, lockMs: ROW_LOCK_MS }
  const database = createDatabase({ url, name, connections: 2, ...settings })
  const groups: number[] = []
  const errors: unknown[] = []
  const onGroup = (size: number) => groups.push(size)
  const options = { database, now: clock.now, onGroup, ...(known === undefined ? {} : { known }) }
  const commitGroup = createGroupCommitter(options)
  const recorder = createPingRecorder({ ...options, onError: (error) => errors.push(error) })
  return {
    name,
    database,
    recorder,
    errors,
    groups,
    record: (check, overrides) => recorder.record(pingOf(check, overrides)),
    async commit(pings, wrap = (session) => session, wait = 'wait') {
      const tries: Committed['tries'] = []
      let outcomes: readonly PingOutcome[] = []
      const committing = database.session(async (session) => {
        const since = clock.now()
        outcomes = await commitGroup(
          watch(wrap(session), tries),
          pings.map((ping) => ({ ping, since })),
          { limits: PING_LIMITS, wait },
        )
        // So that the pool closes it.
        const broken = outcomes.find(isDisconnected)
        if (broken !== undefined) throw broken.error
      })
      await committing.catch(() => {})
      return {
        tries,
        outcomes: outcomes.map((outcome) => {
          if (typeof outcome === 'string') return outcome
          if (outcome.kind === 'rejected') errors.push(outcome.error)
          return outcome.kind
        }),
      }
    },
  }
}

/** The same session. Notes in `tries` what it is used for. */
function watch(session: Session, tries: Committed['tries']): Session {
  return {
    within: (budgetMs, work) =>
      session.within(budgetMs, (db) =>
        work({
          ...db,
          queryColumns(statement) {
            tries.push(statement.name === 'find_keys' ? 'look-up' : 'plain')
            return db.queryColumns(statement)
          },
        }),
      ),
    groupTransaction(budgetMs, read, write) {
      tries.push('locked')
      return session.groupTransaction(budgetMs, read, write)
    },
  }
}

/** A fixture for all tests of a file, emptied before each of them; what a test has left is ended after it. */
export function usePings(): PingFixture {
  const t = use(createPingFixture)
  beforeEach(() => t.clear())
  afterEach(() => t.cleanUp())
  return t
}

export async function createPingFixture() {
  const test = await createTestDatabase()
  let tenant: TestTenant
  let replicas: Replica[] = []
  let holders: pg.Client[] = []
  const context = { database: test.database, clock }
  const all = { limit: 1_000, after: null }

  const historyOf = async ({ id }: CheckRecord) => (await listPings(context, tenant, id, all)).rows

  /** One after the other, as many at once wait long for a connection when the machine is busy. */
  async function makeChecks(count: number, input?: CheckInput) {
    const checks: CheckRecord[] = []
    while (checks.length < count) checks.push(await addCheck(test, tenant, input))
    return checks as [CheckRecord, CheckRecord, ...CheckRecord[]]
  }

  async function hold(text: string, values: unknown[]) {
    const holder = new pg.Client({ connectionString: test.url })
    holder.on('error', () => {})
    holders.push(holder)
    await holder.connect()
    await holder.query('begin')
    await holder.query(text, values)
    return { end: (how: 'commit' | 'rollback' = 'rollback') => holder.query(how) }
  }

  return {
    ...test,
    context,
    tenant: () => tenant,
    async clear() {
      await test.clear()
      tenant = await addTenant(test)
    },
    /** Ends what a test has left. */
    async cleanUp() {
      for (const holder of holders) await holder.end()
      for (const { recorder, database } of replicas) {
        await recorder.stop()
        await database.close()
      }
      replicas = []
      holders = []
    },
    addReplica(name: string, known?: KnownKeys): Replica {
      const replica = createReplica(test.url, name, known)
      replicas.push(replica)
      return replica
    },
    /** `at`: when it was made. */
    addCheck: (input?: CheckInput, at = clock.now()) => addCheck({ ...test, clock: { now: () => at } }, tenant, input),
    addChecks: makeChecks,
    /** Up, as the replica knows. In the order of their keys. */
    async addUp(replica: Replica, count: number, input?: CheckInput) {
      const checks = await makeChecks(count, input)
      const { outcomes } = await replica.commit(checks.map((check) => pingOf(check)))
      expect(new Set(outcomes)).toEqual(new Set(['stored']))
      replica.groups.length = 0
      return checks as [CheckRecord, CheckRecord, CheckRecord, ...CheckRecord[]]
    },

    historyOf,
    stateOf: async ({ id }: CheckRecord) => (await getCheck(context, tenant, id)).state,
    /** Newest first, as for the rest. */
    flipsOf: async ({ id }: CheckRecord) => (await listFlips(context, tenant, id, all)).rows,
    reasonsOf: async ({ id }: CheckRecord) =>
      (await listFlips(context, tenant, id, all)).rows.map(({ reason }) => reason),
    textsOf: async (check: CheckRecord) => (await historyOf(check)).map(({ body }) => body?.toString() ?? null),
    eventsOf: (check: CheckRecord) => eventTypesOf(test, check),
    /** No two entries of one moment. */
    async expectOrdered(check: CheckRecord, count: number): Promise<void> {
      const times = (await historyOf(check)).map((ping) => ping.createdAt)
      expect(times).toHaveLength(count)
      expect(times).toEqual([...new Set(times)].sort((a, b) => b - a))
    },
    /** As if the service had run all the while: what a test does before may take longer than a gap, five seconds, on a busy machine. */
    stayUp: () => test.database.query('update service_beat set beat_at = clock_timestamp()'),

    /** A transaction that holds what the statement did until it is ended. */
    hold,
    holdRow: ({ key }: CheckRecord) => hold('select from check_states where check_key = $1 for update', [key]),
    /** Resolves with the process id of the replica's connection that waits for a lock, once there is one. */
    untilBlocked: ({ name }: Replica): Promise<number> =>
      eventually(`a statement of ${name} waits for a lock`, async () => {
        const { rows } = await test.database.query<{ pid: number }>(
          `select pid from pg_stat_activity
            where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`,
          [`heartbeat-operator ${name}`],
        )
        return rows.length === 1 && rows[0]!.pid
      }),
    cut: (pid: number) => test.database.query('select pg_terminate_backend($1)', [pid]),
  }
}

export type PingFixture = Awaited<ReturnType<typeof createPingFixture>>
