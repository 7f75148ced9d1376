/** The CronJob that a check follows, and its last run: texts of the cluster, which are shown as text. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import type { CheckReview } from '../../../../checks/review-check.ts'
import type { Instant } from '../../../../domain/check.ts'
import type { LastRun, RunOutcome } from '../../../../domain/last-run.ts'
import { type Html, html, isolated } from '../../html.ts'
import { facts } from '../../ui/parts.ts'
import type { FollowedFacts, StuckJob } from '../../words/status-words.ts'
import { ago, durationWords } from '../../words/time-words.ts'
import { deleteJobCommand, renderCommand } from './check-kubernetes.ts'

/** Null for a check that follows no CronJob. */
export function followedOf({ check, flips }: Pick<CheckReview, 'check' | 'flips'>): FollowedFacts | null {
  if (check.spec.jobArea === null) return null
  return { detail: check.statusDetail ?? null, stuck: stuckOf(check, flips) }
}

/** The Job of the last change, if that takes too long or blocks others, and has not ended. */
function stuckOf({ state, cronJob }: CheckRecord, flips: CheckReview['flips']): StuckJob | null {
  const job = flips.find(({ reason }) => reason !== 'outage')?.job ?? null
  if (state.status !== 'down' || job === null) return null
  // A missed run names the Job that waits and has not started, or the Job that blocks it. A Job that took too long may
  // have ended since, or may have been replaced.
  const isStuck = state.reason === 'missed' || state.reason === 'overran'
  if (!isStuck || cronJob?.openJobs.includes(job) !== true) return null
  const { lastRun } = cronJob
  // Beside a run that takes too long a newer one may run.
  return { job, startedAt: readTime(lastRun?.job === job ? lastRun.startTime : null) }
}

/** What to do about a Job that does not end. `mayWrite`: the command has a button. */
export function renderStuck(
  { kubernetes }: CheckRecord,
  followed: FollowedFacts | null,
  mayWrite: boolean,
): Html | string {
  if (kubernetes === null || followed === null || followed.stuck === null) return ''
  return html`<p>If it hangs, delete the Job:</p>
${renderCommand('delete-job', deleteJobCommand(kubernetes, followed.stuck.job), mayWrite)}`
}

/** Nothing for a check that follows no CronJob. */
export function renderLastRun({ cronJob, kubernetes }: CheckRecord, now: Instant): Html {
  if (cronJob === undefined) return html``
  const { name, lastRun } = cronJob
  const place = kubernetes === null ? name : `${kubernetes.namespace}/${name}`
  return html`<section aria-labelledby="last-run-title">
<h2 id="last-run-title">Last run</h2>
<p>Of the CronJob <code>${isolated(place)}</code>, whose Jobs report by themselves.</p>
${lastRun === null ? html`<p class="muted">No run has started since it is monitored.</p>` : renderRun(lastRun, now)}
</section>`
}

const OUTCOME_WORDS: Readonly<Record<RunOutcome, string>> = {
  Running: 'Running',
  Succeeded: 'Succeeded',
  Failed: 'Failed',
  Deleted: 'Deleted before it ended',
}

function renderRun(run: LastRun, now: Instant): Html {
  const { job, outcome, exitCode, reason, message } = run
  const [start, end] = [readTime(run.startTime), readTime(run.completionTime)]
  const took = start === null || end === null ? '' : `, took ${durationWords(end - start)}`
  return facts([
    ['Outcome', OUTCOME_WORDS[outcome] ?? outcome],
    ['Job', html`<code>${isolated(job)}</code>`],
    ['Started', start && ago(start, now)],
    ['Ended', end && html`${ago(end, now)}${took}`],
    ['Exit code', exitCode],
    ['Reason', reason && isolated(reason)],
    ['Why', message && isolated(message), 'wide'],
  ])
}

/** Null: there is none, or it is no time. */
function readTime(text: string | null): Instant | null {
  const at = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(at) ? null : at
}
