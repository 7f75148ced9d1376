/**
 * How long a check was up. Late is a part of up. New and paused time counts as neither up nor down, and so does time
 * that the history does not reach, and our own gaps: a check is not down because we were.
 */

import { type Flip, type Gap, type Instant, isChange, type StoredStatus } from './check.ts'

/** An interval in which a check had one status. */
export interface StatusSpan {
  readonly status: StoredStatus
  readonly from: Instant
  readonly to: Instant
}

/** What the history says of a check's status. */
export interface StatusHistory {
  /** Newest first. */
  readonly flips: readonly Pick<Flip, 'from' | 'to' | 'reason' | 'at'>[]
  readonly state: { readonly status: StoredStatus; readonly since: Instant }
  /** No flip from this time on is missing. Null: not known. */
  readonly completeFrom: Instant | null
}

/**
 * The statuses that are known until `now`, oldest first. Between a flip and one that does not continue it nothing is known: a resource that was
 * deleted and created again.
 */
export function statusSpans({ flips, state, completeFrom }: StatusHistory, now: Instant): StatusSpan[] {
  const spans: StatusSpan[] = []
  const add = (status: StoredStatus, from: Instant, to: Instant) => {
    if (to > from) spans.push({ status, from, to })
  }
  let before: { status: StoredStatus; at: Instant } | null = null
  for (const flip of flips.filter(isChange).reverse()) {
    // A missed ping is dated at its deadline, which a gap or a changed spec may have moved; no span is negative.
    const at = Math.min(now, Math.max(flip.at, before?.at ?? flip.at))
    if (before === null) {
      if (flip.from !== null && completeFrom !== null) add(flip.from, completeFrom, at)
    } else if (before.status === flip.from) add(before.status, before.at, at)
    before = { status: flip.to, at }
  }
  if (before === null) add(state.status, state.since, now)
  else if (before.status === state.status) add(state.status, before.at, now)
  return spans
}

export interface Uptime {
  /** From 0 to 1; null when the check was neither up nor down. */
  readonly share: number | null
  readonly upMs: number
  readonly downMs: number
  /** How often it was down, which includes the beginning of the window. */
  readonly downs: number
  /** Our own gaps while the check was up or down, which count as neither. */
  readonly gapMs: number
  /** The first time of the window in which the check was up or down; null: none. */
  readonly since: Instant | null
}

/** `spans` and `gaps` are in order of time; gaps may overlap. */
export function measureUptime(
  spans: readonly StatusSpan[],
  gaps: readonly Gap[],
  window: { readonly from: Instant; readonly to: Instant },
): Uptime {
  const hidden = joinGaps(gaps)
  let [upMs, downMs, downs, gapMs] = [0, 0, 0, 0]
  let since: Instant | null = null
  let next = 0
  for (const { status, ...span } of spans) {
    const from = Math.max(span.from, window.from)
    const to = Math.min(span.to, window.to)
    if (to <= from || (status !== 'up' && status !== 'down')) continue
    since ??= from
    while (next < hidden.length && hidden[next]!.endedAt <= from) next += 1
    let lostMs = 0
    // A gap may continue in the next span.
    for (let at = next; at < hidden.length && hidden[at]!.startedAt < to; at += 1)
      lostMs += Math.min(hidden[at]!.endedAt, to) - Math.max(hidden[at]!.startedAt, from)
    gapMs += lostMs
    if (status === 'up') upMs += to - from - lostMs
    else {
      downMs += to - from - lostMs
      downs += 1
    }
  }
  const countedMs = upMs + downMs
  return { share: countedMs > 0 ? upMs / countedMs : null, upMs, downMs, downs, gapMs, since }
}

function joinGaps(gaps: readonly Gap[]): Gap[] {
  const joined: Gap[] = []
  for (const gap of gaps) {
    const last = joined.at(-1)
    if (last !== undefined && gap.startedAt <= last.endedAt)
      joined[joined.length - 1] = { startedAt: last.startedAt, endedAt: Math.max(last.endedAt, gap.endedAt) }
    else joined.push(gap)
  }
  return joined
}
