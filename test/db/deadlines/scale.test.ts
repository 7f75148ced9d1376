import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createLoop, type Loop, type LoopOptions } from '../../../src/runtime/loop.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { WITHOUT_SPOOL } from '../../support/beats.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { addTenant, type TestTenant } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'

/** A hundred thousand checks wait for their jobs; the few whose deadline passes now are found at once, and once. */

const CHECKS = 100_000
const DUE = 200
/** As app.ts runs it. */
const EXPIRE_MS = 250
const BEAT_MS = 1_000
const BATCH = 500

let test: TestDatabase
let tenant: TestTenant
const databases: Database[] = []
const loops: Loop[] = []

beforeAll(async () => {
  test = await createTestDatabase()
  tenant = await addTenant(test)
  // In parts, each within the time that our connections give a statement.
  for (let first = 1; first <= CHECKS; first += 10_000) await seedArmed(first, first + 9_999)
  await test.database.query('analyze check_states')
}, 120_000)
afterAll(async () => {
  await Promise.all(loops.map((loop) => loop.stop()))
  await Promise.all(databases.map((database) => database.close()))
  await test.close()
})

/** Checks that were up an hour ago and are due at some time of the next six hours, though in none of the next minutes. */
async function seedArmed(first: number, last: number): Promise<void> {
  await test.database.query(
    `with made as (
      insert into checks (id, public_id, project_id, name, slug, created_at)
      select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, now() from generate_series($2::int, $3::int) n
      returning key),
    timed as (select key, now() + interval '10 minutes' + random() * interval '6 hours' as due from made)
    insert into check_states (check_key, period_seconds, grace_seconds, status, since, last_ping_at, expected_at, due_at, wake_at, stamped_at)
    select key, 3600, 0, 1, now() - interval '1 hour', now() - interval '1 hour', due, due, due, now() - interval '1 hour' from timed`,
    [tenant.project, first, last],
  )
}

function startReplica(): void {
  const database = createDatabase({ url: test.url, name: 'pings', connections: 3, genericPlans: true, looksUp: true })
  databases.push(database)
  const fail = (error: unknown) => {
    throw error
  }
  const run = (everyMs: number, work: LoopOptions['run']) => {
    const loop = createLoop({ everyMs, run: work, onError: fail, clock: systemClock })
    loop.start()
    loops.push(loop)
  }
  const recorder = { isWell: () => true, recovered: () => {} }
  run(BEAT_MS, async () => {
    await keepBeat({ ...WITHOUT_SPOOL, database, recorder, onGap: () => {} })
    return 'done'
  })
  const options = { database, now: systemClock.now }
  run(EXPIRE_MS, async () => {
    const { failed, isFull } = await expireOverdue(options, BATCH)
    expect(failed).toEqual([])
    return isFull ? 'again' : 'done'
  })
}

it(`finds ${DUE} deadlines that pass among ${CHECKS} checks within a second`, async () => {
  startReplica()
  startReplica()
  await test.database.query(
    `with chosen as (select check_key, clock_timestamp() + random() * interval '2 seconds' as due from (select check_key from check_states order by random() limit $1) any_of_them)
    update check_states s set expected_at = due, due_at = due, wake_at = due from chosen where s.check_key = chosen.check_key`,
    [DUE],
  )
  await eventually(
    'every overdue check has flipped',
    async () => (await test.database.query<{ count: number }>('select count(*) from flips')).rows[0]!.count >= DUE,
  )
  const { rows } = await test.database.query<{ seconds: number; reason: string }>(
    'select extract(epoch from detected_at - at)::float8 as seconds, reason from flips order by 1',
  )
  expect(rows.map(({ reason }) => reason)).toEqual(Array.from({ length: DUE }, () => 'missed'))
  const at = (share: number) => rows[Math.min(DUE - 1, Math.floor(share * DUE))]!.seconds
  console.log(`found after (seconds): p50 ${at(0.5).toFixed(3)}, p99 ${at(0.99).toFixed(3)}, worst ${at(1).toFixed(3)}`)
  expect(at(0.5)).toBeLessThan(1)
  expect(at(1)).toBeLessThan(3)
  const { rows: left } = await test.database.query<{ down: number; up: number }>(
    'select count(*) filter (where status = 2) as down, count(*) filter (where status = 1) as up from check_states',
  )
  expect(left).toEqual([{ down: DUE, up: CHECKS - DUE }])
})
