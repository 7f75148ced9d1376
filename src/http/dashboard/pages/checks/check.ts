/** `/checks/{id}`: what an engineer on call must know first, then the history. */

import type { StoredCheck } from '../../../../checks/find-checks.ts'
import { readSpec } from '../../../../checks/read-spec.ts'
import { type CheckReview, reviewCheck } from '../../../../checks/review-check.ts'
import { includesScope } from '../../../../domain/access.ts'
import { type Instant, isRunning, shownStatus } from '../../../../domain/check.ts'
import { nextSlot } from '../../../../domain/cron.ts'
import { sortLabels } from '../../../../domain/labels.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { findBlindArea } from '../../../../service/find-blind.ts'
import { findSilenceOf, type SilenceRecord } from '../../../../silences/find-silences.ts'
import { getProject } from '../../../../tenancy/projects.ts'
import { type Html, html, isolated } from '../../html.ts'
import { icon } from '../../icons.ts'
import { type Page, page, type Request } from '../../page.ts'
import { copyButton, crumbs, facts, section } from '../../ui/parts.ts'
import { countSentence, reminderSentence, reminderWords, thresholdWords } from '../../words/incident-words.ts'
import { scheduleWords } from '../../words/schedule-words.ts'
import { silencedSentence } from '../../words/silence-words.ts'
import {
  flappingSentence,
  nextSentence,
  statusBadge,
  statusSentence,
  warningSentence,
} from '../../words/status-words.ts'
import { ago, clockOf, durationWords, exactWords } from '../../words/time-words.ts'
import { withLinks } from '../../words/words.ts'
import { blindBanner } from '../blind.ts'
import { renderAcknowledgement } from './acknowledge.ts'
import { renderActions } from './check-actions.ts'
import { renderDependencies } from './check-dependencies.ts'
import { renderDeliveries, renderFlips, renderHistory, renderUptime } from './check-history.ts'
import { followedOf, renderKubernetes, renderLastRun, renderStuck } from './check-kubernetes.ts'
import { describePing, renderPings, renderText } from './check-pings.ts'

export const checkRoutes = [page('/checks/{id}', 'read', showCheck)]

async function showCheck(request: Request): Promise<Page> {
  const { context, caller, params, kept } = request
  const review = await reviewCheck(context, caller, params.id!, kept)
  const { check, now } = review
  const project = await getProject(context, caller, check.projectId)
  const mayWrite = includesScope(caller.scope, 'write')
  const status = shownStatus(check.state, now)
  const { jobArea } = check.spec
  const silence = await findSilenceOf(context, caller, check)
  const blind = jobArea === null ? [] : await findBlindArea(context, jobArea)
  const main = html`${crumbs([
    ['/checks', 'Checks'],
    [`/checks?project=${encodeURIComponent(project.slug)}`, isolated(project.name)],
  ])}
<header class="check-head">
<h1>${isolated(check.name)}</h1>
${statusBadge(status)}
</header>
${blindBanner(blind, now, 'This check is not evaluated.')}
${renderStatus(review, silence, mayWrite)}
${check.description === null ? '' : html`<p class="description" dir="auto">${withLinks(check.description)}</p>`}
${renderLastRun(check, now)}
${renderOutput(review, mayWrite)}
${renderFacts(review)}
${await renderDependencies(request, check)}
${mayWrite ? renderActions(check) : ''}
${renderKubernetes(check, mayWrite)}
${renderUptime(review)}
${renderHistory(review)}
${renderFlips(review)}
${await renderDeliveries(request, check.id, now)}
${renderPings(review)}
${renderAbout(review, project.slug, mayWrite ? `${request.pingUrl()}/ping/${check.publicId}` : null)}`
  const nextLateAt = status === 'up' ? check.state.expectedAt : null
  return { kind: 'page', title: `${toOneLine(check.name)} is ${status}`, main, live: 'check', nextLateAt }
}

function renderStatus(review: CheckReview, silence: SilenceRecord | null, mayWrite: boolean): Html {
  const { check, cause, now } = review
  const { id, state } = check
  // In the zone of the schedule, in which its users think.
  const clock = clockOf(check.spec.timeZone ?? 'UTC', now)
  const facts = {
    state,
    exitCode: cause?.exitCode ?? null,
    isManaged: check.managedBy === 'kubernetes',
    followed: followedOf(review),
    now,
    clock,
  }
  const open = state.runs.filter((run) => isRunning(run, now))
  const first = Math.min(...open.map(({ startedAt }) => startedAt))
  const running =
    open.length === 0
      ? ''
      : html`<p class="open-runs">${icon('running')} ${open.length === 1 ? 'Running' : `${open.length} runs are open, the first`} since ${clock(first)} (${durationWords(now - first)}).</p>`
  const remarks = [
    flappingSentence(state),
    warningSentence(state),
    countSentence(check),
    reminderSentence(check, { now, clock }),
  ].filter((one) => one !== null)
  const isUnused = mayWrite && facts.followed === null && state.status === 'new' && state.pingsTotal === 0
  return html`<div class="status-lines status-lines-${shownStatus(state, now)}">
<p class="sentence" id="status"><strong>${statusSentence(facts)}</strong></p>
${remarks.map((remark) => html`<p>${remark}</p>`)}
${running}
<p id="next">${nextSentence({ ...facts, scheduledAt: nextRunAt(check, now) })}</p>
${renderStuck(check, facts.followed, mayWrite)}
${renderAcknowledgement(check, facts, mayWrite)}
${silence === null ? '' : html`<p id="silenced">${silencedSentence(silence, facts)} <a href="/silences/${silence.id}">The silence</a></p>`}
${isUnused ? html`<p><a class="button" href="/checks/${id}/how">Send the first ping</a></p>` : ''}
</div>`
}

