/**
 * Which run a source started in the place of one that had not ended: with concurrencyPolicy Replace, a CronJob deletes
 * the Job of the slot before and then creates the next one. Of a Job that a person deletes there is none. Pure, apart
 * from the caches that it reads.
 */

import type { Instant } from '../../domain/check.ts'
import type { SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'

type Sources = Pick<SourceWatch, 'getSource' | 'runsOf'>

/** So far the clock of a cluster may differ from the database's. CronJobs start a Job once a minute at most. */
const CLOCKS_MS = 60_000
/**
 * And so far for a deletion, whose time is near: only one that happened seconds before the slot may be taken for a
 * replacement.
 */
const EARLY_MS = 5_000

/**
 * Whether the source may have deleted it. It leaves Jobs alone that a person made from it; one that has not started is
 * missed.
 */
export function mayBeReplaced({ getSource }: Pick<Sources, 'getSource'>, source: string, run: SourceRun): boolean {
  const { metadata, concurrencyPolicy } = getSource(source) ?? {}
  return (
    concurrencyPolicy === 'Replace' && metadata?.uid === run.sourceUid && run.outcome === 'Running' && !run.isManual
  )
}

/**
 * Returns null if there is none, or not yet.
 *
 * @param at when the run was deleted
 */
export function findReplacement(sources: Sources, source: string, run: SourceRun, at: Instant): SourceRun | null {
  if (!mayBeReplaced(sources, source, run)) return null
  for (const other of sources.runsOf(run.sourceUid!)) {
    // The CronJob deletes when the next slot has come: a Job that is deleted before it was deleted by a person.
    const isDue = other.slotAt > run.slotAt && other.slotAt <= at + EARLY_MS
    const isNext = isDue && Math.abs(other.createdAt - at) <= CLOCKS_MS
    if (isNext && !other.isManual) return other
  }
  return null
}
