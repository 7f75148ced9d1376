/**
 * Why a run failed, as soon as its pods are seen: the watch of pods may be a moment behind that of Jobs, and pods go
 * with their Job.
 */

import { type Clock, waitForEvent } from '../../runtime/clock.ts'
import { explainFailure, type Failure } from '../reasons/explain-failure.ts'
import type { LogReader } from '../reasons/read-logs.ts'
import type { TrimmedPod } from '../reasons/trim-pod.ts'
import type { SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'

export interface FailureExplainer {
  /** Waits for the pods that the run counts, for a second at most, and for the log. Does not reject. */
  explain(run: SourceRun): Promise<Failure>
  /** From what is known now. */
  explainNow(run: SourceRun): Failure
}

export interface FailureExplainerOptions {
  readonly sources: Pick<SourceWatch, 'podsOf' | 'onPod'>
  readonly clock: Clock
  /** When it aborts, what is known explains a run. */
  readonly signal: AbortSignal
  /** Null: no log is read. */
  readonly logs: LogReader | null
}

const WAIT_MS = 1_000

export function createFailureExplainer({ sources, clock, signal, logs }: FailureExplainerOptions): FailureExplainer {
  const explainNow = (run: SourceRun, log: string | null = null) =>
    explainFailure(run, sources.podsOf(run.metadata), log)

  async function whenPodsAreSeen(run: SourceRun): Promise<void> {
    const isSeen = () => sources.podsOf(run.metadata).filter(hasFailed).length >= run.failedPods
    if (isSeen()) return
    await waitForEvent(clock, WAIT_MS, signal, (onSeen) =>
      sources.onPod((runUid) => {
        if (runUid === run.metadata.uid && isSeen()) onSeen()
      }),
    )
  }

  return {
    async explain(run) {
      await whenPodsAreSeen(run)
      const failure = explainNow(run)
      if (logs === null || failure.container === null || signal.aborted) return failure
      const log = await logs.read(run.metadata.namespace, failure.container, signal)
      return log === null ? failure : explainNow(run, log)
    },
    explainNow,
  }
}

function hasFailed({ phase, status, disruption, containers }: TrimmedPod): boolean {
  return (
    phase === 'Failed' || status !== null || disruption !== null || containers.some(({ failed }) => failed !== null)
  )
}
