/** The evaluator beside plain pings: what it changes is found, and what it postpones stays plain. */

import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createEvaluator } from '../../../src/checks/deadlines/evaluator.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import type { CommitGroup } from '../../../src/checks/ping/commit.ts'
import { createPingRecorder } from '../../../src/checks/ping/record.ts'
import { PING_TYPES } from '../../../src/domain/check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { beat } from '../../support/beats.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createRandom } from '../../support/random.ts'
import { replayAll } from '../../support/replay.ts'
import { useEach } from '../../support/use.ts'
import { clock, LEFT, PLAIN, pingOf, type Replica, usePings } from '../pings/fixture.ts'

const SEED = Number(process.env.TEST_SEED ?? 20_261_122)
const TEN_SECONDS = { spec: { periodSeconds: 10, graceSeconds: 0 } }

const t = usePings()
const one = useEach(() => t.addReplica('one'))
const two = useEach(() => t.addReplica('two'))

/** Evaluates until nothing is overdue. Returns the reasons of the flips. No search counts as a stall, however long it takes. */
async function expire({ database }: Replica): Promise<string[]> {
  await beat({ database })
  const reasons: string[] = []
  for (;;) {
    const { flips, failed, isFull } = await expireOverdue({ database, now: () => 0 }, 500)
    expect(failed).toEqual([])
    reasons.push(...flips.map(({ reason }) => reason))
    if (!isFull) return reasons
  }
}

const commit = (check: CheckRecord) => one.commit([pingOf(check)])

/** Of ten seconds, pinged for the first time 15 seconds ago. */
async function addOverdue(): Promise<CheckRecord> {
  const at = clock.now() - 15_000
  const check = await t.addCheck(TEN_SECONDS, at)
  await one.commit([pingOf(check, { at })])
  return check
}

it('a check that is postponed stays plain', async () => {
  const check = await addOverdue()
  expect(await commit(check)).toEqual(PLAIN)
  const wakeAt = async () =>
    (await t.database.query<{ at: number }>('select wake_at as at from check_states where check_key = $1', [check.key]))
      .rows[0]!.at
  const before = await wakeAt()
  expect(await expire(two)).toEqual([])
  expect(await wakeAt()).toBeGreaterThan(before)
  expect(await commit(check)).toEqual(PLAIN)
  await t.expectOrdered(check, 3)
})

it.each([
  ['its own process', () => one],
  ['another process', () => two],
])('a check that %s takes down is taken up once by the next ping', async (_, ofWhom) => {
  const check = await addOverdue()
  expect(await expire(ofWhom())).toEqual(['missed'])
  expect(await commit(check)).toEqual(LEFT)
  expect((await t.stateOf(check)).status).toBe('up')
  expect(await t.reasonsOf(check)).toEqual(['recovered', 'missed', 'first_success', 'created'])
  expect(await t.eventsOf(check)).toEqual(['check.down', 'check.up'])
  await t.expectOrdered(check, 2)
})

it('a check whose ping waits for its row in memory is not judged before the ping is, and others are', async () => {
  const [check, other] = [await addOverdue(), await addOverdue()]
  const [again, freed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let tries = 0
  const commitGroup: CommitGroup = async (_session, group) => {
    tries += 1
    if (tries === 1) return group.map(() => ({ kind: 'locked elsewhere', error: null }))
    again.resolve()
    await freed.promise
    return group.map(() => 'stored')
  }
  const options = { database: one.database, now: clock.now, onGroup: () => {}, onError: () => {} }
  const recorder = createPingRecorder(options, commitGroup)
  const recorded = recorder.record(pingOf(check))
  const reasons: string[] = []
  const onFlip = (reason: string) => reasons.push(reason)
  const fail = (error: unknown) => {
    throw error
  }
  const evaluate = createEvaluator({
    database: two.database,
    recorder,
    clock: createManualClock(),
    onFlip,
    onFailed: fail,
  })
  await again.promise
  try {
    await t.stayUp()
    await evaluate(AbortSignal.abort())
    expect(reasons).toEqual(['missed'])
    expect([(await t.stateOf(check)).status, (await t.stateOf(other)).status]).toEqual(['up', 'down'])
  } finally {
    freed.resolve()
  }
  expect(await recorded).toBe('stored')
  // Nothing was stored in truth.
  await t.stayUp()
  await evaluate(AbortSignal.abort())
  expect(reasons).toEqual(['missed', 'missed'])
  await recorder.stop()
})

it(`the history tells the states, after two replicas, the evaluator and a person at once (seed ${SEED})`, async () => {
  const random = createRandom(SEED)
  const checks: CheckRecord[] = []
  for (const input of [TEN_SECONDS, {}, {}, { spec: { maxRuntimeSeconds: 3_600 } }, TEN_SECONDS]) {
    const at = clock.now() - 15_000
    checks.push(await t.addCheck(input, at))
  }
  // What was up a while ago is overdue at once.
  for (const check of checks)
    expect(await one.record(check, { exitCode: 1_000, at: clock.now() - 14_000 })).toBe('stored')

  let flips = (await expire(one)).length
  let isOver = false
  const untilOver = async (work: (round: number) => Promise<unknown>) => {
    let round = 0
    while (!isOver) await work(round++)
    return round
  }
  const evaluating = untilOver(async () => {
    // All are to be evaluated: each is postponed again.
    for (const { key } of checks)
      await t.database.query('update check_states set wake_at = now() where check_key = $1 and wake_at > now()', [key])
    flips += (await expire(one)).length
  })
  const pausing = untilOver((round) =>
    (round % 2 === 0 ? pauseCheck : resumeCheck)(t.context, t.tenant(), checks[1]!.id),
  )
  const pinging = [one, two].map(async (replica, part) => {
    for (let index = 0; index < 300; ) {
      const group = []
      for (let left = random.int(1, 5); left > 0 && index < 300; left -= 1, index += 1) {
        // Each has its own exit code: the history tells which one is missing.
        const exitCode = part * 300 + index
        group.push(
          replica.record(random.pick(checks), {
            type: random.chance(0.7) ? 'success' : random.pick(PING_TYPES),
            exitCode,
            body: random.chance(0.3) ? Buffer.from(`ping ${exitCode}`) : null,
            runId: random.chance(0.05) ? randomUUID() : null,
          }),
        )
      }
      expect(new Set(await Promise.all(group))).toEqual(new Set(['stored']))
    }
  })
  await Promise.all(pinging).finally(() => {
    isOver = true
  })
  const [evaluated, paused] = await Promise.all([evaluating, pausing])

  const { rows } = await t.database.query<{ code: number; body: Buffer | null }>(
    `select exit_code as code, body from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
      where exit_code < 1000 order by exit_code`,
  )
  expect(rows.map(({ code }) => code)).toEqual(Array.from({ length: 600 }, (_, code) => code))
  for (const { code, body } of rows) if (body !== null) expect(body.toString()).toBe(`ping ${code}`)
  expect((await replayAll(t.database, { isGiven: () => false })).problems).toEqual([])
  // It proves something only if all of it happened.
  expect(flips).toBeGreaterThan(0)
  expect(evaluated).toBeGreaterThan(2)
  expect(paused).toBeGreaterThan(2)
})
