/** Many checks miss at once: the evaluator as the service runs it, on real rows. */

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { BATCH, createEvaluator } from '../../../src/checks/deadlines/evaluator.ts'
import { oldestOverdueSeconds } from '../../../src/store/checks/states.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createTestDatabase } from '../../support/database.ts'
import { addTenant } from '../../support/tenant.ts'
import { use, useEach } from '../../support/use.ts'

let database: Database
const test = use(createTestDatabase)
beforeAll(async () => {
  database = createDatabase({ url: test.url, name: 'pings', connections: 4, genericPlans: true, looksUp: true })
})
afterAll(async () => {
  await database.close()
})
beforeEach(() => test.clear())
const tenant = useEach(() => addTenant(test))

/** Checks whose deadlines passed from 100 to 50 seconds ago, in an order of their own; the first key has none special. */
async function seedOverdue(count: number): Promise<void> {
  await test.database.query(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, now() - interval '1 hour' from generate_series(1, $2::int) n
        returning key),
      timed as (select key, now() - interval '50 seconds' - (row_number() over (order by hashint8(key)) / $2::float8) * interval '50 seconds' as due from made)
      insert into check_states (check_key, period_seconds, grace_seconds, status, since, last_ping_at, expected_at, due_at, wake_at, stamped_at)
      select key, 60, 0, 1, now() - interval '1 hour', due - interval '1 minute', due, due, due, due - interval '1 minute' from timed`,
    [tenant.project, count],
  )
  await test.database.query('analyze check_states')
}

/** A clock on which no search takes long, and no rest takes time. */
function createRestlessClock() {
  const rests: number[] = []
  const sleep = async (ms: number) => {
    rests.push(ms)
  }
  return { now: () => 0, sleep, rests }
}

function createReplica({ arePings = false } = {}) {
  const clock = createRestlessClock()
  const batches: number[] = []
  let flips = 0
  const evaluate = createEvaluator({
    database,
    recorder: {
      isSpooling: () => false,
      oldestWaitMs: () => 0,
      lockedIds: () => [],
      yieldToPings: async () => {},
      arePings: () => arePings,
    },
    clock,
    onFlip: () => {
      flips += 1
    },
    onFailed: (error) => {
      throw error
    },
  })
  return {
    rests: clock.rests,
    /** The flips of each run. */
    batches,
    /** One run. False when nothing is left to do at once. */
    async run(): Promise<boolean> {
      await test.database.query('update service_beat set beat_at = clock_timestamp()')
      const before = flips
      const isMore = (await evaluate(new AbortController().signal)) === 'again'
      batches.push(flips - before)
      return isMore
    },
  }
}

/** The first and the last deadline of each transaction's flips, in the order of the transactions. */
async function listBatches(): Promise<{ first: number; last: number }[]> {
  const { rows } = await test.database.query<{ first: number; last: number }>(
    `select min(at) as first, max(at) as last from flips where reason = 'missed' group by xmin order by xmin::text::int8`,
  )
  return rows
}

it.each([
  ['without pings batches follow each other', false],
  ['beside pings the evaluator rests after each full batch', true],
])('%s, and the oldest deadline comes first', async (_, arePings) => {
  await seedOverdue(3 * BATCH + 1)
  const replica = createReplica({ arePings })
  while (await replica.run());
  expect(replica.batches).toEqual([BATCH, BATCH, BATCH, 1])
  expect(replica.rests).toHaveLength(arePings ? 3 : 0)
  const batches = await listBatches()
  expect(batches).toHaveLength(replica.batches.length)
  for (const [index, { first }] of batches.entries())
    if (index > 0) expect(first).toBeGreaterThan(batches[index - 1]!.last)
})

it('two replicas on the same flood write each flip, its event and its delivery once', async () => {
  const CHECKS = 1_000
  await test.database.query(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values (gen_random_uuid(), $1, 'webhook', 'Hook', '', '', array['check.down'], now())`,
    [tenant.organizationId],
  )
  await seedOverdue(CHECKS)
  const replicas = [createReplica(), createReplica()]
  const count = async () =>
    (await test.database.query<{ count: number }>('select count(*) from check_states where status = 2')).rows[0]!.count
  await Promise.all(
    replicas.map(async (replica) => {
      // A replica that finds all rows locked asks again.
      while ((await replica.run()) || (await count()) < CHECKS);
    }),
  )
  const flips = replicas.map(({ batches }) => batches.reduce((sum, size) => sum + size, 0))
  expect(flips[0]! + flips[1]!).toBe(CHECKS)
  expect(Math.min(...flips)).toBeGreaterThan(0)
  const { rows } = await test.database.query<{ table: string; count: number; checks: number }>(
    `select 'flips' as table, count(*), count(distinct check_key) as checks from flips
      union all select 'events', count(*), count(distinct check_key) from events
      union all select 'deliveries', count(*), count(distinct check_key) from deliveries`,
  )
  const once = { count: CHECKS, checks: CHECKS }
  expect(rows).toEqual(['flips', 'events', 'deliveries'].map((table) => ({ table, ...once })))
})

it('the age of the oldest overdue deadline is that of the next one to evaluate, also while its row is locked', async () => {
  await seedOverdue(500)
  const replica = createReplica()
  const oldest = () => oldestOverdueSeconds(test.database)
  // By the database, which has the rows: of those that are not down.
  const expected = async () => {
    const text = `select extract(epoch from now() - min(due_at))::float8 as seconds from check_states where status = 1`
    return (await test.database.query<{ seconds: number | null }>(text)).rows[0]!.seconds ?? 0
  }
  expect(await oldest()).toBeCloseTo(100, -1)
  const seen: number[] = []
  for (let run = 0; run < 3; run += 1) {
    await replica.run()
    seen.push(await expected())
    expect(await oldest()).toBeCloseTo(seen.at(-1)!, 0)
  }
  expect(seen.at(-1)).toBeLessThan(seen[0]! - 10)

  const holder = new pg.Client({ connectionString: test.url })
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from check_states where status = 1 order by wake_at limit 100 for update')
  while (await replica.run());
  expect(await expected()).toBeGreaterThan(50)
  expect(await oldest()).toBeCloseTo(await expected(), 0)
  await holder.query('rollback')
  await holder.end()
  while (await replica.run());
  expect(await oldest()).toBe(0)
})
