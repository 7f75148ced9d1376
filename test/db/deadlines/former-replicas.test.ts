import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Change } from '../../../src/checks/change.ts'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import type { Instant } from '../../../src/domain/check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { type CheckRecord, saveSpec } from '../../../src/store/checks/checks.ts'
import { WITHOUT_SPOOL } from '../../support/beats.ts'
import { changeFormerly, findDueFormerly } from '../../support/former-release.ts'
import { createPingFixture, type PingFixture, type Replica } from '../pings/fixture.ts'

/**
 * Replicas of the release before evaluate whatever has a `wake_at`. They know neither checks that follow a source, nor up to when the Jobs of these
 * are recorded, so they would call a job missed that has run.
 */

let t: PingFixture
let replica: Replica

beforeAll(async () => {
  t = await createPingFixture()
  replica = t.addReplica('pings')
})
afterAll(async () => {
  await t.cleanUp()
  await t.close()
})
beforeEach(async () => {
  await t.clear()
  const recorder = { isWell: () => true, recovered: () => {} }
  await keepBeat({ ...WITHOUT_SPOOL, database: replica.database, recorder, onGap: () => {} })
})

const SECOND_MS = 1_000
const AGO_MS = 100 * SECOND_MS
const SPEC = { periodSeconds: 10, graceSeconds: 0, maxRuntimeSeconds: 20 }
/** A run each ten seconds; it was made a hundred seconds ago, and overdue ten seconds later. */
const addDue = (jobArea: string | null) =>
  t.addCheck({ armed: true, spec: { ...SPEC, jobArea } }, systemClock.now() - AGO_MS)

async function wakesOf({ key }: Pick<CheckRecord, 'key'>) {
  const { rows } = await t.database.query<{ wakeAt: Instant | null; jobWakeAt: Instant | null }>(
    'select wake_at as "wakeAt", job_wake_at as "jobWakeAt" from check_states where check_key = $1',
    [key],
  )
  return rows[0]!
}

async function expire() {
  const options = { database: replica.database, now: systemClock.now }
  return (await expireOverdue(options, 100)).flips.map(({ reason }) => reason)
}

const see = (until: number) =>
  t.database.query(
    `insert into seen_areas (area, cluster, seen_at) values ('c1', 'c1', to_timestamp($1::float8 / 1000))
      on conflict (area) do update set seen_at = excluded.seen_at`,
    [until],
  )

type Given = readonly [event: Change['event'], 'earlier' | 'first', agoMs: number]
const RUN = { runId: null, durationMs: null }
const PING: Given = [{ kind: 'success', ...RUN }, 'earlier', 60 * SECOND_MS]
const START: Given = [{ kind: 'start', runId: null }, 'earlier', 95 * SECOND_MS]
const FAIL: Given = [{ kind: 'fail', ...RUN }, 'earlier', 70 * SECOND_MS]
const PAUSE: Given = [{ kind: 'pause' }, 'first', 70 * SECOND_MS]
const RESUME: Given = [{ kind: 'resume' }, 'first', 60 * SECOND_MS]

async function change({ key }: CheckRecord, given: readonly Given[]): Promise<void> {
  for (const [event, waking, agoMs] of given)
    await changeFormerly(t.database, { key, event, at: systemClock.now() - agoMs }, waking)
}

describe('a replica of the release before', () => {
  it('finds the deadline of a check that pings report, and not that of one that follows a source', async () => {
    const followed = await addDue('c1')
    const pinged = await addDue(null)
    expect(await findDueFormerly(t.database)).toEqual([pinged.key])
    const due = (await t.stateOf(followed)).dueAt
    expect(await wakesOf(followed)).toEqual({ wakeAt: null, jobWakeAt: due })
    expect(await wakesOf(pinged)).toMatchObject({ jobWakeAt: null })
  })

  it.each<[string, readonly Given[], string]>([
    ['stored a ping of its container', [PING], 'missed'],
    ['stored the start of a run by its container', [START], 'overran'],
    ['stored a failure, and a success after it', [FAIL, PING], 'missed'],
    ['paused and resumed it', [PAUSE, RESUME], 'missed'],
  ])('does not find it after it has %s, while this release finds it in time', async (_, given, reason) => {
    const followed = await addDue('c1')
    // As if this release had paused it: nothing is awaited.
    await t.database.query('update check_states set job_wake_at = null')
    await change(followed, given)
    const state = await t.stateOf(followed)
    const deadline = Math.min(...[state.dueAt, state.runs[0]?.deadlineAt].filter((at) => at != null))
    expect(deadline).toBeLessThan(systemClock.now())
    expect(await findDueFormerly(t.database)).toEqual([])
    const { wakeAt, jobWakeAt } = await wakesOf(followed)
    expect(wakeAt).toBeNull()
    expect(jobWakeAt).toBeLessThanOrEqual(deadline)

    await see(deadline - 1)
    expect(await expire()).toEqual([])
    await see(deadline)
    expect(await expire()).toEqual([reason])
  })

  it('does not move its evaluation to a later time', async () => {
    const followed = await addDue('c1')
    const before = await wakesOf(followed)
    await change(followed, [PING])
    expect(await wakesOf(followed)).toEqual(before)
  })

  it('leaves a check that it has paused as one of which nothing is awaited', async () => {
    const followed = await addDue('c1')
    await change(followed, [PAUSE])
    await see(systemClock.now())
    expect(await expire()).toEqual([])
    expect(await wakesOf(followed)).toEqual({ wakeAt: null, jobWakeAt: null })
  })
})

it('The evaluation of a check moves along when it begins or ceases to follow a source', async () => {
  const check = await addDue(null)
  const { wakeAt } = await wakesOf(check)
  expect(wakeAt).not.toBeNull()
  await saveSpec(t.database, check.key, { ...check.spec, jobArea: 'c1' })
  expect(await wakesOf(check)).toEqual({ wakeAt: null, jobWakeAt: wakeAt })
  await saveSpec(t.database, check.key, { ...check.spec, jobArea: 'c1/payments' })
  expect(await wakesOf(check)).toEqual({ wakeAt: null, jobWakeAt: wakeAt })
  await saveSpec(t.database, check.key, check.spec)
  expect(await wakesOf(check)).toEqual({ wakeAt, jobWakeAt: null })
})