/** Null: the schedule says nothing, or cannot be read, or its CronJob is suspended. */
function nextRunAt({ spec, state, kubernetesSuspend }: StoredCheck, now: Instant): Instant | null {
  if (kubernetesSuspend === true) return null
  try {
    const { schedule } = readSpec(spec)
    if (schedule.kind === 'cron') return nextSlot(schedule.cron, now)
    const at = (state.lastPingAt ?? 0) + schedule.periodMs
    return at > now ? at : null
  } catch {
    return null
  }
}

function renderOutput({ check, lastText, pings, now }: CheckReview, mayWrite: boolean): Html {
  if (lastText === null) {
    if (pings.length === 0 || check.spec.jobArea !== null) return html``
    const how = mayWrite ? html` <a href="/checks/${check.id}/how">How to send its output</a>` : ''
    const none = html`<p class="muted">The job has sent no text with its pings.${how}</p>`
    return section('output-title', 'Last output', none)
  }
  const { ping, text } = lastText
  const isNewest = pings[0]?.id === ping.id
  const isOfJob = ping.source === 'job'
  const origin = html`<p class="muted">${isOfJob ? 'Of a Job' : `Came with ${isNewest ? 'the newest ping' : 'a ping'}`}: ${describePing(ping)}, ${ago(ping.createdAt, now)}</p>`
  const title = isOfJob && ping.type === 'fail' ? 'Last failure' : 'Last output'
  return section('output-title', title, origin, renderText(check.id, { ...ping, text }, 'last'))
}

function renderFacts({ check, durations, now }: CheckReview): Html {
  const { state, spec } = check
  const normal =
    durations === null
      ? html`<span class="muted">not known: no run that succeeded has a duration</span>`
      : durations.count === 1
        ? `${durationWords(durations.medianMs)} (one run)`
        : `${durationWords(durations.medianMs)}; 95 % within ${durationWords(durations.p95Ms)} (of ${durations.count} runs)`
  const took = state.lastDurationMs === null ? '' : `, took ${durationWords(state.lastDurationMs)}`
  return facts([
    ['Last success', state.lastSuccessAt === null ? 'never' : ago(state.lastSuccessAt, now)],
    [
      spec.jobArea === null ? 'Last ping' : 'Last report',
      state.lastPingAt === null ? 'never' : html`${ago(state.lastPingAt, now)}${took}`,
    ],
    ['A run normally takes', normal],
    ['Schedule', scheduleWords(spec)],
    ['Grace time', durationWords(spec.graceSeconds * 1_000)],
    ['Maximum run time', spec.maxRuntimeSeconds && durationWords(spec.maxRuntimeSeconds * 1_000)],
    ['Down after', thresholdWords(spec)],
    ['Reminders', reminderWords(spec)],
  ])
}

const renderTags = (words: readonly string[]) => words.map((word) => html`<span class="tag">${word}</span> `)

function chosenWords(count: number): string {
  if (count === 0) return 'no channel'
  return count === 1 ? 'one chosen channel' : `${count} chosen channels`
}

function renderAbout({ check, now }: CheckReview, projectSlug: string, pingUrl: string | null): Html {
  const { tags, labels, channels, slug, createdAt, updatedAt, state, spec } = check
  const pairs = Object.entries(sortLabels(labels)).map(([name, value]) => `${name}=${value}`)
  const list = facts([
    [
      'Ping URL',
      pingUrl && html`<code id="ping-url">${pingUrl}</code> ${copyButton('ping-url', 'the ping URL')}`,
      'wide',
    ],
    ['Slug', html`<code>${slug}</code>`],
    ['Project', html`<code>${projectSlug}</code>`],
    ['Tags', tags.length === 0 ? null : renderTags(tags)],
    ['Labels', pairs.length === 0 ? null : renderTags(pairs), 'wide'],
    ['Notifies', channels && chosenWords(channels.length)],
    ['A pause ends', spec.resumeOnPing ? 'with its next ping' : null],
    ['Created', ago(createdAt, now)],
    ['Changed', ago(updatedAt, now)],
    [
      `${spec.jobArea === null ? 'Pings' : 'Reports'} in all`,
      html`<span title="since ${exactWords(createdAt)}">${state.pingsTotal}</span>`,
    ],
  ])
  return section('about-title', 'About', list)
}
