/**
 * Reports of a run in progress that a container has failed, or that the main one has ended, while others keep the pod
 * running: such a pod fails late or never ends, and the maximum run time may be hours away.
 */

import { splitKey } from '../../kubernetes/objects.ts'
import { explainKept } from '../reasons/explain-kept.ts'
import type { SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import { describeRun, type RunReport } from './describe-run.ts'

export interface KeptRunsOptions {
  readonly sources: SourceWatch
  /** @param source its key */
  readonly report: (source: string, found: RunReport) => void
}

/** Returns a function that ends it. */
export function reportKeptRuns({ sources, report }: KeptRunsOptions): () => void {
  /** The runs in progress, by uid. `said`: what was reported; null: nothing is wrong. */
  const running = new Map<string, { source: string; run: SourceRun; said: string | null }>()

  function look(uid: string): void {
    const known = running.get(uid)
    if (known === undefined) return
    const { source, run, said } = known
    const kept = explainKept(sources.podsOf(run.metadata))
    if ((kept?.firstLine ?? null) === said) return
    known.said = kept?.firstLine ?? null
    const found = describeRun(sources.kind, splitKey(source).name, run, kept)
    if (found !== null) report(source, found)
  }

  function note(source: string | null, run: SourceRun): void {
    const { uid } = run.metadata
    if (source === null || run.outcome !== 'Running' || run.suspended) running.delete(uid)
    else {
      running.set(uid, { source, run, said: running.get(uid)?.said ?? null })
      look(uid)
    }
  }

  for (const { metadata } of sources.sources())
    for (const run of sources.runsOf(metadata.uid)) note(`${metadata.namespace}/${metadata.name}`, run)
  const ends = [
    sources.onPod(look),
    sources.onRun((source, { before, after }) => {
      if (after === undefined) running.delete(before!.metadata.uid)
      else note(source, after)
    }),
  ]
  return () => {
    for (const end of ends) end()
  }
}
