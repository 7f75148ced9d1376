/** What waits on disk is recorded once, in its order, with its arrival. The spool is the real one, in a folder of the test. */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { createPingSpool, type PingSpool } from '../../../src/checks/ping/ping-spool.ts'
import { createReadBack, type DropReason } from '../../../src/checks/ping/read-back.ts'
import type { Ping } from '../../../src/checks/ping/record.ts'
import { SpoolBroken, SpoolFull } from '../../../src/spool/errors.ts'
import { openSpool } from '../../../src/spool/open-spool.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { addSilence, addWebhook, messagesOf } from '../../support/silence.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, usePings } from './fixture.ts'

let folder: string
let spool: Spool
let pings: PingSpool
let dropped: [DropReason, number][]
let ends: number[]
let recoveries: number
/** How many pings were found locked, by run. */
let locks: number[]

const t = usePings()
const replica = useEach(() => t.addReplica('spooling'))
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-spool-'))
  dropped = []
  ends = []
  recoveries = 0
  locks = []
  await open()
})
afterEach(async () => {
  await spool.close()
  await rm(folder, { recursive: true })
})

async function open(sizes: { maxBytes?: number; segmentBytes?: number } = {}): Promise<void> {
  spool = await openSpool({ folder, maxBytes: 2 ** 24, onProblem: () => {}, ...sizes })
  pings = createPingSpool(spool, t.context.clock.now)
}

/** As after a crash of the process. */
async function reopen(): Promise<void> {
  await spool.close()
  await open()
}

const aReadBack = (own = pings, database = replica.database) =>
  createReadBack({
    database,
    spool: own,
    recorder: {
      recovered() {
        recoveries += 1
      },
      isWell: () => true,
      drain: (work) => work(),
    },
    now: t.context.clock.now,
    processNow: t.context.clock.now,
    onDropped: (reason, count) => dropped.push([reason, count]),
    onLocked: (count) => locks.push(count),
    onEnd: (count) => ends.push(count),
  })

const check = useEach(() => t.addCheck())
const store = (...all: Ping[]) => pings.append(all.map((ping) => ({ ping, pingId: null })))
const ago = (ms: number) => t.context.clock.now() - ms
const textOf = (text: string) => ({ body: Buffer.from(text) })

