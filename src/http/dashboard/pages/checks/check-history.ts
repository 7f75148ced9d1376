/** The history on the page of a check: uptime, runs, durations, changes of status, deliveries. */

import { listDeliveries } from '../../../../channels/find-deliveries.ts'
import type { CheckReview } from '../../../../checks/review-check.ts'
import type { Instant } from '../../../../domain/check.ts'
import type { PastRun } from '../../../../domain/runs.ts'
import { type Html, html, isolated } from '../../html.ts'
import type { Request } from '../../page.ts'
import { renderDurations } from '../../plots/durations.ts'
import { DRAWN_RUNS, renderTimeline } from '../../plots/run-timeline.ts'
import { section, table } from '../../ui/parts.ts'
import { flipBadge, flipWords, OUTCOME_WORDS, shareWords } from '../../words/status-words.ts'
import { type ClockWords, clockOf, durationWords, whenOf } from '../../words/time-words.ts'
import { deliveryList } from '../deliveries.ts'

/** A shorter time at the start of a window is not worth a word. */
const WORTH_SAYING_MS = 60_000
const SHOWN_FLIPS = 20

export function renderUptime({ uptimes, check, now }: CheckReview): Html {
  const clock = clockOf(check.spec.timeZone ?? 'UTC', now)
  const gapMs = Math.max(...uptimes.map((window) => window.gapMs))
  const windows = table<Uptime>(
    [
      ['Of the last', ({ days }) => `${days} days`, 'name'],
      ['Up', ({ share }) => (share === null ? html`<span class="muted">no data yet</span>` : shareWords(share))],
      ['Down', (window) => html`${downWords(window)}${countedWords(window, clock)}`],
    ],
    uptimes,
    { look: 'uptime' },
  )
  const note = html`<p class="muted note">Late counts as up. Time while it was new or paused, or that the history does not reach, does not count.${
    gapMs > 0
      ? ` Neither does ${durationWords(gapMs)} in which this service could take no pings: that was our downtime, not the job's.`
      : ''
  }</p>`
  return section('uptime-title', 'Uptime', windows, note)
}

type Uptime = CheckReview['uptimes'][number]

function downWords({ share, downs, downMs }: Uptime): string {
  if (share === null) return ''
  return downs === 0 ? 'never' : `${durationWords(downMs)}, ${downs === 1 ? 'once' : `${downs} times`}`
}

/** Of a window that the history does not fill. */
function countedWords({ since, from }: Uptime, clock: ClockWords): Html | string {
  if (since === null || since - from <= WORTH_SAYING_MS) return ''
  return html` <span class="muted">(counted since ${clock(since)})</span>`
}

export function renderHistory(review: CheckReview): Html {
  const { check, runs, durations, now } = review
  const timeline = renderTimeline(review)
  if (timeline === null) return html``
  const { maxRuntimeSeconds } = check.spec
  const maxRuntimeMs = maxRuntimeSeconds === null ? null : maxRuntimeSeconds * 1_000
  const plot = durations === null ? null : renderDurations(runs, durations, maxRuntimeMs)
  const shown = runs.slice(0, DRAWN_RUNS)
  const isFollowed = check.spec.jobArea !== null
  const entry = isFollowed ? 'Report' : 'Ping'
  const when = whenOf(check, now)
  const figure = html`<figure>${timeline}
<figcaption class="muted">The last ${shown.length === 1 ? 'run' : `${shown.length} runs`}, and below them the status. Times are UTC.
<span class="keys"><span class="key run-success"></span> succeeded</span> <span class="keys"><span class="key run-warn"></span> ended with a warning</span> <span class="keys"><span class="key run-fail"></span> failed</span> <span class="keys"><span class="key run-unfinished"></span> not finished</span></figcaption></figure>
<details id="runs-table"><summary>Runs as a table</summary>
<div class="scroll">${table<PastRun>(
    [
      ['When', ({ startedAt, endedAt }) => when(endedAt ?? startedAt!)],
      [
        'Outcome',
        ({ outcome, exitCode }) =>
          `${OUTCOME_WORDS[outcome]}${exitCode === null || exitCode === 0 ? '' : `, exit code ${exitCode}`}`,
      ],
      ['Took', ({ durationMs }) => durationMs !== null && durationWords(durationMs)],
      [entry, ({ pingId }) => html`<a href="/checks/${check.id}/pings/${pingId}">${entry}</a>`],
    ],
    shown,
    { look: 'runs-table' },
  )}</div></details>`
  const took =
    plot === null
      ? html`<p class="muted">No run that succeeded has a duration.${isFollowed ? '' : ' A start ping before each run, or a duration with the completion, shows how long runs take.'}</p>`
      : html`<figure>${plot}</figure>`
  return html`${section('runs-title', 'Runs', figure)}
${section('durations-title', 'Durations', took)}`
}

export function renderFlips({ check, flips, hasOlderFlips, now }: CheckReview): Html {
  const shown = flips.slice(0, SHOWN_FLIPS)
  if (shown.length === 0) return html``
  const rest = flips.length - shown.length
  const when = whenOf(check, now)
  const isFollowed = check.spec.jobArea !== null
  const list = html`<ol class="rows flips">
${shown.map(
  ({ at, pingId, detail = null, ...flip }) =>
    html`<li>${flipBadge(flip)} <span class="grow">${flipWords(flip, isFollowed)}${detail === null ? '' : html`: ${isolated(detail)}`}${
      pingId === null
        ? ''
        : html` (<a href="/checks/${check.id}/pings/${pingId}">${isFollowed ? 'report' : 'ping'}</a>)`
    }</span> ${when(at)}</li>`,
)}
</ol>
${rest === 0 ? '' : html`<p class="muted">${hasOlderFlips ? 'Older changes are' : rest === 1 ? 'One older change is' : `${rest} older changes are`} in the API: <code>GET /api/v1/checks/${check.id}/flips</code></p>`}`
  return section('flips-title', 'Changes of status', list)
}

const SHOWN_DELIVERIES = 10

/** What was sent about the check, and to which channels. */
export async function renderDeliveries({ context, caller }: Request, checkId: string, now: Instant): Promise<Html> {
  const page = { limit: SHOWN_DELIVERIES, after: null }
  const { rows, next } = await listDeliveries(context, caller, { checkId }, page)
  const none = html`<p class="muted">None was sent about this check. <a href="/channels">Channels</a> receive them.</p>`
  const all = html`<p><a href="/deliveries?check=${checkId}">All deliveries of this check</a></p>`
  const options = { context, caller, now, back: `/checks/${checkId}`, of: 'check' } as const
  const list = rows.length === 0 ? none : await deliveryList(rows, options)
  return section('deliveries-title', 'Deliveries', list, next === null ? '' : all)
}
