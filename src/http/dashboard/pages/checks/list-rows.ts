/** The table of checks. Status, name, since when and why come first. A row is a card on a narrow screen. */

import type { CheckSurvey, SurveyedCheck } from '../../../../checks/survey-checks.ts'
import {
  acknowledgementAt,
  DEFAULT_CLUSTER,
  type Instant,
  isFlapping,
  isRunning,
  type ShownStatus,
  shownStatus,
} from '../../../../domain/check.ts'
import { type CheckOrder, orderOf } from '../../../../domain/check-order.ts'
import { firstBytes, toOneLine } from '../../../../domain/plain-text.ts'
import type { SurveySort } from '../../../../domain/survey.ts'
import { deadlineOf } from '../../../../domain/transition.ts'
import { type Html, html, isolated } from '../../html.ts'
import { icon } from '../../icons.ts'
import { renderStrip } from '../../plots/strip.ts'
import { countWords } from '../../words/incident-words.ts'
import { scheduleWords } from '../../words/schedule-words.ts'
import { rowWords, statusBadge } from '../../words/status-words.ts'
import { ago } from '../../words/time-words.ts'

/** The address of the list with this filter in another order. */
type HrefOf = (sort: SurveySort) => string

// The roles stand for the elements' own ones, which browsers drop where a row is shown as a card.
export function renderCheckTable({ checks, now }: CheckSurvey, sort: SurveySort, hrefOf: HrefOf): Html {
  const heading = (order: Exclude<CheckOrder, 'created'>, text: string) => renderHeading(order, text, sort, hrefOf)
  return html`<table class="cards checks" role="table" aria-label="Checks">
<thead role="rowgroup"><tr role="row">
${heading('status', 'Status')}${heading('name', 'Name')}<th role="columnheader" scope="col">Project</th>
<th role="columnheader" scope="col">Schedule</th>${heading('last_ping', 'Last ping')}${heading('due', 'Next expected')}
<th role="columnheader" scope="col">Last runs</th>
</tr></thead>
<tbody role="rowgroup">
${checks.map((check) => renderRow(check, now))}
</tbody>
</table>`
}

const ARIA_SORT = { false: 'ascending', true: 'descending' } as const

/** A link that sorts by the column, or in reverse where the column sorts the list now. */
function renderHeading(order: Exclude<CheckOrder, 'created'>, text: string, sort: SurveySort, hrefOf: HrefOf): Html {
  const now = orderOf(sort)
  if (now.order !== order)
    return html`<th role="columnheader" scope="col" class="check-sort"><a href="${hrefOf(order)}">${text}</a></th>`
  const reverse = now.isReverse ? order : (`-${order}` as const)
  return html`<th role="columnheader" scope="col" class="check-sort" aria-sort="${ARIA_SORT[`${now.isReverse}`]}"><a href="${hrefOf(reverse)}">${text} ${icon(now.isReverse ? 'descending' : 'ascending')}</a></th>`
}

function renderRow(check: SurveyedCheck, now: Instant): Html {
  const { id, name, tags, project, spec, state, runs } = check
  const status = shownStatus(state, now)
  const hasRun = state.runs.some((run) => isRunning(run, now))
  const next = nextOf(check, status, now)
  const counted = countWords(check)
  return html`<tr role="row" id="check-${id}" class="is-${status}">
<td role="cell" class="check-status">${statusBadge(status)}${hasRun ? html` <span class="running">${icon('running')} Running</span>` : ''}${isFlapping(state) ? html` <span class="flapping">Flapping</span>` : ''}${status === 'down' && acknowledgementAt(state, now) !== null ? html` <span class="acknowledged">Acknowledged</span>` : ''}${check.isSilenced ? html` <span class="silenced">Silenced</span>` : ''}${state.lastOutcome === 'warn' ? html` <span class="warned">Warning</span>` : ''}${counted === null ? '' : html` <span class="counted">${counted}</span>`}
<span class="why">${whyOf(check, status, now)}</span></td>
<th role="rowheader" scope="row" class="check-name"><a href="/checks/${id}">${isolated(name)}</a>${renderTags(tags)}</th>
<td role="cell" class="check-place"><a href="/checks?project=${project.slug}">${isolated(project.name)}</a><span>${placeOf(check)}</span></td>
<td role="cell" class="check-schedule">${scheduleWords(spec)}</td>
<td role="cell" class="check-times"><span class="label">${spec.jobArea === null ? 'Last ping' : 'Last report'}</span> ${state.lastPingAt === null ? html`<span class="muted">never</span>` : ago(state.lastPingAt, now)}</td>
<td role="cell" class="check-times${next === NOTHING ? ' is-nothing' : ''}"><span class="label">Next expected</span> ${next}</td>
<td role="cell" class="check-runs">${renderStrip(runs)}</td>
</tr>
`
}

/** Of a check with more, the others are counted. */
const SHOWN_TAGS = 5

function renderTags(tags: readonly string[]): Html | string {
  if (tags.length === 0) return ''
  const others = tags.length - SHOWN_TAGS
  return html`<span class="tags">${tags.slice(0, SHOWN_TAGS).map((tag) => html`<small>${tag}</small> `)}${others > 0 ? html`<small>+${others}</small>` : ''}</span>`
}

/** Since when, and why: few words. */
function whyOf(check: SurveyedCheck, status: ShownStatus, now: Instant): Html {
  const { statusDetail } = check
  const what = rowWords(check, status, now)
  return statusDetail === undefined
    ? what
    : html`${what}: ${isolated(firstBytes(toOneLine(statusDetail), DETAIL_BYTES))}`
}

/** The page of the check has the whole sentence. */
const DETAIL_BYTES = 160

/** The namespace that declares it, with the name of another cluster than the default one. */
function placeOf({ managedBy, kubernetes }: SurveyedCheck): string | Html {
  if (managedBy === 'api' || kubernetes === null) return 'API'
  const { cluster, namespace } = kubernetes
  return isolated(cluster === DEFAULT_CLUSTER ? namespace : `${cluster}/${namespace}`)
}

const NOTHING = html`<span class="muted">–</span>`

function nextOf(
  { state, spec }: Pick<SurveyedCheck, 'state' | 'spec'>,
  status: ShownStatus,
  now: Instant,
): Html | string {
  const deadline = deadlineOf(state)
  if (deadline === null) return status === 'new' && spec.jobArea === null ? 'after its first ping' : NOTHING
  if (status === 'late') return html`down ${ago(deadline, now)}`
  return state.expectedAt === null ? html`to end ${ago(deadline, now)}` : ago(state.expectedAt, now)
}
