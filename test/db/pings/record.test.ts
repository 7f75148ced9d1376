/** What pings store, and what becomes of those that cannot be stored. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { clock, createPingFixture, pingOf, usePings } from './fixture.ts'

const t = usePings()
const one = useEach(() => t.addReplica('one'))
const check = useEach(() => t.addCheck())

const UNKNOWN = { publicId: randomUUID() }

describe('a ping', () => {
  it('is in the history with everything it carried, and moves the state', async () => {
    const body = Buffer.from([0x66, 0x00, 0xff])
    const ping = pingOf(check, { type: 'fail', exitCode: 3, durationMs: 12, runId: randomUUID(), body })
    expect(await one.recorder.record(ping)).toBe('stored')
    const [stored] = await t.historyOf(check)
    expect(stored).toMatchObject({ type: 'fail', exitCode: 3, durationMs: 12, runId: ping.runId, source: 'http' })
    expect(Buffer.compare(stored!.body!, body)).toBe(0)
    expect(Math.abs(stored!.createdAt - ping.at)).toBeLessThan(0.002)
    const lastPingAt = Math.floor(stored!.createdAt)
    expect(await t.stateOf(check)).toMatchObject({ status: 'down', expectedAt: null, dueAt: null, lastPingAt })
    expect((await t.flipsOf(check))[0]).toMatchObject({ reason: 'failed', from: 'new', to: 'down', pingId: stored!.id })
  })

  it('while paused is stored, and changes neither status nor deadline', async () => {
    await pauseCheck(t.context, t.tenant(), check.id)
    expect(await one.record(check, { type: 'fail' })).toBe('stored')
    const { lastPingAt, ...state } = await t.stateOf(check)
    expect(state).toMatchObject({ status: 'paused', dueAt: null })
    expect(lastPingAt).not.toBeNull()
  })

  it('after its check was removed is unknown, though this process knew it', async () => {
    expect(await one.record(check)).toBe('stored')
    await removeCheck(t.context, t.tenant(), check.id)
    expect(await one.record(check)).toBe('unknown')
    expect(await one.record(check)).toBe('unknown')
  })
})

describe('a ping with a run id', () => {
  it('is stored once, whether it is repeated in its group or later', async () => {
    const runId = randomUUID()
    const [start, success] = [pingOf(check, { runId, type: 'start' }), pingOf(check, { runId })]
    const { outcomes } = await one.commit([start, start, success, success])
    expect(outcomes).toEqual(['stored', 'duplicate', 'stored', 'duplicate'])
    const { lastPingAt } = await t.stateOf(check)
    expect(await one.recorder.record(success)).toBe('duplicate')
    expect((await t.stateOf(check)).lastPingAt).toBe(lastPingAt)
    expect((await t.historyOf(check)).map(({ type }) => type)).toEqual(['success', 'start'])
  })

  it('repeats no ping of another check', async () => {
    const runId = randomUUID()
    const pings = (await t.addChecks(2)).map((check) => pingOf(check, { runId, type: 'start' }))
    expect((await one.commit(pings)).outcomes).toEqual(['stored', 'stored'])
  })

  it('that repeats one which is not stored has its result: never 200', async () => {
    const [held, gone] = await t.addChecks(2)
    expect(await one.record(gone)).toBe('stored')
    await removeCheck(t.context, t.tenant(), gone.id)
    const holding = await t.holdRow(held)
    const runId = randomUUID()
    const twice = [held, held, gone, gone].map((check) => pingOf(check, { runId }))
    expect((await one.commit(twice)).outcomes).toEqual(['locked elsewhere', 'locked elsewhere', 'unknown', 'unknown'])
    await holding.end()
  })
})

describe('the pings of one group', () => {
  it('are applied in their order of arrival', async () => {
    const types = ['start', 'fail', 'success', 'fail', 'success'] as const
    await one.commit(types.map((type) => pingOf(check, { type })))
    expect((await t.historyOf(check)).map(({ type }) => type)).toEqual([...types].reverse())
    expect(await t.reasonsOf(check)).toEqual(['recovered', 'failed', 'recovered', 'failed', 'created'])
  })

  it('are dated after the entries before them, whatever the clocks say', async () => {
    const later = clock.now() + 60_000
    for (const at of [later, later - 120_000]) expect(await one.record(check, { at })).toBe('stored')
    await t.expectOrdered(check, 2)
    expect((await t.stateOf(check)).lastPingAt).toBe(Math.floor((await t.historyOf(check))[0]!.createdAt))
  })

  it('are not harmed by an id that no check has', async () => {
    const { outcomes } = await one.commit([UNKNOWN, check, UNKNOWN, check].map((of) => pingOf(of)))
    expect(outcomes).toEqual(['unknown', 'stored', 'unknown', 'stored'])
    await t.expectOrdered(check, 2)
  })

  it('are not harmed by a check whose row cannot be read', async () => {
    const checks = await t.addChecks(2)
    await t.database.query(
      `update check_states set period_seconds = null, schedule = 'nonsense', time_zone = 'UTC' where check_key = $1`,
      [checks[0].key],
    )
    expect((await one.commit(checks.map((check) => pingOf(check)))).outcomes).toEqual(['rejected', 'stored'])
    expect(String(one.errors[0])).toContain('cannot be read')
  })

  it.each(['with locks', 'plain'])('are not harmed by a ping that PostgreSQL rejects: %s', async (kind) => {
    const checks = kind === 'plain' ? await t.addUp(one, 8) : await t.addChecks(8)
    const before = kind === 'plain' ? 1 : 0
    await t.database.query('alter table pings add constraint poison check (duration_ms is distinct from 666)')
    try {
      const pings = checks.map((check, index) =>
        pingOf(check, { durationMs: index === 3 ? 666 : 1, body: Buffer.of(index) }),
      )
      const { outcomes, tries } = await one.commit(pings)
      expect(outcomes).toEqual(checks.map((_, index) => (index === 3 ? 'rejected' : 'stored')))
      expect(tries.includes('plain')).toBe(kind === 'plain')
      expect(one.errors).toHaveLength(1)
    } finally {
      await t.database.query('alter table pings drop constraint poison')
    }
    for (const [index, check] of checks.entries()) await t.expectOrdered(check, index === 3 ? before : before + 1)
    expect((await t.database.query('select from ping_bodies')).rows).toHaveLength(7)
    expect((await one.commit([pingOf(checks[3]!)])).outcomes).toEqual(['stored'])
  })

  it.each(['with locks', 'plain', 'left by the plain statement'])(
    'are not harmed by a locked row: %s',
    async (kind) => {
      const checks = kind === 'with locks' ? await t.addChecks(3) : await t.addUp(one, 3)
      const [first, held, last] = checks as [(typeof checks)[0], (typeof checks)[0], (typeof checks)[0]]
      if (kind.startsWith('left')) await t.addReplica('two').record(held, { type: 'start' })
      const before = (await t.historyOf(held)).length
      const holding = await t.holdRow(held)
      const startedAt = clock.now()
      const results = await Promise.all([first, held, held, last].map((check) => one.record(check)))
      expect(results).toEqual(['stored', 'unavailable', 'unavailable', 'stored'])
      expect(clock.now() - startedAt).toBeLessThan(5_000)
      expect(one.errors).toEqual([])
      await holding.end()
      expect(await one.record(held)).toBe('stored')
      await t.expectOrdered(held, before + 1)
    },
  )
})

describe('the hot row', () => {
  it('is updated without touching an index when a ping only moves the deadline', async () => {
    // A database of its own, whose counters count nothing else.
    const own = await createPingFixture()
    await own.clear()
    const check = await own.addCheck()
    const replica = own.addReplica('own')
    for (let i = 0; i < 51; i += 1) await replica.record(check)
    await own.cleanUp()
    const { rows } = await own.database.query<{ wake_at: number; due_at: number }>(
      'select wake_at, due_at from check_states',
    )
    expect(rows[0]!.due_at).toBeGreaterThan(rows[0]!.wake_at)
    const counts = async () =>
      (
        await own.database.query<{ updates: number; others: number }>(
          `select n_tup_upd as updates, n_tup_upd - n_tup_hot_upd as others from pg_stat_all_tables where relname = 'check_states'`,
        )
      ).rows[0]!
    await eventually('51 updates are counted', async () => (await counts()).updates === 51)
    // The first ping sets wake_at, with all the rest; a page may fill up once.
    expect((await counts()).others).toBeLessThanOrEqual(2)
    await own.close()
  })
})
