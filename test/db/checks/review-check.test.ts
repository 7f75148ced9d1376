/** What the page of a check reads: which rows, how much of them, and of whose check. */

import { describe, expect, it } from 'vitest'
import { listPingEnds, TEXT_END_BYTES } from '../../../src/checks/find-history.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { type Kept, reviewCheck } from '../../../src/checks/review-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { Database, Statement } from '../../../src/store/postgres/database.ts'
import { DAY, HOUR, MINUTE } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addPingRow, NOW, ping, useFixture } from './fixture.ts'

const fixture = useFixture()
const KEPT: Kept = { days: 90, flips: 1_000 }
const check = useEach(() => addCheck(fixture, fixture.tenant))
const review = (id: string, kept: Kept | null = KEPT) => reviewCheck(fixture.context, fixture.tenant, id, kept)
/** A ping at NOW + `afterMs`; the clock follows. */
async function pingAt(check: CheckRecord, afterMs: number, type: Parameters<typeof ping>[2], given = {}) {
  fixture.clock.time = NOW + afterMs
  await fixture.database.transaction((tx) => ping(tx, check, type, NOW + afterMs, given))
}

async function addGap(fromMs: number, toMs: number, isSpooled: boolean | null = false) {
  await fixture.database.query(
    'insert into gaps (started_at, ended_at, spooled) values (to_timestamp($1 / 1000.0), to_timestamp($2 / 1000.0), $3)',
    [NOW + fromMs, NOW + toMs, isSpooled],
  )
}

describe('a review', () => {
  it('of a new check says that nothing is known', async () => {
    const found = await review(check.id)
    expect(found).toMatchObject({ pings: [], cause: null, lastText: null, runs: [], durations: null })
    expect(found.flips).toMatchObject([{ reason: 'created' }])
    expect(found.uptimes.map(({ days, share, since }) => [days, share, since])).toEqual([
      [7, null, null],
      [30, null, null],
      [90, null, null],
    ])
  })

  it('has runs, their durations, the uptime without our gaps, and the cause of the status', async () => {
    await pingAt(check, 0, 'start')
    await pingAt(check, MINUTE, 'success')
    await pingAt(check, HOUR, 'start')
    await pingAt(check, HOUR + 3 * MINUTE, 'warn')
    await pingAt(check, HOUR + 4 * MINUTE, 'success', { body: Buffer.from('all is well') })
    await addGap(2 * MINUTE, 12 * MINUTE)
    await pingAt(check, HOUR + 11 * MINUTE, 'fail')
    await pingAt(check, HOUR + 21 * MINUTE, 'start')
    const found = await review(check.id)
    expect(found.runs.map(({ outcome, durationMs }) => [outcome, durationMs])).toEqual([
      ['running', null],
      ['fail', null],
      ['success', null],
      ['warn', 3 * MINUTE],
      ['success', MINUTE],
    ])
    expect(found.durations).toEqual({ count: 2, medianMs: 2 * MINUTE, p95Ms: 3 * MINUTE, longestMs: 3 * MINUTE })
    expect(found.cause).toMatchObject({ type: 'fail', createdAt: NOW + HOUR + 11 * MINUTE })
    // A miss that was only counted is no cause.
    await fixture.database.query(
      `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
        select 'ffffffff-ffff-7fff-bfff-ffffffffffff', key, now(), now(), 2, 2, 'missed' from checks where id = $1`,
      [check.id],
    )
    expect((await review(check.id)).cause).toEqual(found.cause)
    expect(found.lastText).toMatchObject({ ping: { type: 'success' }, text: { size: 11, isTruncated: false } })
    expect(found.uptimes[0]).toMatchObject({
      days: 7,
      upMs: HOUR,
      downMs: 10 * MINUTE,
      downs: 1,
      gapMs: 10 * MINUTE,
      since: NOW + MINUTE,
    })
    expect(found.spans.at(-1)).toMatchObject({ status: 'down', to: found.now })
  })

  it('knows the status before the oldest flip as long as no flip was pruned', async () => {
    await pingAt(check, HOUR, 'success')
    await pingAt(check, 100 * DAY, 'fail')
    await fixture.database.query(`delete from flips where reason <> 'failed'`)
    fixture.clock.time += DAY
    expect((await review(check.id)).uptimes[1]).toMatchObject({ upMs: 29 * DAY, downMs: DAY })
    expect((await review(check.id, { days: 10, flips: 1_000 })).uptimes[1]).toMatchObject({ upMs: 9 * DAY })
    expect((await review(check.id, { days: 90, flips: 1 })).uptimes[1]).toMatchObject({ upMs: 0, downMs: DAY })
    expect((await review(check.id, null)).uptimes[1]).toMatchObject({ upMs: 0, downMs: DAY })
  })

  it('reads a bounded part of a large history', async () => {
    const body = Buffer.alloc(10_240, 'x')
    for (let index = 0; index < 52; index += 1) await addPingRow(fixture, check.key, NOW + index, { body })
    await fixture.database.query(
      `insert into pings (id, check_key, type, source, created_at)
        select gen_random_uuid(), $1, 3, 0, now() from generate_series(1, 1500)`,
      [check.key],
    )
    await fixture.database.query(
      `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
        select gen_random_uuid(), $1, now(), now(), 1, 2, 'failed' from generate_series(1, 1500)`,
      [check.key],
    )
    const found = await reviewCheck(fixture.context, fixture.tenant, check.id, KEPT)
    expect(found.pings).toHaveLength(50)
    expect([found.hasOlderPings, found.hasOlderFlips, found.flips.length]).toEqual([true, true, 1_000])
  })

  it('counts the time of a gap whose pings were stored on disk, once that is known', async () => {
    await pingAt(check, 0, 'success')
    await addGap(2 * MINUTE, 4 * MINUTE, true)
    await addGap(6 * MINUTE, 7 * MINUTE, false)
    await addGap(10 * MINUTE, 15 * MINUTE, null)
    fixture.clock.time = NOW + 20 * MINUTE
    const { uptimes } = await review(check.id)
    expect(uptimes[0]).toMatchObject({ share: 1, gapMs: 6 * MINUTE, upMs: 14 * MINUTE })
  })

  it('counts no time before the oldest gap that it reads', async () => {
    fixture.clock.time = NOW - 80 * DAY
    const old = await addCheck(fixture, fixture.tenant)
    await pingAt(old, 1 - 80 * DAY, 'success')
    fixture.clock.time = NOW
    await fixture.database.query(
      `insert into gaps (started_at, ended_at) select t, t + interval '6 s'
        from generate_series(to_timestamp($1 / 1000.0) - interval '80 days', to_timestamp($1 / 1000.0), interval '1 hour') t`,
      [NOW],
    )
    const [, month, all] = (await review(old.id)).uptimes
    expect(month).toMatchObject({ since: NOW - 30 * DAY, gapMs: 720 * 6_000 })
    expect(all).toMatchObject({ since: NOW - 999 * HOUR + 6_000, gapMs: 998 * 6_000 })
  })

  it('takes a run whose start came after the check was read as running', async () => {
    let isFirst = true
    const database: Database = {
      ...fixture.database,
      async query<Row>(statement: string | Statement, values?: readonly unknown[]) {
        const found = await fixture.database.query<Row>(statement, values)
        if (isFirst) await pingAt(check, 5, 'start')
        isFirst = false
        return found
      },
    }
    const found = await reviewCheck({ ...fixture.context, database }, fixture.tenant, check.id, KEPT)
    expect(isFirst).toBe(false)
    expect(found.runs).toMatchObject([{ outcome: 'running' }])
  })

  it('of a paused check has no open run', async () => {
    await pingAt(check, 0, 'start')
    fixture.clock.time = NOW + 10
    await pauseCheck(fixture.context, fixture.tenant, check.id)
    fixture.clock.time = NOW + 20
    expect((await review(check.id)).runs).toMatchObject([{ outcome: 'unfinished' }])
  })
})

