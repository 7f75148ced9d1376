/** `/checks`: the status of all checks at a glance. */

import { type CheckSurvey, SURVEY_LIMIT, type SurveyRequest, surveyChecks } from '../../../../checks/survey-checks.ts'
import { includesScope, type Scope } from '../../../../domain/access.ts'
import { COMPLETIONS, SHOWN_STATUSES, type ShownStatus } from '../../../../domain/check.ts'
import { STATUS_ORDER } from '../../../../domain/check-order.ts'
import { AppError } from '../../../../domain/errors.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { SURVEY_SORTS, type SurveySort } from '../../../../domain/survey.ts'
import { type BlindCluster, findBlind } from '../../../../service/find-blind.ts'
import { listProjects, type ProjectRecord } from '../../../../tenancy/projects.ts'
import { CheckListQuery, oneOutcome, oneStatus } from '../../../api/checks.schema.ts'
import { parsePart } from '../../../api/faults.ts'
import { given } from '../../../api/present.ts'
import { type Html, html } from '../../html.ts'
import { icon } from '../../icons.ts'
import { type Page, page, type Request, redirect } from '../../page.ts'
import { filled, filterAttribute, filterButton } from '../../ui/form.ts'
import { addressOf, copyButton, pager, select } from '../../ui/parts.ts'
import { OUTCOME_WORDS, STATUS_WORDS } from '../../words/status-words.ts'
import { blindBanner } from '../blind.ts'
import { renderCheckTable } from './list-rows.ts'

export const checksRoutes = [
  page('/', 'read', () => redirect('/checks')),
  { ...page('/checks', 'read', showChecks), isSame: true as const },
]

/** Projects that the filter offers; of an organization with more, it takes a slug. */
const OFFERED_PROJECTS = 100

async function showChecks({ context, caller, query }: Request): Promise<Page> {
  const asked = readQuery(query)
  const survey = await surveyChecks(context, caller, asked)
  const { rows, next } = await listProjects(context, caller, { limit: OFFERED_PROJECTS, after: null })
  const projects = next === null ? rows : null
  const list = { asked, survey, blind: await findBlind(context, caller), projects, scope: caller.scope }
  const { down, late } = survey.counts
  return {
    kind: 'page',
    title: down > 0 ? `${down} down` : late > 0 ? `${late} late` : 'Checks',
    mood: down > 0 ? 'down' : late > 0 ? 'late' : 'calm',
    main: renderList(list),
    live: 'list',
    nextLateAt: survey.nextLateAt,
  }
}

interface List {
  readonly asked: SurveyRequest
  readonly survey: CheckSurvey
  readonly blind: readonly BlindCluster[]
  /** Null: too many to offer. */
  readonly projects: readonly ProjectRecord[] | null
  readonly scope: Scope
}

const Filter = CheckListQuery.pick({ q: true }).extend({
  status: oneStatus.optional(),
  outcome: oneOutcome.optional(),
})

/** Empty parameters come from empty fields of the form. Throws AppError `invalid_request`, with the rule of the API. */
function readQuery(query: URLSearchParams): SurveyRequest {
  const { project, sort, cursor } = filled(query, ['project', 'sort', 'cursor'])
  if (sort !== undefined && !SURVEY_SORTS.includes(sort as SurveySort))
    throw new AppError('invalid_request', `sort must be one of ${SURVEY_SORTS.join(', ')}`)
  const { q, status, outcome } = parsePart('query', Filter, filled(query, ['q', 'status', 'outcome']))
  return given({ project, status, outcome, q: q || undefined, sort: sort as SurveySort | undefined, cursor })
}

/** The address of the list with another filter or order; from its start. */
function hrefOf(
  asked: SurveyRequest,
  change: { [Name in keyof SurveyRequest]?: SurveyRequest[Name] | undefined },
): string {
  return addressOf('/checks', { ...asked, cursor: undefined, ...change })
}

function renderList(list: List): Html {
  const { asked, survey, scope } = list
  const mayWrite = includesScope(scope, 'write')
  const isFiltered = [asked.project, asked.q, asked.outcome].some((one) => one !== undefined)
  if (sum(survey.counts) === 0 && !isFiltered) return renderFirstSteps(mayWrite)
  return html`<div class="list-head">
<h1>Checks</h1>
<p class="summary">${summaryOf(survey.counts)}</p>
${mayWrite ? html`<a class="button new-check" href="/checks/new">${icon('add')} New check</a>` : ''}
</div>
${blindBanner(list.blind, survey.now, 'Some checks are not evaluated.')}
${renderCounts(asked, survey.counts)}
${renderFilters(list, isFiltered || asked.status !== undefined)}
${survey.checks.length === 0 ? renderNoMatch(asked) : renderCheckTable(survey, asked.sort ?? SURVEY_SORTS[0], (sort) => hrefOf(asked, { sort }))}
${renderPager(asked, survey)}`
}

function sum(counts: CheckSurvey['counts']): number {
  return SHOWN_STATUSES.reduce((total, status) => total + counts[status], 0)
}

/** Whether all is well, in one sentence. */
function summaryOf(counts: CheckSurvey['counts']): string {
  const { down, late, up, new: fresh, paused } = counts
  if (down > 0 && late > 0)
    return `${countWords(down)} down, and ${thousands.format(late)} ${late === 1 ? 'is' : 'are'} late.`
  if (down > 0) return `${countWords(down)} down.`
  if (late > 0) return `${countWords(late)} late.`
  if (up > 0) return 'All is well.'
  if (fresh > 0) return 'No job has reported yet.'
  return paused > 0 ? 'All of them are paused.' : ''
}