describe('the read-back', () => {
  it('records each ping with its arrival, in its order, and then frees the disk', async () => {
    const [one, two] = await t.addChecks(2)
    const arrivals = [ago(9_000), ago(8_000), ago(7_000)]
    await store(
      pingOf(one, { at: arrivals[0]!, ...textOf('first') }),
      pingOf(two, { at: arrivals[1]!, type: 'fail', exitCode: 3, durationMs: 1_200, ...textOf('second') }),
      pingOf(one, { at: arrivals[2]!, ...textOf('third') }),
    )
    await aReadBack().drain()
    expect(await t.textsOf(one)).toEqual(['third', 'first'])
    const [failed] = await t.historyOf(two)
    expect(failed).toMatchObject({ type: 'fail', exitCode: 3, durationMs: 1_200 })
    expect(failed!.createdAt).toBeCloseTo(arrivals[1]!, 1)
    expect(await t.stateOf(one)).toMatchObject({ status: 'up', pingsTotal: 2 })
    expect((await t.stateOf(one)).lastPingAt).toBeCloseTo(arrivals[2]!, -1)
    expect(await t.stateOf(two)).toMatchObject({ status: 'down' })
    expect([pings.isEmpty(), dropped, ends, recoveries]).toEqual([true, [], [3], 1])
  })

  it('sends nothing of a check that a silence covers', async () => {
    await addWebhook(t, t.tenant(), ['check.down'])
    await addSilence(t, t.tenant(), t.context.clock.now())
    await store(pingOf(check, { at: ago(9_000), type: 'fail', exitCode: 3 }))
    await aReadBack().drain()
    expect(await messagesOf(t, check)).toEqual(['(check.down: silenced)'])
  })

  it('keeps the order of pings of one moment', async () => {
    const at = ago(5_000)
    for (let count = 0; count < 20; count += 1) await store(pingOf(check, { at, ...textOf(`${count}`) }))
    await aReadBack().drain()
    expect(await t.textsOf(check)).toEqual(Array.from({ length: 20 }, (_, index) => `${19 - index}`))
  })

  it('records more than one batch', async () => {
    const at = ago(60_000)
    await store(...Array.from({ length: 1_001 }, (_, index) => pingOf(check, { at: at + index })))
    const readBack = aReadBack()
    expect(await readBack.run()).toBe('again')
    expect(pings.waiting()).toBe(501)
    await readBack.drain()
    expect((await t.stateOf(check)).pingsTotal).toBe(1_001)
    expect(pings.isEmpty()).toBe(true)
  })

  it('a process that ended after the commit leaves nothing to repeat', async () => {
    await store(pingOf(check, { at: ago(5_000) }), pingOf(check, { at: ago(4_000) }))
    // The commit is known to the database alone.
    const unreleased = { ...pings, forget: () => Promise.reject(new Error('killed')) }
    await expect(
      aReadBack({ ...unreleased, forget: (upTo) => (upTo === 0 ? pings.forget(0, []) : unreleased.forget()) }).drain(),
    ).rejects.toThrow('killed')
    await reopen()
    expect(pings.pings()).toBe(2)
    await store(pingOf(check, { at: ago(1_000) }))
    await aReadBack().drain()
    expect(await t.historyOf(check)).toHaveLength(3)
    expect((await t.stateOf(check)).pingsTotal).toBe(3)
    expect(pings.isEmpty()).toBe(true)
    // None was tried a second time: its id would be rejected.
    expect(dropped).toEqual([])
  })

  it('two at once on copies of one spool record each ping once', async () => {
    await store(...Array.from({ length: 300 }, (_, index) => pingOf(check, { at: ago(9_000 - index) })))
    await Promise.all([aReadBack().run(), aReadBack().run()])
    expect((await t.stateOf(check)).pingsTotal).toBe(300)
    expect(await t.historyOf(check)).toHaveLength(300)
  })

  it('a ping whose commit was not known is recorded unless it was stored', async () => {
    await replica.record(check, textOf('stored'))
    const [stored] = await t.historyOf(check)
    const idOf = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex')
    // The replica stamps by the database's clock, which may be ahead of this process's.
    const at = stored!.createdAt
    await pings.append([
      { ping: pingOf(check, { at, ...textOf('stored') }), pingId: idOf(stored!.id) },
      { ping: pingOf(check, { at: at + 1, ...textOf('not stored') }), pingId: idOf(randomUUID()) },
    ])
    await aReadBack().drain()
    expect(await t.textsOf(check)).toEqual(['not stored', 'stored'])
  })

  it('a repeated run is stored once', async () => {
    const runId = randomUUID()
    await replica.record(check, { type: 'start', exitCode: null, runId })
    await store(
      pingOf(check, { type: 'start', exitCode: null, runId, at: ago(0) }),
      pingOf(check, { runId, at: ago(0) }),
      pingOf(check, { runId, at: ago(0) }),
    )
    await aReadBack().drain()
    expect((await t.historyOf(check)).map(({ type }) => type)).toEqual(['success', 'start'])
    // A repeat is no ping that PostgreSQL rejects.
    expect([dropped, ends]).toEqual([[], [3]])
  })

  it('drops the pings of checks that were removed, counts them, and records the others', async () => {
    const [check, gone] = await t.addChecks(2)
    await store(pingOf(gone, { at: ago(3) }), pingOf(check, { at: ago(2) }), pingOf(gone, { at: ago(1) }))
    await t.database.query('delete from checks where key = $1', [gone.key])
    await aReadBack().drain()
    expect([dropped, ends]).toEqual([[['check_removed', 2]], [3]])
    expect(await t.historyOf(check)).toHaveLength(1)
  })

  it('drops a ping that PostgreSQL rejects, and no other one', async () => {
    const [check, other] = await t.addChecks(2)
    await t.database.query(`alter table ping_bodies add constraint no_poison check (body <> 'poison')`)
    try {
      await store(
        pingOf(other, { at: ago(3) }),
        pingOf(check, { at: ago(2), ...textOf('poison') }),
        pingOf(other, { at: ago(1) }),
      )
      await aReadBack().drain()
    } finally {
      await t.database.query('alter table ping_bodies drop constraint no_poison')
    }
    expect(dropped).toEqual([['rejected', 1]])
    expect(await t.historyOf(check)).toEqual([])
    expect((await t.stateOf(other)).pingsTotal).toBe(2)
    expect(pings.isEmpty()).toBe(true)
  })

  it('drops a ping of a check whose row cannot be read', async () => {
    const [check, other] = await t.addChecks(2)
    await t.database.query(`update check_states set due_at = 'infinity' where check_key = $1`, [check.key])
    await store(pingOf(check, { at: ago(2) }), pingOf(other, { at: ago(1) }))
    await aReadBack().drain()
    expect(dropped).toEqual([['rejected', 1]])
    expect((await t.stateOf(other)).pingsTotal).toBe(1)
  })

  it('does nothing while the database is unavailable', async () => {
    await store(pingOf(check, { at: ago(2) }))
    await using stack = new AsyncDisposableStack()
    const url = 'postgres://127.0.0.1:9/none'
    const away = stack.adopt(createDatabase({ url, name: 'away', connections: 1 }), (database) => database.close())
    const readBack = aReadBack(pings, away)
    expect(await readBack.run()).toBe('done')
    await expect(readBack.drain()).rejects.toThrow(/cannot reach its database/)
    expect([pings.pings(), recoveries]).toEqual([1, 0])
  })

  it('records what comes before a format that it cannot read, keeps the rest, and says what to do', async () => {
    await store(pingOf(check, { at: ago(2) }))
    await spool.append([Buffer.from([2, 0, 0])])
    await store(pingOf(check, { at: ago(1) }))
    await expect(aReadBack().drain()).rejects.toThrow(/format 2, which this version cannot read: start the version/)
    expect(await t.historyOf(check)).toHaveLength(1)
    expect(spool.records).toBe(2)
  })
})

