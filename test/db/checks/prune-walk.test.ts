import { describe, expect, it } from 'vitest'
import {
  createPruner,
  PRUNE_START,
  type PruneBatch,
  type PruneLimits,
  pruneHistory,
} from '../../../src/checks/prune-history.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { lockStates } from '../../../src/store/checks/states.ts'
import { tryPruneLock } from '../../../src/store/history/pruning.ts'
import { listPings } from '../../support/lists.ts'
import { useEach } from '../../support/use.ts'
import {
  addCheck,
  addPingRow,
  contextWithin,
  countRows,
  KEEP_ALL,
  NOW,
  openTransaction,
  ping,
  pruneAll,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))

const prune = (limits: Partial<PruneLimits>, batch?: PruneBatch) => pruneAll(fixture, limits, batch)
const pings = async (of = check) =>
  (await listPings(fixture.context, tenant, of.id, { limit: 1_000, after: null })).rows

describe('the walk', () => {
  it('deletes no more than a batch at once, and goes on until nothing is left to delete', async () => {
    for (let i = 0; i < 7; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const other = await addCheck(fixture, tenant)
    for (let i = 0; i < 4; i += 1) await addPingRow(fixture, other.key, NOW + i)
    const batch = { rows: 3, entries: 100 }
    const limits = { ...KEEP_ALL, maxPings: 2 }
    const first = await pruneHistory(fixture.context, limits, PRUNE_START, batch)
    expect(first).toEqual({ deleted: 3, next: PRUNE_START })
    expect(await prune(limits, batch)).toMatchObject({ deleted: { pings: 4 } })
    expect([(await pings()).length, (await pings(other)).length]).toEqual([2, 2])
  })

  it('takes a few checks at a time, in the order of their keys, and misses none', async () => {
    const checks = [check]
    for (let i = 0; i < 6; i += 1) checks.push(await addCheck(fixture, tenant))
    for (const { key } of checks) for (let i = 0; i < 3; i += 1) await addPingRow(fixture, key, NOW + i)
    const { deleted, positions } = await prune({ maxPings: 1 }, { rows: 100, entries: 2 })
    expect(deleted).toEqual({ pings: 14 })
    for (const each of checks) expect(await pings(each)).toHaveLength(1)
    expect(positions.filter(({ table }) => table === 'pings').map(({ afterKey }) => afterKey)).toEqual([
      0,
      checks[1]!.key,
      checks[3]!.key,
      checks[5]!.key,
    ])
  })

  it('goes on at the place that it is given', async () => {
    const second = await addCheck(fixture, tenant)
    for (const { key } of [check, second]) for (let i = 0; i < 3; i += 1) await addPingRow(fixture, key, NOW + i)
    await pruneHistory(fixture.context, { ...KEEP_ALL, maxPings: 1 }, { table: 'pings', afterKey: check.key })
    expect([(await pings()).length, (await pings(second)).length]).toEqual([3, 1])
  })

  it('never waits for a check that is locked', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const pinging = await openTransaction(fixture, async (tx) => {
      await ping(tx, check, 'success', NOW + 9)
      await lockStates(tx, [check.key])
    })
    expect(await prune({ maxPings: 1 })).toMatchObject({ deleted: { pings: 2 } })
    await pinging.commit()
    expect(await pings()).toHaveLength(2)
  })

  it('waits for a removal of the same history and then goes on', async () => {
    for (let i = 0; i < 5; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const removing = await openTransaction(fixture, (tx) => removeCheck(contextWithin(fixture, tx), tenant, check.id))
    expect((await removing.commitBefore(() => prune({ maxPings: 1 }))).deleted).toEqual({})
    expect(await countRows(fixture, 'pings', check.key)).toBe(0)
  })
})

describe('the pruner', () => {
  const going = new AbortController().signal
  const LIMITS = { maxPings: 1, maxFlips: 1_000, maxDays: 90, auditMaxDays: 365 }

  it('does a batch a run and says when there is more', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const pruned: number[] = []
    const run = createPruner(fixture.context, { ...LIMITS, onPruned: (rows) => pruned.push(rows) })
    const outcomes: unknown[] = []
    do outcomes.push(await run(going))
    while (outcomes.at(-1) === 'again')
    expect(outcomes).toHaveLength(14)
    expect(pruned).toEqual([2])
    await addPingRow(fixture, check.key, NOW + 9)
    expect(await run(going)).toBe('again')
    expect(pruned).toEqual([2, 1])
  })

  it('does nothing when it is to stop', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const run = createPruner(fixture.context, { ...LIMITS, onPruned: () => {} })
    expect(await run(AbortSignal.abort())).toBe('done')
    expect(await pings()).toHaveLength(3)
  })

  it('leaves the work to another replica that is at it, and keeps its place', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const run = createPruner(fixture.context, { ...LIMITS, onPruned: () => {} })
    const other = await openTransaction(fixture, tryPruneLock)
    expect(await run(going)).toBe('done')
    expect(await pings()).toHaveLength(3)
    await other.commit()
    expect(await run(going)).toBe('again')
    expect(await pings()).toHaveLength(1)
  })

  it('rests after a pass in proportion to what it cost', async () => {
    const run = createPruner(fixture.context, { ...LIMITS, onPruned: () => {} })
    expect(await run(going)).toBe('again')
    fixture.clock.time += 10_000
    while ((await run(going)) === 'again');
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    fixture.clock.time += 199_999
    expect(await run(going)).toBe('done')
    expect(await pings()).toHaveLength(3)
    fixture.clock.time += 1
    expect(await run(going)).toBe('again')
    expect(await pings()).toHaveLength(1)
  })

  it('tries a batch that failed again at half its size', async () => {
    await fixture.database.query(
      `insert into pings (id, check_key, type, source, created_at)
       select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, 3, 0, now() from generate_series(1, 3001) n`,
      [check.key],
    )
    const pruned: number[] = []
    let failures = 1
    const database: typeof fixture.database = {
      ...fixture.database,
      transaction: (work) =>
        failures-- > 0 ? Promise.reject(new Error('too slow')) : fixture.database.transaction(work),
    }
    const run = createPruner(
      { ...fixture.context, database },
      { ...LIMITS, maxDays: 36_500, onPruned: (rows) => pruned.push(rows) },
    )
    await expect(run(going)).rejects.toThrow('too slow')
    expect(await run(going)).toBe('again')
    expect(await run(going)).toBe('again')
    expect(pruned).toEqual([2_500, 500])
  })

  /** Ends with the function that it returns. */
  async function breakTable(table: string) {
    await fixture.database.query(
      `create function fail() returns trigger language plpgsql as $$ begin raise 'broken'; end $$;
      create trigger broken before delete on ${table} execute function fail()`,
    )
    return () => fixture.database.query(`drop trigger broken on ${table}; drop function fail`)
  }

  it('rests after a pass whose last table fails, too', async () => {
    const mend = await breakTable('audit_log')
    const run = createPruner(fixture.context, { ...LIMITS, onPruned: () => {} })
    expect(await run(going)).toBe('again')
    fixture.clock.time += 10_000
    let runs = 0
    while ((await run(going).catch(() => 'failed')) !== 'done') runs += 1
    await mend()
    // Twelve more tables, and then the batches of the last one.
    expect(runs).toBe(12 + 7)
    fixture.clock.time += 199_999
    expect(await run(going)).toBe('done')
    fixture.clock.time += 1
    expect(await run(going)).toBe('again')
  })

  it.each(['pings', 'flips', 'deliveries', 'rate_windows'])(
    'goes on behind the table %s when the smallest batch of it fails, and comes back to it with the next pass',
    async (table) => {
      const { database, clock } = fixture
      for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
      await database.query(
        `insert into audit_log (id, organization_id, at, actor_kind, action)
          select '00000000-0000-7000-8000-000000000000', id, to_timestamp(0), 'system', 'check.changed' from organizations`,
      )
      const mend = await breakTable(table)
      const errors: string[] = []
      const run = createPruner(fixture.context, { ...LIMITS, onPruned: () => {} })
      const pass = async () => {
        let outcome: unknown
        do outcome = await run(going).catch((error) => errors.push(String(error)))
        while (outcome !== 'done' && errors.length < 20)
      }
      try {
        await pass()
        // The whole batch, and six that are half the size of the one before.
        expect(errors).toHaveLength(7)
        expect((await database.query('select from audit_log where at < to_timestamp(1)')).rowCount).toBe(0)
        clock.time += 3_600_000
        await pass()
        expect(errors).toHaveLength(14)
      } finally {
        await mend()
      }
      clock.time += 3_600_000
      await pass()
      expect(errors).toHaveLength(14)
      expect(await pings()).toHaveLength(1)
    },
  )
})
