/**
 * Every order of up to four clean stops, crashes and starts, and of up to three of these and outages of the
 * database, of one process and of two, at random times. A model that knows when some process could store pings says
 * which gaps are on record, whether their pings were spooled, and when deadlines pass.
 */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import type { Instant } from '../../../src/domain/check.ts'
import { endBeat, listNewestGaps } from '../../../src/store/history/gaps.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createManualClock, manualClockUrl } from '../../support/database-clock.ts'
import { chooseSeed, createRandom, type Random } from '../../support/random.ts'
import { use } from '../../support/use.ts'
import { createPingFixture } from '../pings/fixture.ts'

const BEGIN = Date.UTC(2026, 0, 1)
/** A process beats each second. */
const BEAT_MS = 1_000
const GAP_MS = 5_000
const RETRY_MS = 60_000
const DEADLINES = 4
/** All deadlines have passed by then, also those that gaps have moved. */
const LATER_MS = 600_000

type Kind = 'stop' | 'crash' | 'start' | 'outage'
interface Action {
  readonly kind: Kind
  /** Of the replica; an outage concerns all. */
  readonly place: number
}

/** A process. */
interface Life {
  readonly id: string
  readonly hasSpool: boolean
  readonly startedAt: Instant
  beatAt: Instant
  end: { readonly at: Instant; readonly isClean: boolean } | null
}

interface Outage {
  readonly from: Instant
  readonly to: Instant
}

/** All orders of so many actions that are possible when these replicas work. Shorter ones are the beginnings of these. */
function listOrders(working: readonly boolean[], length: number, hasOutages: boolean): Action[][] {
  if (length === 0) return [[]]
  const possible = working.flatMap((isWorking, place): Action[] =>
    (isWorking ? (['stop', 'crash'] as const) : (['start'] as const)).map((kind) => ({ kind, place })),
  )
  if (hasOutages && working.includes(true)) possible.push({ kind: 'outage', place: 0 })
  return possible.flatMap((action) => {
    const next = working.map((isWorking, place) =>
      place === action.place && action.kind !== 'outage' ? action.kind === 'start' : isWorking,
    )
    return listOrders(next, length - 1, hasOutages).map((rest) => [action, ...rest])
  })
}

/** Replicas are alike: the one that something happens to first is the first one. */
const isFirstFirst = (order: readonly Action[]) => (order.find(({ kind }) => kind !== 'outage')?.place ?? 0) === 0

function listOrdersOf(replicas: number): Action[][] {
  const working = new Array(replicas).fill(true)
  return [...listOrders(working, 4, false), ...listOrders(working, 3, true)].filter(isFirstFirst)
}

const nameOf = (order: readonly Action[]) => order.map(({ kind, place }) => `${kind} ${place}`).join(', ')

/**
 * Below, about and above the shortest gap. Below a minute, so that no interval is excused: that is tested in
 * unit/domain/own-downtime.test.ts.
 */
function chooseMs(random: Random): number {
  return random.pick([() => random.int(1, 2_000), () => random.int(4_000, 6_500), () => random.int(7_000, 50_000)])()
}

const lastTick = ({ startedAt }: Life, until: Instant) =>
  startedAt + Math.floor((until - startedAt) / BEAT_MS) * BEAT_MS
const firstTick = ({ startedAt }: Life, from: Instant) => startedAt + Math.ceil((from - startedAt) / BEAT_MS) * BEAT_MS

// The model ------------------------------------------------------------------------------------------------------------

interface Stretch {
  readonly life: Life
  readonly from: Instant
  readonly to: Instant
}

/** When the process could store pings, as far as is known: until its last beat if it crashed, until the stop if it stopped. */
function listStretches(life: Life, outages: readonly Outage[], now: Instant): Stretch[] {
  const end = life.end ?? { at: now, isClean: false }
  const stretches: Stretch[] = []
  let from = life.startedAt
  for (const outage of outages) {
    if (outage.from < life.startedAt || outage.from >= end.at) continue
    if (from <= outage.from) stretches.push({ life, from, to: lastTick(life, outage.from) })
    from = firstTick(life, outage.to)
  }
  const to = end.isClean ? end.at : lastTick(life, end.at)
  if (end.isClean) from = Math.min(from, end.at)
  if (from <= to) stretches.push({ life, from, to })
  return stretches
}

