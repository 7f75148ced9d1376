/** The newest run of a check that follows a source (a CronJob), in the words of its status. Times are those of the API server: ISO 8601, UTC. */

/** The only kind of source so far. */
export const SOURCE_KIND = 'CronJob'

export const RUN_OUTCOMES = ['Running', 'Succeeded', 'Warned', 'Failed', 'Deleted'] as const
export type RunOutcome = (typeof RUN_OUTCOMES)[number]

export interface LastRun {
  /** The name of the Job. */
  readonly job: string
  readonly startTime: string | null
  readonly completionTime: string | null
  readonly outcome: RunOutcome
  readonly exitCode: number | null
  /** One word, of the container, the pod or the Job's condition: OOMKilled. */
  readonly reason: string | null
  /** A sentence for people. */
  readonly message: string | null
  /**
   * The Job's uid. It is stored, and no response contains it. Left out in a report, which has the id beside the run.
   */
  readonly runId?: string
}

/** The longest `message` of a run, and the longest detail of a flip, in characters. */
export const DETAIL_CHARS = 1_024

/**
 * The one to show, of what is stored and what is reported, in any order. A run that has ended stays so: two controllers may report it, one of them
 * late. Of two runs the one that started later counts.
 */
export function newerRun(stored: LastRun | null, reported: LastRun | null): LastRun | null {
  if (stored === null || reported === null) return stored ?? reported
  // A Job that was deleted may be made again under its name.
  if (stored.runId === reported.runId) return hasEnded(stored) && !hasEnded(reported) ? stored : reported
  return startOf(reported) >= startOf(stored) ? reported : stored
}

const hasEnded = ({ outcome }: LastRun) => outcome !== 'Running'

/** A run without any time is older than all others. */
function startOf({ startTime, completionTime }: LastRun): number {
  const at = Date.parse(startTime ?? completionTime ?? '')
  return Number.isNaN(at) ? Number.NEGATIVE_INFINITY : at
}
