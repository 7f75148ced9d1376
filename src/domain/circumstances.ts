/**
 * What outside of a check decides who is notified of it (design, section 4, "Quiet"): the silence that covers it, the
 * checks that it depends on, and the channels that are notified after a while.
 */

import type { Hold, Instant, StoredStatus } from './check.ts'

/** From when until when something holds. */
export interface Span {
  readonly from: Instant
  readonly until: Instant
}

/** A check that another one depends on. */
export interface Dependency {
  readonly id: string
  readonly status: StoredStatus
  readonly since: Instant
  /** When the evaluator looks at it next; null: it awaits nothing. */
  readonly wakeAt: Instant | null
}

export interface Circumstances {
  /** Of the silences that cover the check, the last to end; null: none does. */
  readonly silence: (Span & { readonly id: string }) | null
  readonly dependencies: readonly Dependency[]
  /** Of the channels that want its `check.down` later: their `after_seconds` in milliseconds, each once, ascending. */
  readonly escalations: readonly number[]
}

export const NO_CIRCUMSTANCES: Circumstances = { silence: null, dependencies: [], escalations: [] }

/** The cause of a hold is read again after this time at the latest: a change of it may have been missed. */
export const LOOK_MS = 60_000
/** A missed run waits so long for the evaluation of a check with the same deadline. */
const TIE_MS = 5_000

interface Held {
  readonly status: StoredStatus
  /** Why it has its status. */
  readonly reason: string | null
  /** So far. */
  readonly hold: Hold | null
}

/** Why the recipients of a check in this status are not notified at `now`; null: they are. A silence comes first. */
export function holdAt(graceMs: number, held: Held, around: Circumstances, now: Instant): Hold | null {
  const { silence } = around
  if (silence === null) return held.status === 'down' ? dependencyHold(graceMs, held, around.dependencies, now) : null
  const silencedFrom = held.hold?.silencedFrom ?? silence.from
  const lookAt = Math.min(silence.until, now + LOOK_MS)
  return { by: 'silence', id: silence.id, from: silence.from, silencedFrom, lookAt }
}

/** The first of them that is down. */
export const downAmong = (dependencies: readonly Dependency[]): Dependency | undefined =>
  dependencies.find(({ status }) => status === 'down')

/**
 * The check waits while another one is down, and for its own grace time after that one has recovered. One that is
 * paused or taken away holds nothing.
 */
function dependencyHold(
  graceMs: number,
  { reason, hold: before }: Held,
  dependencies: readonly Dependency[],
  now: Instant,
): Hold | null {
  const from = before?.by === 'dependency' ? before.from : now
  const silencedFrom = before?.silencedFrom ?? null
  const holdBy = ({ id }: Dependency, until: Instant): Hold => {
    return { by: 'dependency', id, from, silencedFrom, lookAt: Math.min(until, now + LOOK_MS) }
  }
  const down = downAmong(dependencies)
  if (down !== undefined) return holdBy(down, Number.POSITIVE_INFINITY)
  for (const dependency of dependencies) {
    const { status, since } = dependency
    if (status === 'up' && since > from && now < since + graceMs) return holdBy(dependency, since + graceMs)
  }
  // Whichever of two equal deadlines is found first.
  const isTie = reason !== 'failed' && now < from + TIE_MS
  const overdue = isTie ? dependencies.find(({ wakeAt }) => wakeAt !== null && wakeAt <= now) : undefined
  return overdue === undefined ? null : holdBy(overdue, from + TIE_MS)
}