interface ModelGap {
  readonly startedAt: Instant
  readonly endedAt: Instant
  readonly isSpooled: boolean
}

function listModelGaps(lives: readonly Life[], outages: readonly Outage[], now: Instant): ModelGap[] {
  const stretches = lives.flatMap((life) => listStretches(life, outages, now)).sort((a, b) => a.from - b.from)
  const gaps: ModelGap[] = []
  let known = stretches[0]!.to
  for (const { from, to } of stretches) {
    if (from - known >= GAP_MS)
      gaps.push({ startedAt: known, endedAt: from, isSpooled: areSpooled(stretches, known, from) })
    known = Math.max(known, to)
  }
  return gaps
}

/** Each process that worked shortly before the gap, and had not stopped, has a spool and works again after the gap. */
function areSpooled(stretches: readonly Stretch[], startedAt: Instant, endedAt: Instant): boolean {
  const before = stretches.filter(({ from, to }) => from <= startedAt && to >= startedAt - GAP_MS)
  const concerned = new Set(before.map(({ life }) => life).filter(({ end }) => !(end?.isClean && end.at <= startedAt)))
  const isBack = (life: Life) => stretches.some((stretch) => stretch.life === life && stretch.from >= endedAt)
  return concerned.size > 0 && [...concerned].every((life) => life.hasSpool && isBack(life))
}

function moveDeadline(dueAt: Instant, gaps: readonly ModelGap[]): Instant {
  let moved = dueAt
  for (const { startedAt, endedAt, isSpooled } of gaps)
    if (!isSpooled && startedAt <= moved) moved = Math.max(moved, endedAt + RETRY_MS)
  return moved
}

// The service ----------------------------------------------------------------------------------------------------------

let database: Database
let setTime: (at: Instant) => Promise<unknown>
let keys: number[]

const t = use(createPingFixture)
beforeAll(async () => {
  await t.clear()
  keys = (await t.addChecks(DEADLINES)).map(({ key }) => key).sort((a, b) => a - b)
  setTime = await createManualClock(t.database, BEGIN)
  database = createDatabase({ url: manualClockUrl(t.url), name: 'test', connections: 1 })
})
afterAll(async () => {
  await database.close()
})

/** All checks are up, and expect their next completion at these times. */
async function expectAt(dueAts: readonly Instant[]): Promise<void> {
  await t.database.query(
    `delete from gaps; delete from ping_beats; delete from events; delete from flips;
    update service_beat set beat_at = null`,
  )
  await t.database.query(
    `update check_states s set status = 1, since = $1, last_ping_at = $1, last_success_at = $1, stamped_at = $1, reason = 'first_success',
      expected_at = i.at, due_at = i.at, wake_at = i.at, grace_seconds = 0
    from unnest($2::int8[], $3::timestamptz[]) i (key, at) where s.check_key = i.key`,
    [new Date(BEGIN), keys, dueAts.map((at) => new Date(at))],
  )
}

async function listFlipTimes(): Promise<Instant[]> {
  const { rows } = await t.database.query<{ at: Instant }>(
    `select at from flips where reason = 'missed' and check_key = any($1) order by check_key`,
    [keys],
  )
  return rows.map(({ at }) => at)
}

/** The beats of a quiet time at once. */
async function hasBeaten(lives: readonly Life[]): Promise<void> {
  await t.database.query(
    `with beats as (select * from unnest($1::uuid[], $2::timestamptz[]) b (id, at)),
      moved as (update service_beat set beat_at = greatest(beat_at, (select max(at) from beats)))
    update ping_beats p set beat_at = at from beats where beats.id = p.id`,
    [lives.map(({ id }) => id), lives.map(({ beatAt }) => new Date(beatAt))],
  )
}

