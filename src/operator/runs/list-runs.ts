/**
 * What the caches show of the runs of a source: the runs that exist, and the runs that went within the last minutes.
 */

import type { Instant } from '../../domain/check.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import { hasEnded, type SourceRun } from '../sources/source-kind.ts'
import type { GoneRun, SourceWatch } from '../sources/watch-sources.ts'
import { isOfFormer } from './close-gone.ts'
import { describeDeletion, describeRun, describeSuspension, type RunReport } from './describe-run.ts'
import { findReplacement } from './find-replacement.ts'

export interface ListedRun {
  readonly run: SourceRun
  readonly isGone: boolean
  /** The report of a failure says only what the run itself shows. */
  readonly report: RunReport
}

export interface Listed {
  readonly runs: readonly ListedRun[]
  /** Uids of runs that are gone; whether these runs ended was not seen. */
  readonly lost: readonly string[]
}

/** @param gone of this source */
export function listRuns(sources: SourceWatch, source: string, gone: readonly GoneRun[], now: Instant): Listed {
  const { kind } = sources
  const { name } = splitKey(source)
  const runs: ListedRun[] = []
  const lost: string[] = []
  const add = (run: SourceRun, isGone: boolean) => {
    const isHeld = run.suspended && !hasEnded(run)
    const report = isHeld ? describeSuspension(kind, name, run, now) : describeRun(kind, name, run)
    if (report !== null) runs.push({ run, isGone, report })
  }
  const uid = sources.getSource(source)?.metadata.uid
  for (const run of uid === undefined ? [] : sources.runsOf(uid)) add(run, false)
  for (const { run, isListed, at } of gone) {
    if (isOfFormer(sources, source, run) || (isListed && !hasEnded(run))) lost.push(run.metadata.uid)
    else if (hasEnded(run)) add(run, true)
    else {
      const replacement = findReplacement(sources, source, run, at)
      runs.push({ run, isGone: true, report: describeDeletion(kind, name, run, { at, replacement }) })
    }
  }
  return { runs, lost }
}
