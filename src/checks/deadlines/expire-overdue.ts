/**
 * Evaluates checks whose wakeAt has passed. Every replica does: rows are locked with `skip locked`, and the flip is decided and written under the
 * lock. So two replicas never make two flips, and a ping that committed first wins.
 */

import type { FlipReason, Gap, Instant } from '../../domain/check.ts'
import { FLAPPING } from '../../domain/limits.ts'
import { saveChanges } from '../../store/checks/change-sets.ts'
import { type DueCheck, type LockedCheck, lockDueStates, postponeWake } from '../../store/checks/states.ts'
import { listGaps, SHORTEST_GAP_MS } from '../../store/history/gaps.ts'
import { type DeadlineSource, readDeadlineSources } from '../../store/jobs/cron-jobs.ts'
import { isEventWanted } from '../../store/outbox/channels.ts'
import type { Database } from '../../store/postgres/database.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { type Around, type Decided, decideChanges, inCircumstances, type Waking } from '../change.ts'

export interface ExpireOptions {
  readonly database: Database
  /** Milliseconds of this process's clock. */
  readonly now: () => number
  /** Public ids of checks whose pings come first. Default: none. */
  readonly awaited?: readonly string[]
}

/** The entries of the history that an evaluation can cause: a deadline, a gap, the end of a pause. */
export const EVALUATOR_FLIP_REASONS = ['missed', 'overran', 'outage', 'resumed'] as const satisfies FlipReason[]

/** What became of a batch. `reason` is one of EVALUATOR_FLIP_REASONS. */
export interface Expired {
  /** `seconds`: from the deadline until it was found. */
  readonly flips: readonly { readonly reason: string; readonly seconds: number }[]
  /** Checks that cannot be evaluated. They are put aside for five minutes. */
  readonly failed: readonly { readonly key: number; readonly error: unknown }[]
  /** More checks may be overdue. */
  readonly isFull: boolean
}

/** After a stall of the database, pings have queued up in this process: they commit first. */
export const STALL_MS = 500
const POSTPONE_MS = 300_000
const BUDGET_MS = 4_000
const NOTHING: Expired = { flips: [], failed: [], isFull: false }

class Stalled extends Error {}

/** Evaluates up to `limit` checks. Returns nothing expired where the database took too long to find them. */
export async function expireOverdue({ database, now, awaited }: ExpireOptions, limit: number): Promise<Expired> {
  try {
    return await database.session((session) =>
      session.groupTransaction(
        BUDGET_MS,
        async (tx) => {
          const askedAt = now()
          const due = await lockDueStates(tx, limit, SHORTEST_GAP_MS, awaited)
          if (now() - askedAt > STALL_MS) throw new Stalled()
          if (due.checks.length === 0) return null
          const followed = due.checks.filter(({ seenUntil }) => seenUntil !== null).map(({ key }) => key)
          const [gaps, isLateWanted, sources = []] = await inOrder([
            listGaps(tx, Math.min(due.now, ...due.checks.filter(({ spec }) => spec !== null).map(awaitedSince))),
            isEventWanted(tx, 'check.late'),
            followed.length > 0 ? readDeadlineSources(tx, followed) : undefined,
          ])
          const toDecide = (around: Around) => decide(due, gaps, sources, { isLateWanted }, around)
          const decided = await inCircumstances(tx, due.checks, due.now, toDecide)
          return { now: due.now, checks: due.checks.length, ...decided }
        },
        async (tx, due) => {
          if (due === null) return NOTHING
          const { changeSet, failed } = due
          const keys = failed.map(({ key }) => key)
          await inOrder([
            saveChanges(tx, changeSet),
            keys.length > 0 ? postponeWake(tx, keys, due.now + POSTPONE_MS) : undefined,
          ])
          return {
            flips: changeSet.flips.map(({ reason, detectedAt, at }) => ({
              reason,
              seconds: Math.max(0, detectedAt - at) / 1_000,
            })),
            failed,
            isFull: due.checks >= limit,
          }
        },
      ),
    )
  } catch (error) {
    if (error instanceof Stalled) return NOTHING
    throw error
  }
}

function decide(
  { now, checks }: { now: Instant; checks: DueCheck[] },
  gaps: readonly Gap[],
  sources: readonly DeadlineSource[],
  waking: Waking,
  around: Around,
): Pick<Decided, 'changeSet'> & Pick<Expired, 'failed'> {
  const sourceOf = new Map(sources.map((source) => [source.key, source]))
  const changes = checks.map(({ key, seenUntil }) => {
    const seen = seenUntil === null ? {} : { seenUntil }
    return { key, event: { kind: 'deadline' as const, gaps, ...seen }, at: now, source: sourceOf.get(key) }
  })
  const { decisions, changeSet } = decideChanges(checks, changes, waking, around)
  const failed = decisions.flatMap((decision, index) =>
    decision.kind === 'failed' ? [{ key: checks[index]!.key, error: decision.error }] : [],
  )
  return { changeSet, failed }
}

/** Gaps that ended earlier cannot have hidden anything: neither a completion, nor the end of an open run, nor a change of a check that flaps. */
function awaitedSince({ state }: LockedCheck): number {
  const { lastPingAt, since, quietAt, runs } = state
  const lastChangeAt = quietAt === null ? [] : [quietAt - FLAPPING.windowMs]
  return Math.min(lastPingAt ?? since, ...lastChangeAt, ...runs.map((run) => run.startedAt))
}