async function beatNow(life: Life): Promise<void> {
  await keepBeat({
    database,
    recorder: { isWell: () => true, recovered: () => {} },
    self: () => ({ id: life.id, spool: life.hasSpool ? { pendingSince: null, refusedAt: null } : null }),
    onGap: () => {},
    onSettled: () => {},
  })
  await expireOverdue({ database, now: () => 0 }, 100)
}

/** Carries out the actions. Returns what happened. */
async function live(order: readonly Action[], replicas: number, random: Random) {
  const lives: Life[] = []
  const outages: Outage[] = []
  const working: (Life | null)[] = Array.from({ length: replicas }, () => null)
  const spools = working.map(() => random.chance(0.7))
  let now = BEGIN

  const listWorking = () => working.filter((life) => life !== null)
  /** One beat of each process, where `tickOf` has one that is ahead. */
  async function beatAll(tickOf: (life: Life) => Instant, until: Instant): Promise<void> {
    const beats = listWorking().map((life) => ({ life, at: tickOf(life) }))
    for (const { life, at } of beats.sort((one, other) => one.at - other.at)) {
      if (at > until || at <= life.beatAt) continue
      now = life.beatAt = at
      await setTime(now)
      await beatNow(life)
    }
  }
  async function goOn(until: Instant): Promise<void> {
    const since = now
    await beatAll((life) => firstTick(life, since), until)
    const quiet = listWorking().filter((life) => lastTick(life, until - BEAT_MS) >= Math.max(since, life.beatAt))
    for (const life of quiet) life.beatAt = lastTick(life, until - BEAT_MS)
    await hasBeaten(quiet)
    await beatAll((life) => (lastTick(life, until) >= since ? lastTick(life, until) : life.beatAt), until)
    now = until
    await setTime(now)
  }
  async function start(place: number): Promise<void> {
    const life: Life = { id: randomUUID(), hasSpool: spools[place]!, startedAt: now, beatAt: now, end: null }
    lives.push(life)
    working[place] = life
    await beatNow(life)
  }
  async function end(place: number, isClean: boolean): Promise<void> {
    const life = working[place]!
    life.end = { at: now, isClean }
    working[place] = null
    if (!isClean) return
    await beatNow(life)
    await endBeat(database, life.id)
  }

  await setTime(now)
  for (const place of working.keys()) {
    await start(place)
    await goOn(now + random.int(1, 999))
  }
  for (const { kind, place } of order) {
    // Between two outages each process beats: of a process that does not, nobody knows that it worked.
    await goOn(now + chooseMs(random) + (now === outages.at(-1)?.to ? BEAT_MS : 0))
    if (kind === 'start') await start(place)
    else if (kind === 'outage') {
      outages.push({ from: now, to: now + chooseMs(random) })
      now = outages.at(-1)!.to
    } else await end(place, kind === 'stop')
  }
  if (working.every((life) => life === null)) {
    await goOn(now + chooseMs(random))
    await start(0)
  }
  await goOn(now + random.int(2_000, 20_000))
  const gaps = listModelGaps(lives, outages, now)

  // From here on the service works, without a beat that the test would have to wait for.
  now += LATER_MS
  await setTime(now)
  await t.database.query('update service_beat set beat_at = manual.now()')
  for (const life of working) if (life !== null) await beatNow(life)
  return gaps
}

describe.each([
  ['one process', 1],
  ['two processes', 2],
])('The gaps are those of the model, and deadlines move for no other reason, with %s', (_, replicas) => {
  it.each(listOrdersOf(replicas).map((order) => [nameOf(order), order] as const))('after %s', async (_name, order) => {
    const seed = chooseSeed()
    const random = createRandom(seed)
    const dueAts = keys.map(() => BEGIN + random.int(1_000, 200_000))
    await expectAt(dueAts)
    const gaps = await live(order, replicas, random)
    expect(await listNewestGaps(t.database, 0, 100), `seed ${seed}`).toEqual(gaps)
    expect(await listFlipTimes(), `seed ${seed}`).toEqual(dueAts.map((dueAt) => moveDeadline(dueAt, gaps)))
  })
})
