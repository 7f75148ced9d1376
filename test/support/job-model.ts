/**
 * An independent model of a check that follows a CronJob: from a list of Jobs it says what the history must be. It shares no code with the
 * product, and holds no expectation that moves: it looks at the whole list again for each slot.
 */

import fc from 'fast-check'

export interface ModelJob {
  readonly uid: string
  /** The slot that it was created for, or its creation. */
  readonly slotAt: number
  /** Null: no pod of it ever ran. */
  readonly startedAt: number | null
  readonly end: { readonly kind: 'success' | 'fail' | 'log'; readonly at: number } | null
}

export interface ModelCheck {
  readonly createdAt: number
  /** A slot every so often, from the epoch on. */
  readonly everyMs: number
  readonly graceMs: number
  readonly maxRuntimeMs: number
}

export interface ModelEntry {
  readonly job: ModelJob
  readonly type: 'start' | 'success' | 'fail' | 'log'
  readonly at: number
}

export interface ModelFlip {
  readonly to: 'up' | 'down'
  readonly reason: 'first_success' | 'recovered' | 'failed' | 'missed' | 'overran'
  readonly at: number
}

export interface ModelHistory {
  readonly status: 'new' | 'up' | 'down'
  readonly flips: readonly ModelFlip[]
  readonly lastPingAt: number | null
  readonly lastSuccessAt: number | null
  readonly lastStartAt: number | null
}

/** What the Jobs report, in the order in which it happens; at equal times a start before an end. */
export function entriesOf(jobs: readonly ModelJob[]): ModelEntry[] {
  const entries = jobs.flatMap((job): ModelEntry[] => [
    ...(job.startedAt === null ? [] : [{ job, type: 'start' as const, at: job.startedAt }]),
    ...(job.end === null ? [] : [{ job, type: job.end.kind, at: job.end.at }]),
  ])
  const rank = ({ type }: ModelEntry) => (type === 'start' ? 0 : 1)
  return entries.sort((a, b) => a.at - b.at || rank(a) - rank(b))
}

/**
 * The history when everything is recorded in the order in which it happens, and deadlines are evaluated at the times `seen`, ascending: at each of
 * them everything up to then is recorded. `seen` begins with the creation of the check or later.
 */
