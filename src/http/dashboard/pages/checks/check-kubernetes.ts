/** What Kubernetes knows of a check. Texts of the cluster are shown as text. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import type { CheckReview } from '../../../../checks/review-check.ts'
import { type Instant, isChange } from '../../../../domain/check.ts'
import type { LastRun, RunOutcome } from '../../../../domain/last-run.ts'
import { type Html, html, isolated } from '../../html.ts'
import { copyButton, facts, section } from '../../ui/parts.ts'
import type { FollowedFacts, StuckJob } from '../../words/status-words.ts'
import { ago, durationWords } from '../../words/time-words.ts'
import { wordForShell } from './literals.ts'

export type Resource = NonNullable<CheckRecord['kubernetes']>

/** The resource that declares the check. Null: the check belongs to the API. */
export function declarerOf({ managedBy, kubernetes }: Pick<CheckRecord, 'managedBy' | 'kubernetes'>): Resource | null {
  return managedBy === 'kubernetes' ? kubernetes : null
}

/** Nothing for a check that no resource declares or declared. `mayWrite`: the commands have buttons. */
export function renderKubernetes({ kubernetes, managedBy, cronJob }: CheckRecord, mayWrite: boolean): Html {
  if (kubernetes === null) return html``
  const { cluster, namespace, name } = kubernetes
  const place = `-n ${wordForShell(namespace)}`
  const commands: (readonly [meaning: string, command: string])[] = [
    ['What the operator says, and its conditions', kubectl('describe', 'heartbeatcheck', kubernetes)],
    ['Each change of status', `kubectl events --for ${wordForShell(`hbc/${name}`)} ${place}`],
  ]
  if (cronJob === undefined) commands.push(['The jobs beside it', `kubectl get cronjobs,jobs,pods ${place}`])
  else {
    const { lastRun } = cronJob
    const log = lastRun && `kubectl logs ${wordForShell(`job/${lastRun.job}`)} ${place} --all-containers`
    commands.push(['Its CronJob', kubectl('describe', 'cronjob', { namespace, name: cronJob.name })])
    commands.push(['Its Jobs and their pods', `kubectl get jobs,pods ${place}`])
    if (log !== null) commands.push(['The log of its last run', log])
  }
  const origin = html`<p>${resourceWords(kubernetes)} ${managedBy === 'kubernetes' ? 'declares' : 'declared'} this check${
    managedBy === 'kubernetes' ? '' : ', which belongs to the API now'
  }. To look further, in the cluster <code>${isolated(cluster)}</code>:</p>`
  const list = commands.map(
    ([meaning, command], index) =>
      html`<p class="command-title">${meaning}</p>${renderCommand(`kubectl-${index + 1}`, command, mayWrite)}`,
  )
  return section('kubernetes-title', 'Kubernetes', origin, list)
}

/** `The HeartbeatCheck payments/nightly`. */
export function resourceWords(resource: Resource): Html {
  return html`The HeartbeatCheck <code>${isolated(`${resource.namespace}/${resource.name}`)}</code>`
}

/** A command, with a button that copies it if `canCopy`. */
export function renderCommand(id: string, command: string, canCopy = true): Html {
  return html`<div class="command"><pre tabindex="0"><code id="${id}">${command}</code></pre>
${canCopy ? copyButton(id, 'the command') : ''}</div>`
}

/** A command about one object. */
export function kubectl(
  act: 'annotate' | 'delete' | 'describe' | 'patch',
  kind: 'heartbeatcheck' | 'cronjob' | 'job',
  { namespace, name }: Pick<Resource, 'namespace' | 'name'>,
): string {
  return `kubectl ${act} ${kind} ${wordForShell(name)} -n ${wordForShell(namespace)}`
}

/** Null for a check that follows no CronJob. */
export function followedOf({ check, flips }: Pick<CheckReview, 'check' | 'flips'>): FollowedFacts | null {
  if (check.spec.jobArea === null) return null
  return { detail: check.statusDetail ?? null, stuck: stuckOf(check, flips) }
}

/** The Job of the last change, if that takes too long or blocks others, and has not ended. */
function stuckOf({ state, cronJob }: CheckRecord, flips: CheckReview['flips']): StuckJob | null {
  const job = flips.find(isChange)?.job ?? null
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
${renderCommand('delete-job', kubectl('delete', 'job', { ...kubernetes, name: followed.stuck.job }), mayWrite)}`
}

/** Nothing for a check that follows no CronJob. */
export function renderLastRun({ cronJob, kubernetes }: CheckRecord, now: Instant): Html {
  if (cronJob === undefined) return html``
  const { name, lastRun } = cronJob
  const place = kubernetes === null ? name : `${kubernetes.namespace}/${name}`
  const origin = html`<p>Of the CronJob <code>${isolated(place)}</code>, whose Jobs report by themselves.</p>`
  const none = html`<p class="muted">No run has started since it is monitored.</p>`
  return section('last-run-title', 'Last run', origin, lastRun === null ? none : renderRun(lastRun, now))
}

const OUTCOME_WORDS: Readonly<Record<RunOutcome, string>> = {
  Running: 'Running',
  Succeeded: 'Succeeded',
  Warned: 'Ended with a warning',
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
