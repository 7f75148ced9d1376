/**
 * Finds checks whose deadline has passed. Every replica runs it: rows are claimed with `skip locked`, the deadline is
 * decided again under the lock, and the flip is written in the same transaction, so two replicas never make two flips
 * and a ping that committed first wins.
 */

import type { FlipReason } from '../../domain/check.ts'
import { type RowVersion, saveChanges } from '../../store/checks/change-sets.ts'
import { type LockedCheck, lockDueStates, postponeWake } from '../../store/checks/states.ts'
import { listGaps, SHORTEST_GAP_MS } from '../../store/history/gaps.ts'
import { isEventWanted } from '../../store/outbox/channels.ts'
import type { Database } from '../../store/postgres/database.ts'
import { decideChanges } from '../change.ts'
import type { RememberedChecks } from '../ping/remembered-checks.ts'

export interface ExpireOptions {
  readonly database: Database
  readonly remembered: RememberedChecks
  readonly batch: number
  /** Pings that arrived in time may still wait in this process. */
  readonly oldestPingWaitMs: () => number
  readonly monotonicMs: () => number
  /** `reason` is one of EVALUATOR_FLIP_REASONS. */
  readonly onFlip: (reason: string, detectionSeconds: number) => void
  readonly onFailed: (error: unknown, checkKey: number) => void
}

/** When the database answered only after this, pings have queued up behind the same stall: let them commit first. */
const STALL_MS = 500
/** A check that cannot be decided (its stored schedule makes no sense) is looked at again after this. */
const POSTPONE_MS = 300_000
const BUDGET_MS = 4_000

/** Each flip writes an event and its deliveries, and a ping of that moment waits for all of a batch. */
export const SMALLEST_BATCH = 5
export const LARGEST_BATCH = 320

/**
 * How many to take next. A check that pings once a period comes here once a period, only to be put off, which is cheap: where that
 * is most of the work it is done in large batches, or 100,000 checks of a minute could not be kept up with.
 */
export function nextBatch(batch: number, { flips, isFull }: { flips: number; isFull: boolean }): number {
  if (!isFull || flips > SMALLEST_BATCH) return SMALLEST_BATCH
  return flips * 2 > batch ? batch : Math.min(LARGEST_BATCH, batch * 2)
}

/** The flips that a passed deadline can cause. */
export const EVALUATOR_FLIP_REASONS = ['missed', 'overran', 'outage'] as const satisfies FlipReason[]

class Stalled extends Error {}

/** One batch; `'again'` when it was full. */
export async function expireOverdue({
  database,
  remembered,
  batch,
  oldestPingWaitMs,
  monotonicMs,
  onFlip,
  onFailed,
}: ExpireOptions): Promise<'again' | 'done'> {
  if (oldestPingWaitMs() > STALL_MS) return 'done'
  try {
    let version: RowVersion | null = null
    const { flips, failed, claimed, after } = await database.session((session) =>
      session.groupTransaction(BUDGET_MS, async (tx) => {
        const askedAt = monotonicMs()
        const { now, checks } = await lockDueStates(tx, batch, SHORTEST_GAP_MS)
        if (monotonicMs() - askedAt > STALL_MS) throw new Stalled()
        if (checks.length === 0)
          return { result: { flips: [], failed: [], claimed: 0, after: [] }, save: async () => {} }

        const [gaps, isLateWanted] = await Promise.all([
          listGaps(tx, Math.min(now, ...checks.filter(({ spec }) => spec !== null).map(awaitedSince))),
          isEventWanted(tx, 'check.late'),
        ])
        const changes = checks.map(({ key }) => ({ key, event: { kind: 'deadline' as const, gaps }, at: now }))
        const { decisions, changeSet, after } = decideChanges(checks, changes, { isLateWanted })
        const failed = decisions.flatMap((decision, index) =>
          decision.kind === 'failed' ? [{ key: checks[index]!.key, error: decision.error }] : [],
        )
        const save = async () => {
          const put = failed.map(({ key }) => key)
          const [saved] = await Promise.all([
            saveChanges(tx, changeSet),
            put.length > 0 ? postponeWake(tx, put, now + POSTPONE_MS) : undefined,
          ])
          version = saved
        }
        return { result: { flips: changeSet.flips, failed, claimed: checks.length, after }, save }
      }),
    )
    if (version !== null) remembered.renew(after, version)
    for (const flip of flips) onFlip(flip.reason, Math.max(0, flip.detectedAt - flip.at) / 1_000)
    for (const { key, error } of failed) onFailed(error, key)
    return claimed === batch ? 'again' : 'done'
  } catch (error) {
    if (error instanceof Stalled) return 'done'
    throw error
  }
}

/** Gaps that ended before it cannot have hidden anything: neither a completion nor the end of an open run. */
function awaitedSince({ state }: LockedCheck): number {
  return Math.min(state.lastPingAt ?? state.since, ...state.runs.map((run) => run.startedAt))
}