describe('a row that another session has locked', () => {
  const lockedKeys = () => [...pings.lockedKeys()]

  it('keeps no ping of another check waiting: its pings go to the end, with their arrivals', async () => {
    const [held, other] = await t.addChecks(2)
    const at = ago(60_000)
    await store(
      pingOf(held, { at, ...textOf('first') }),
      pingOf(held, { at: at + 1, type: 'fail', exitCode: 1, ...textOf('second') }),
      pingOf(other, { at: at + 2 }),
    )
    const holder = await t.holdRow(held)
    const readBack = aReadBack()
    while ((await readBack.run()) === 'again');
    expect((await t.historyOf(other))[0]!.createdAt).toBeCloseTo(at + 2, 1)
    expect([pings.isCaughtUp(), pings.isEmpty(), pings.pings(), lockedKeys()]).toEqual([true, false, 2, [held.key]])
    expect([ends, locks]).toEqual([[], [2, 2]])
    // Nothing waits behind them: they stay where they are.
    const before = await pings.read(0)
    await readBack.run()
    expect([await pings.read(0), pings.pings(), lockedKeys()]).toEqual([before, 2, [held.key]])
    await holder.end()
    await readBack.run()
    expect([pings.isEmpty(), lockedKeys(), dropped, ends]).toEqual([true, [], [], [3]])
    expect(await t.textsOf(held)).toEqual(['second', 'first'])
    expect((await t.historyOf(held)).map(({ createdAt }) => Math.round(createdAt))).toEqual(
      [at + 1, at].map(Math.round),
    )
    expect(await t.stateOf(held)).toMatchObject({ status: 'down', pingsTotal: 2 })
  })

  it('is found again by the next process, which goes on with what comes in behind it', async () => {
    const [held, other] = await t.addChecks(2)
    await store(pingOf(held, { at: ago(5_000) }))
    const holder = await t.holdRow(held)
    await aReadBack().run()
    await reopen()
    expect([pings.isCaughtUp(), lockedKeys()]).toEqual([false, []])
    const readBack = aReadBack()
    await readBack.run()
    expect([pings.isCaughtUp(), lockedKeys()]).toEqual([true, [held.key]])
    await store(pingOf(other, { at: ago(1_000) }))
    expect(pings.isCaughtUp()).toBe(false)
    await readBack.run()
    expect(await t.historyOf(other)).toHaveLength(1)
    expect([pings.isCaughtUp(), pings.pings()]).toEqual([true, 1])
    await holder.end()
    await readBack.run()
    expect(pings.isEmpty()).toBe(true)
    await t.expectOrdered(held, 1)
  })

  it('whose check is removed meanwhile drops its pings', async () => {
    const [held] = await t.addChecks(1)
    await store(pingOf(held!, { at: ago(5_000) }))
    const holder = await t.hold('delete from checks where key = $1', [held!.key])
    await aReadBack().run()
    await holder.end('commit')
    await aReadBack().run()
    expect([pings.isEmpty(), dropped]).toEqual([true, [['check_removed', 1]]])
  })

  it('by hundreds of pings keeps none waiting either', async () => {
    const [held, other] = await t.addChecks(2)
    const at = ago(60_000)
    await store(...Array.from({ length: 700 }, (_, index) => pingOf(held, { at: at + index })))
    await store(pingOf(other, { at: at + 700 }))
    const holder = await t.holdRow(held)
    const readBack = aReadBack()
    while ((await readBack.run()) === 'again');
    expect(await t.historyOf(other)).toHaveLength(1)
    expect([pings.isCaughtUp(), pings.pings()]).toEqual([true, 700])
    await holder.end()
    await readBack.drain()
    expect(pings.isEmpty()).toBe(true)
    expect((await t.stateOf(held)).pingsTotal).toBe(700)
  })

  it('keeps no ping of another check waiting in a full spool either', async () => {
    await spool.close()
    await open({ maxBytes: 60_000, segmentBytes: 10_000 })
    const [held, ...others] = await t.addChecks(20)
    await store(pingOf(held!, { at: ago(9_000) }))
    const fill = async (size: number) => {
      for (;;) await store(...others.slice(0, size).map((check) => pingOf(check, { at: ago(8_000) })))
    }
    for (const size of [others.length, 1]) await expect(fill(size)).rejects.toThrow(SpoolFull)
    const waited = pings.pings()
    const holder = await t.holdRow(held!)
    const readBack = aReadBack()
    while ((await readBack.run()) === 'again');
    expect([pings.isCaughtUp(), pings.hasRoom(), pings.pings(), dropped]).toEqual([true, true, 1, []])
    const { rows } = await t.database.query('select sum(pings_total)::int8 as pings from check_states')
    expect(rows).toEqual([{ pings: waited - 1 }])
    await holder.end()
    await readBack.run()
    expect(pings.isEmpty()).toBe(true)
    await t.expectOrdered(held!, 1)
  })

  it.each([
    ['has no room on its disk', () => new SpoolFull('full')],
    ['is broken', () => new SpoolBroken('broken')],
  ])('loses no ping where the spool %s: they wait until the row is free', async (_name, errorOf) => {
    const [held, other] = await t.addChecks(2)
    await store(pingOf(held, { at: ago(5_000) }), pingOf(other, { at: ago(4_000) }))
    const holder = await t.holdRow(held)
    const postpone = async (locked: readonly unknown[]) => {
      if (locked.length > 0) throw errorOf()
    }
    const readBack = aReadBack({ ...pings, postpone })
    await expect(readBack.run()).rejects.toThrow(errorOf())
    expect([pings.pings(), dropped]).toEqual([2, []])
    await holder.end()
    await readBack.drain()
    expect([pings.isEmpty(), dropped]).toEqual([true, []])
    for (const check of [held, other]) await t.expectOrdered(check, 1)
  })

  it('and a process that ends before the commit leaves the ping and its copy, which are recorded once', async () => {
    const [held, other] = await t.addChecks(2)
    await store(pingOf(held, { at: ago(5_000), ...textOf('once') }), pingOf(other, { at: ago(4_000) }))
    const holder = await t.holdRow(held)
    const killed: Database = {
      ...replica.database,
      session: (use) =>
        replica.database.session((session) =>
          use({
            ...session,
            groupTransaction: (budgetMs, read) =>
              session.groupTransaction(budgetMs, read, () => Promise.reject(new Error('Connection terminated'))),
          }),
        ),
    }
    expect(await aReadBack(pings, killed).run()).toBe('done')
    expect(pings.pings()).toBe(3)
    await reopen()
    await holder.end()
    await aReadBack().drain()
    expect(pings.isEmpty()).toBe(true)
    expect(await t.textsOf(held)).toEqual(['once'])
    for (const check of [held, other]) await t.expectOrdered(check, 1)
    expect((await t.stateOf(held)).pingsTotal).toBe(1)
    expect(dropped).toEqual([])
  })
})

describe('beside another replica', () => {
  it('the state follows the newest ping, and the history has both at their times', async () => {
    const other = t.addReplica('other')
    const failedAt = ago(20_000)
    await store(pingOf(check, { type: 'fail', exitCode: null, at: failedAt, ...textOf('older') }))
    await other.record(check, { at: ago(10_000), ...textOf('newer') })
    await aReadBack().drain()
    expect(await t.stateOf(check)).toMatchObject({ status: 'up', pingsTotal: 2 })
    expect(await t.textsOf(check)).toEqual(['newer', 'older'])
    expect((await t.historyOf(check)).at(-1)!.createdAt).toBeCloseTo(failedAt, 1)
    expect(await t.eventsOf(check)).toEqual([])
  })

  it('a pause of meanwhile stays', async () => {
    await replica.record(check)
    await store(pingOf(check, { at: ago(1_000) }))
    await pauseCheck(t.context, t.tenant(), check.id)
    await aReadBack().drain()
    expect(await t.stateOf(check)).toMatchObject({ status: 'paused', pingsTotal: 2 })
  })
})
