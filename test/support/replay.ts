/**
 * Proves a database against the pure core: the stored history of a check, replayed through `transition`, must give exactly
 * the stored state, the stored flips and their events. It finds a change that was lost, stored twice or stored in another order.
 *
 * What is replayed, in the order of the ids: each ping, and each flip that no ping made (created, paused, resumed, and what
 * the evaluator found: missed, overran, outage). Times are those of the decision, to the millisecond, as the core saw them.
 *
 * Two things leave no entry of their own, so there may be several states that the history allows; one must be the stored
 * one. The evaluator may at any time have spared a check on account of a gap (`gaps`), which moves its deadline without an event. And
 * a changed spec leaves none at all: checks whose spec was changed cannot be replayed.
 */

import { isDeepStrictEqual } from 'node:util'
import {
  type CheckSpec,
  type CheckState,
  type Flip,
  type FlipReason,
  type Gap,
  type Instant,
  PING_TYPES,
  type PingType,
  STATUSES,
  type StoredStatus,
} from '../../src/domain/check.ts'
import type { CheckEvent, Outcome } from '../../src/domain/check-event.ts'
import { type EventFacts, eventOf } from '../../src/domain/event.ts'
import { evaluationOf, newState, transition } from '../../src/domain/transition.ts'
import { type LockedCheck, lockStates } from '../../src/store/checks/states.ts'
import type { Database, Queryable } from '../../src/store/postgres/database.ts'

export interface ReplayOptions {
  /** Whether a stored duration is what the job measured; the others must be those that the core computes. */
  readonly isGiven: (durationMs: number) => boolean
}

export interface Replayed {
  readonly checks: number
  readonly entries: number
  readonly flips: number
  readonly events: number
  /** Empty when all is as it must be; else a line for each check that is not. */
  readonly problems: readonly string[]
}

interface StoredPing {
  readonly kind: 'ping'
  readonly id: string
  readonly type: PingType
  readonly durationMs: number | null
  readonly runId: string | null
  readonly at: Instant
}

interface StoredFlip {
  readonly kind: 'flip'
  readonly id: string
  readonly at: Instant
  readonly detectedAt: Instant
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  readonly pingId: string | null
}

interface StoredEvent {
  readonly flipId: string
  readonly type: string
  readonly data: unknown
}

type Entry = StoredPing | StoredFlip

interface History {
  readonly check: LockedCheck
  readonly entries: readonly Entry[]
  /** By the id of the ping that made them. */
  readonly flipsOfPings: ReadonlyMap<string, readonly StoredFlip[]>
  readonly events: ReadonlyMap<string, readonly StoredEvent[]>
  readonly gaps: readonly Gap[]
}

/** Replays every check of the database, which must not change meanwhile. */
export async function replayAll(database: Database, options: ReplayOptions): Promise<Replayed> {
  const histories = await readHistories(database)
  const problems: string[] = []
  const total = { entries: 0, flips: 0, events: 0 }
  for (const history of histories) {
    const problem = replay(history, options)
    if (problem !== null) problems.push(`check ${history.check.key}: ${problem}`)
    total.entries += history.entries.length
    total.flips += history.entries.filter(({ kind }) => kind === 'flip').length + history.flipsOfPings.size
    total.events += history.events.size
  }
  return { checks: histories.length, ...total, problems }
}