const thousands = new Intl.NumberFormat('en')

const countWords = (count: number) => (count === 1 ? '1 check is' : `${thousands.format(count)} checks are`)

function renderCounts(asked: SurveyRequest, counts: CheckSurvey['counts']): Html {
  const link = (status: ShownStatus | undefined, content: Html) => {
    const isCurrent = asked.status === status
    return html`<li><a href="${hrefOf(asked, { status })}"${isCurrent ? html` aria-current="true"` : ''}>${content}</a></li>`
  }
  return html`<nav class="counts" aria-label="Status"><ul>
${link(undefined, html`<b>${thousands.format(sum(counts))}</b> All`)}
${STATUS_ORDER.map((status) =>
  link(
    status,
    html`<span class="${counts[status] === 0 ? 'muted' : `status-${status}`}">${icon(status)}</span> <b>${thousands.format(counts[status])}</b> ${STATUS_WORDS[status]}`,
  ),
)}
</ul></nav>`
}

const SORT_WORDS: Readonly<Record<SurveySort, string>> = {
  status: 'Down and late first',
  '-status': 'Down and late last',
  name: 'Name, A to Z',
  '-name': 'Name, Z to A',
  last_ping: 'Oldest ping first',
  '-last_ping': 'Newest ping first',
  due: 'Due soonest first',
  '-due': 'Due soonest last',
}

const OUTCOME_CHOICES = COMPLETIONS.map((outcome) => [outcome, `Last run ${OUTCOME_WORDS[outcome]}`] as const)

/** A plain form: it works without a script. */
function renderFilters({ asked, survey, projects, scope }: List, canClear: boolean): Html {
  return html`<form class="filters" method="get" action="/checks" aria-label="Filter"${filterAttribute(scope)}>
<input type="search" name="q" value="${asked.q}" maxlength="${LIMITS.nameLength}" placeholder="Name or slug" aria-label="Name or slug">
${renderProjects(projects, survey.project, asked.project)}
${select(html`name="outcome" aria-label="Last run"`, [['', 'Any last run'], ...OUTCOME_CHOICES], asked.outcome ?? '')}
${select(
  html`name="sort" aria-label="Order"`,
  SURVEY_SORTS.map((sort) => [sort, SORT_WORDS[sort]] as const),
  asked.sort ?? SURVEY_SORTS[0],
)}
${asked.status === undefined ? '' : html`<input type="hidden" name="status" value="${asked.status}">`}
${filterButton(scope)}
${canClear ? html`<a href="${hrefOf({}, { sort: asked.sort })}">Clear the filter</a>` : ''}
</form>`
}

function renderProjects(
  projects: List['projects'],
  chosen: ProjectRecord | null,
  text: string | undefined,
): Html | string {
  if (projects === null)
    return html`<input type="text" name="project" value="${chosen?.slug ?? text}" placeholder="Project" aria-label="Slug of a project">`
  if (projects.length < 2)
    return chosen === null ? '' : html`<input type="hidden" name="project" value="${chosen.slug}">`
  const choices = projects.map(({ slug, name }) => [slug, name] as const)
  return select(html`name="project" aria-label="Project"`, [['', 'All projects'], ...choices], chosen?.slug ?? '')
}

function renderNoMatch(asked: SurveyRequest): Html {
  if (asked.cursor !== undefined)
    return html`<article class="empty"><p>There are no more checks here.</p>
<p><a class="button" href="${hrefOf(asked, {})}">Go to the first page</a></p></article>`
  return html`<article class="empty"><p>No check matches the filter.</p>
<p><a class="button" href="${hrefOf({}, { sort: asked.sort })}">Clear the filter</a></p></article>`
}

function renderPager(asked: SurveyRequest, { checks, counts, next }: CheckSurvey): Html | string {
  if (checks.length === 0) return ''
  const total = asked.status === undefined ? sum(counts) : counts[asked.status]
  const note = `${checks.length} of ${thousands.format(total)} checks`
  return pager('/checks', { ...asked }, next, ['First page', `Next ${SURVEY_LIMIT}`], note)
}

const FIRST_MANIFEST = `kubectl apply -f - <<'EOF'
apiVersion: heartbeat-operator.io/v1
kind: HeartbeatCheck
metadata:
  name: nightly-backup
spec:
  displayName: Nightly backup
  schedule: "0 2 * * *"
  timeZone: Europe/Berlin
  graceSeconds: 3600
EOF`

/** How to create the first check, by form and by kubectl. */
function renderFirstSteps(mayWrite: boolean): Html {
  return html`<article class="empty first-steps">
<h1>No checks yet</h1>
<p>A check watches one scheduled job. The job calls the address of its check each time it runs; when a call is missing, or the job reports a failure, the check is down and your channels get a notification.</p>
${
  mayWrite
    ? html`<p><a class="button" href="/checks/new">${icon('add')} New check</a></p>`
    : html`<p>Your account can look at checks. A user with the scope write creates them.</p>`
}
<h2>With kubectl</h2>
<p>In a cluster with the operator, apply this manifest in the namespace of the CronJob. The operator writes the ping URL into the Secret <code>nightly-backup-heartbeat</code>.</p>
<pre tabindex="0" aria-label="Manifest"><code id="first-manifest">${FIRST_MANIFEST}</code></pre>
${mayWrite ? copyButton('first-manifest', 'the manifest') : ''}
</article>`
}