export function historyOf(check: ModelCheck, jobs: readonly ModelJob[], seen: readonly number[]): ModelHistory {
  const { createdAt, everyMs, graceMs, maxRuntimeMs } = check
  const entries = entriesOf(jobs)
  const flips: ModelFlip[] = []
  let status: ModelHistory['status'] = 'new'
  let since = createdAt
  /** Slots up to here are not awaited: from before the check, or from while it was down. */
  let awaitedAfter = createdAt
  let recoveredAt = Number.NEGATIVE_INFINITY
  const open = new Set<ModelJob>()
  let lastStartAt = Number.NEGATIVE_INFINITY
  /** Once no run is open, nothing but the time of the last start is known of what a slot has seen while the check is down. */
  let closedUpTo = Number.NEGATIVE_INFINITY
  /** Of which no pod ever ran, and which ended while the check was down: their slots are not known then. */
  const forgotten = new Set<ModelJob>()

  const flip = (to: 'up' | 'down', reason: ModelFlip['reason'], time: number) => {
    since = Math.max(since, time)
    status = to
    flips.push({ to, reason, at: since })
  }
  const follow = ({ job, type, at }: ModelEntry) => {
    if (type !== 'start') return void open.delete(job)
    if (open.size === 0) closedUpTo = lastStartAt
    lastStartAt = Math.max(lastStartAt, at)
    open.add(job)
  }
  const record = (entry: ModelEntry) => {
    const { job, type, at } = entry
    follow(entry)
    if (type === 'fail' && status !== 'down') flip('down', 'failed', at)
    if (status === 'down' && job.startedAt === null) forgotten.add(job)
    if (type !== 'success') return
    if (status === 'new') flip('up', 'first_success', at)
    else if (status === 'down') {
      flip('up', 'recovered', at)
      recoveredAt = since
      // What was due by now is not awaited: no run can satisfy it any more.
      awaitedAfter = Math.max(since - graceMs, closedUpTo)
    }
  }
  const isSatisfied = (slot: number, known: number) =>
    jobs.some((job) => {
      const { slotAt, startedAt, end } = job
      if (startedAt !== null) return startedAt <= known && slotAt >= slot
      return !forgotten.has(job) && end !== null && end.kind !== 'log' && end.at <= known && end.at >= slot
    })
  const missedAt = (known: number) => {
    for (let slot = (Math.floor(awaitedAfter / everyMs) + 1) * everyMs; slot + graceMs <= known; slot += everyMs)
      if (!isSatisfied(slot, known)) return slot + graceMs
    return Number.POSITIVE_INFINITY
  }
  const isOverTimeAt = ({ startedAt }: ModelJob) => {
    const at = startedAt! + maxRuntimeMs
    if (startedAt! >= createdAt) return at
    // The check did not see it begin.
    return at <= createdAt ? Number.POSITIVE_INFINITY : Math.max(at, createdAt + graceMs)
  }
  const overranAt = (known: number) =>
    Math.min(
      ...jobs
        .filter(({ startedAt, end }) => startedAt !== null && startedAt <= known && (end === null || end.at > known))
        .map(isOverTimeAt)
        .filter((at) => at <= known && at > recoveredAt),
    )
  const evaluate = (known: number) => {
    const [missed, overran] = [missedAt(known), overranAt(known)]
    if (status === 'down' || Math.min(missed, overran) > known) return
    flip('down', missed <= overran ? 'missed' : 'overran', Math.min(missed, overran))
  }

  const past = entries.filter(({ at }) => at < createdAt)
  const newest = past.findLast(({ type }) => type === 'success' || type === 'fail')
  if (newest?.type === 'success') flip('up', 'first_success', createdAt)
  for (const entry of past) follow(entry)
  let recorded = past.length
  for (const known of seen) {
    for (; recorded < entries.length && entries[recorded]!.at <= known; recorded += 1) record(entries[recorded]!)
    evaluate(known)
  }

  const known = entries.slice(0, recorded)
  const last = (...types: ModelEntry['type'][]) => known.findLast(({ type }) => types.includes(type))?.at ?? null
  return {
    status,
    flips,
    lastPingAt: last('success', 'fail'),
    lastSuccessAt: last('success'),
    lastStartAt: last('start'),
  }
}

/** Jobs of about an hour and a half, in any order of their lives; no two end in the same second. */
export function anyJobs(check: ModelCheck, from: number): fc.Arbitrary<ModelJob[]> {
  const slots = 9
  const seconds = (max: number) => fc.integer({ min: 0, max }).map((count) => count * 1_000)
  const job = fc.record({
    slot: fc.nat(slots - 1),
    /** A manual run is for no slot. */
    afterSlotMs: fc.option(seconds(check.everyMs / 1_000), { nil: 0, freq: 4 }),
    startsAfterMs: fc.option(fc.oneof(seconds(3), seconds(500)), { nil: null, freq: 8 }),
    lastsMs: fc.option(fc.oneof(seconds(30), seconds(1_800)), { nil: null, freq: 8 }),
    kind: fc.constantFrom('success' as const, 'success' as const, 'success' as const, 'fail' as const, 'log' as const),
  })
  return fc.array(job, { minLength: 1, maxLength: 14 }).map((jobs) => {
    const ends = new Set<number>()
    return jobs.map(({ slot, afterSlotMs, startsAfterMs, lastsMs, kind }, index): ModelJob => {
      const slotAt = from + slot * check.everyMs + afterSlotMs
      const startedAt = startsAfterMs === null ? null : slotAt + startsAfterMs
      const uid = `0190b8a0-0000-7000-8000-${String(index).padStart(12, '0')}`
      if (lastsMs === null) return { uid, slotAt, startedAt, end: null }
      let at = (startedAt ?? slotAt) + lastsMs
      while (ends.has(at)) at += 1_000
      ends.add(at)
      // A Job of which no pod ever ran does not succeed.
      return { uid, slotAt, startedAt, end: { kind: startedAt === null && kind === 'success' ? 'fail' : kind, at } }
    })
  })
}