/** Null, or what is wrong first. */
function replay(history: History, options: ReplayOptions): string | null {
  const { check, entries, gaps } = history
  const { spec, state } = check
  const [created, ...rest] = entries
  if (spec === null) return 'its spec cannot be read'
  if (created?.kind !== 'flip' || created.reason !== 'created') return 'its history does not begin with created'
  let states = [newState(created.at)]
  const queue = [...rest]
  for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) {
    const now = Math.floor(entry.kind === 'ping' ? entry.at : entry.detectedAt)
    const group: StoredFlip[] = entry.kind === 'ping' ? [...(history.flipsOfPings.get(entry.id) ?? [])] : [entry]
    // Excused, and down all the same: one look of the evaluator, two entries.
    const [next] = queue
    if (
      entry.kind === 'flip' &&
      entry.reason === 'outage' &&
      next?.kind === 'flip' &&
      next.detectedAt === entry.detectedAt
    ) {
      group.push(next)
      queue.shift()
    }
    const reached: CheckState[] = []
    const wrong: unknown[] = []
    for (const before of widen(spec, states, gaps, now)) {
      const event = eventFor(entry, gapsUntil(gaps, now), options)
      const outcome = transition(spec, before, event, now)
      const problem = compareOutcome(before, outcome, entry, group, history, now)
      if (problem === null) reached.push(outcome.state)
      else wrong.push(problem)
    }
    if (reached.length === 0) return `${entry.kind} ${entry.id}: ${JSON.stringify(wrong)}`
    states = distinct(reached)
  }
  const possible = widen(spec, states, gaps, Number.POSITIVE_INFINITY)
  // Who paused the check is not in its history.
  if (!possible.some((one) => isDeepStrictEqual(one, { ...state, pause: null })))
    return `its state is ${JSON.stringify(state)}, and its history gives ${JSON.stringify(possible)}`
  return null
}

function eventFor(entry: Entry, gaps: readonly Gap[], { isGiven }: ReplayOptions): CheckEvent {
  if (entry.kind === 'flip') {
    if (entry.reason === 'paused') return { kind: 'pause' }
    if (entry.reason === 'resumed') return { kind: 'resume' }
    return { kind: 'deadline', gaps }
  }
  const { type, runId, durationMs } = entry
  switch (type) {
    case 'success':
    case 'warn':
    case 'fail':
      return { kind: type, runId, durationMs: durationMs !== null && isGiven(durationMs) ? durationMs : null }
    case 'start':
      return { kind: 'start', runId }
    case 'log':
      return { kind: 'log' }
  }
}

/** Null when the core says what was stored: the duration, the flips, and the events of the flips. */
function compareOutcome(
  before: CheckState,
  outcome: Outcome,
  entry: Entry,
  stored: readonly StoredFlip[],
  { events }: History,
  now: Instant,
): unknown {
  if (entry.kind === 'ping' && entry.durationMs !== outcome.durationMs)
    return { storedDurationMs: entry.durationMs, replayedDurationMs: outcome.durationMs }
  const expected: { flip: Flip; notice: Outcome['notice']; gap: Gap | null; isHeld?: boolean }[] = []
  const { outage, flip, notice, heldBy, counted } = outcome
  if (outage !== null)
    expected.push({
      flip: { from: before.status, to: before.status, reason: 'outage', at: outage.endedAt },
      notice: null,
      gap: outage,
    })
  if (flip !== null) expected.push({ flip, notice, gap: null, isHeld: heldBy !== null })
  if (counted !== null)
    expected.push({ flip: { from: before.status, to: before.status, ...counted }, notice: null, gap: null })

  const storedFlips = stored.map(({ from, to, reason, at, detectedAt }) => ({ from, to, reason, at, detectedAt }))
  const replayedFlips = expected.map(({ flip: { from, to, reason, at } }) => ({
    from,
    to,
    reason,
    at,
    detectedAt: now,
  }))
  if (!isDeepStrictEqual(storedFlips, replayedFlips)) return { storedFlips, replayedFlips }
  if (entry.kind === 'flip' && stored.length === 0) return { missing: entry }

  const storedEvents = stored.map(({ id }) =>
    (events.get(id) ?? []).map(({ type, data }) => ({ type, data: withoutContext(data as EventFacts) })),
  )
  // Without a channel that would want it, what is held is not stored.
  const replayedEvents = expected.map(({ flip: one, notice: noticed, gap, isHeld }) => {
    const event = isHeld ? null : eventOf(one, { notice: noticed, detectedAt: now, gap })
    return event === null ? [] : [event]
  })
  return isDeepStrictEqual(storedEvents, replayedEvents) ? null : { storedEvents, replayedEvents }
}