describe('pings with the ends of their texts', () => {
  it('have the last 4 KB, whatever the bytes, and say how much there is', async () => {
    const bodies = [4_096, 4_097, 1, 0].map((size) => Buffer.from(Array.from({ length: size }, (_, at) => at % 256)))
    for (const [index, body] of bodies.entries()) await addPingRow(fixture, check.key, NOW + index, { body })
    await addPingRow(fixture, check.key, NOW + 9)
    const dropped = await addPingRow(fixture, check.key, NOW + 10)
    await fixture.database.query('insert into ping_bodies (check_key, ping_id, is_truncated) values ($1, $2, true)', [
      check.key,
      dropped,
    ])
    const { rows, next } = await listPingEnds(fixture.context, fixture.tenant, check.id, {}, { limit: 10, after: null })
    expect(next).toBeNull()
    expect(rows.map(({ text }) => text && [text.bytes.length, text.size, text.isTruncated])).toEqual([
      [0, 0, true],
      null,
      null,
      [1, 1, false],
      [TEXT_END_BYTES, 4_097, false],
      [TEXT_END_BYTES, 4_096, false],
    ])
    expect(rows[4]!.text!.bytes).toEqual(bodies[1]!.subarray(1))
  })

  it('are found by type, page after page', async () => {
    for (let index = 0; index < 5; index += 1) await addPingRow(fixture, check.key, NOW + index, { type: 'fail' })
    await addPingRow(fixture, check.key, NOW + 9)
    const read = (after: Parameters<typeof listPingEnds>[4]['after'], limit: number) =>
      listPingEnds(fixture.context, fixture.tenant, check.id, { type: 'fail' }, { limit, after })
    const first = await read(null, 3)
    const rest = await read(first.next, 3)
    expect([...first.rows, ...rest.rows].map(({ createdAt }) => createdAt - NOW)).toEqual([4, 3, 2, 1, 0])
    expect(rest.next).toBeNull()
  })
})