/** What is read beside the check, such as the usual duration, does not follow from its history here. */
function withoutContext({
  incident_at: _incident,
  last_success_at: _success,
  missed_runs: _missed,
  usual_ms: _usual,
  ...data
}: EventFacts) {
  return data
}

/** The states, and those that the evaluator may have made of them until `until` by sparing them on account of gaps. */
function widen(spec: CheckSpec, states: readonly CheckState[], gaps: readonly Gap[], until: Instant): CheckState[] {
  const all = [...states]
  for (const [index, { endedAt }] of gaps.entries()) {
    for (const state of [...all]) {
      // The first look at which it had passed and the gap was known; a later one would have come to the same.
      const lookedAt = Math.max(evaluationOf(spec, state) ?? Number.POSITIVE_INFINITY, endedAt)
      if (lookedAt === Number.POSITIVE_INFINITY || lookedAt > until) continue
      const {
        state: spared,
        flip,
        outage,
      } = transition(spec, state, { kind: 'deadline', gaps: gaps.slice(0, index + 1) }, lookedAt)
      if (flip === null && outage === null) all.push(spared)
    }
  }
  return distinct(all)
}

function gapsUntil(gaps: readonly Gap[], now: Instant): Gap[] {
  return gaps.filter(({ endedAt }) => endedAt <= now)
}

function distinct(states: readonly CheckState[]): CheckState[] {
  return states.filter((state, index) => states.findIndex((other) => isDeepStrictEqual(state, other)) === index)
}

function readHistories(database: Database): Promise<History[]> {
  return database.transaction(async (tx) => {
    const { rows: keys } = await tx.query<{ key: number }>('select check_key as key from check_states')
    const checks = await lockStates(
      tx,
      keys.map(({ key }) => key),
    )
    const gaps = await readGaps(tx)
    return Promise.all(checks.map((check) => readHistory(tx, check, gaps)))
  })
}

/** As store/history/gaps.ts hands them to the evaluator. */
async function readGaps(tx: Queryable): Promise<Gap[]> {
  const { rows } = await tx.query<Gap>(
    'select started_at as "startedAt", ended_at as "endedAt" from gaps order by started_at',
  )
  return rows.map(({ startedAt, endedAt }) => ({ startedAt: Math.floor(startedAt), endedAt: Math.ceil(endedAt) }))
}

async function readHistory(tx: Queryable, check: LockedCheck, gaps: readonly Gap[]): Promise<History> {
  const [pings, flips, events] = await Promise.all([
    tx.query<Omit<StoredPing, 'kind' | 'type'> & { type: number }>(
      'select id, type, duration_ms as "durationMs", run_id as "runId", created_at as at from pings where check_key = $1',
      [check.key],
    ),
    tx.query<Omit<StoredFlip, 'kind' | 'from' | 'to'> & { from: number | null; to: number }>(
      'select id, at, detected_at as "detectedAt", from_status as "from", to_status as "to", reason, ping_id as "pingId" from flips where check_key = $1',
      [check.key],
    ),
    tx.query<StoredEvent>('select flip_id as "flipId", type, data from events where check_key = $1', [check.key]),
  ])
  const storedPings = pings.rows.map((row): StoredPing => ({ ...row, kind: 'ping', type: PING_TYPES[row.type]! }))
  const storedFlips = flips.rows.map(
    (row): StoredFlip => ({
      ...row,
      kind: 'flip',
      from: row.from === null ? null : STATUSES[row.from]!,
      to: STATUSES[row.to]!,
    }),
  )
  const own = [...storedPings, ...storedFlips.filter(({ pingId }) => pingId === null)]
  return {
    check,
    gaps,
    entries: own.sort((a, b) => (a.id < b.id ? -1 : 1)),
    flipsOfPings: Map.groupBy(
      storedFlips.filter(({ pingId }) => pingId !== null),
      ({ pingId }) => pingId!,
    ),
    events: Map.groupBy(events.rows, ({ flipId }) => flipId),
  }
}
