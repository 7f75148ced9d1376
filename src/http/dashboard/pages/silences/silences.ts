/** `/silences` and `/silences/{id}`: when no channel is notified, of what, and why. */

import { includesScope } from '../../../../domain/access.ts'
import type { Instant } from '../../../../domain/check.ts'
import { AppError } from '../../../../domain/errors.ts'
import { selectorText } from '../../../../domain/label-selector.ts'
import { encodeCursor } from '../../../../domain/page.ts'
import { getSilence, listSilences, type SilenceRecord } from '../../../../silences/find-silences.ts'
import { removeSilence } from '../../../../silences/remove-silence.ts'
import { parsePart } from '../../../api/faults.ts'
import { SilenceListQuery } from '../../../api/silences.ts'
import { type Html, html, isolated } from '../../html.ts'
import { badge, icon } from '../../icons.ts'
import { act, type Page, page, type Request } from '../../page.ts'
import { filled } from '../../ui/form.ts'
import { confirm, crumbs, facts, pager, table } from '../../ui/parts.ts'
import { declaredBy } from '../../words/resource-words.ts'
import { silenceTimes } from '../../words/silence-words.ts'
import { doerWords } from '../../words/status-words.ts'
import { ago, clockOf } from '../../words/time-words.ts'
import { type ProjectNames, readProjectNames } from '../all-projects.ts'

export const silencesRoutes = [
  page('/silences', 'read', showSilences),
  page('/silences/{id}', 'read', showSilence),
  page('/silences/{id}/delete', 'write', confirmDelete),
  act('/silences/{id}/delete', 'write', removeSilence, '/silences', 'silence-deleted'),
]

const ROWS = 100

async function showSilences({ context, caller, query, now }: Request): Promise<Page> {
  const { ended } = filled(query, ['ended'])
  const { cursor } = parsePart('query', SilenceListQuery, filled(query, ['cursor']))
  const filter = ended === undefined ? { openAt: now } : {}
  const [{ rows, next }, projects] = await Promise.all([
    listSilences(context, caller, filter, { limit: ROWS, after: cursor ?? null }),
    readProjectNames({ context, caller }),
  ])
  const others =
    ended === undefined
      ? html`<a href="/silences?ended=shown">Show those that have ended, too</a>`
      : html`<a href="/silences">Hide those that have ended</a>`
  const main = html`<h1>Silences</h1>
<p class="muted">While a silence covers a check, all is recorded, and no channel is notified. A check that is down when it ends is notified then.</p>
${includesScope(caller.scope, 'write') ? html`<p><a class="button" href="/silences/new">${icon('add')} New silence</a></p>` : ''}
${rows.length === 0 ? html`<article class="empty"><p>No silence holds or begins later.</p></article>` : renderTable(rows, projects, now)}
<p>${others}</p>
${pager('/silences', { ended, cursor: query.get('cursor') }, next && `silences.${encodeCursor(next)}`)}`
  return { kind: 'page', title: 'Silences', main, live: 'list' }
}

function renderTable(rows: readonly SilenceRecord[], projects: ProjectNames, now: Instant): Html {
  return table<SilenceRecord>(
    [
      [
        'When',
        (silence) => html`<a href="/silences/${silence.id}">${silenceTimes(silence, clockOf('UTC', now))}</a>`,
        'name',
      ],
      ['State', (silence) => html`<span>${stateOf(silence)} ${turnOf(silence, now)}</span>`],
      ['Covers', (silence) => coveredWords(silence, projects)],
      ['Why', ({ comment }) => isolated(comment)],
      ['By', ({ createdBy }) => html`<span>${doerWords(createdBy)}</span>`],
    ],
    rows,
    { id: ({ id }) => `silence-${id}` },
  )
}

function stateOf({ activeUntil, nextStartsAt }: SilenceRecord): Html {
  if (activeUntil !== null) return badge('up', 'Holds')
  return nextStartsAt === null ? badge('paused', 'Ended') : badge('new', 'Planned')
}

function turnOf({ activeUntil, nextStartsAt, endsAt }: SilenceRecord, now: Instant): Html {
  if (activeUntil !== null) return html`ends ${ago(activeUntil, now)}`
  if (nextStartsAt !== null) return html`begins ${ago(nextStartsAt, now)}`
  return endsAt === null ? html`` : ago(endsAt, now)
}

function coveredWords(
  { projectId, checkId, checkName, tag, kubernetes, selector }: SilenceRecord,
  projects: ProjectNames,
): Html {
  if (kubernetes !== null) {
    const labelled =
      selector === null || selector.length === 0 ? '' : html` with the labels <code>${selectorText(selector)}</code>`
    return html`<span>${labelled === '' ? 'all ' : ''}HeartbeatChecks of the namespace <code>${isolated(kubernetes.namespace)}</code>${labelled}</span>`
  }
  const tagged = tag === null ? '' : html` with the tag <span class="tag">${tag}</span>`
  if (checkId !== null && checkName == null) return html`<span class="muted">a check that was deleted</span>`
  if (checkId !== null)
    return html`<span><a href="/checks/${checkId}">${isolated(checkName!)}</a>${tag === null ? '' : html`, if it has the tag <span class="tag">${tag}</span>`}</span>`
  return html`<span>${tag === null ? 'all checks' : 'checks'}${tagged} of <a href="/checks?project=${projectId}">${isolated(projects.get(projectId) ?? projectId)}</a></span>`
}

async function showSilence({ context, caller, params, now }: Request): Promise<Page> {
  const silence = await getSilence(context, caller, params.id!)
  const projects = await readProjectNames({ context, caller })
  const title = silenceTimes(silence, clockOf('UTC', now))
  const main = html`${crumbs([['/silences', 'Silences']])}
<div class="check-head"><h1>${title}</h1>
<p>${stateOf(silence)} ${turnOf(silence, now)}</p></div>
${silence.kubernetes === null ? '' : declaredBy('HeartbeatSilence', silence.kubernetes)}
${facts([
  ['Covers', coveredWords(silence, projects)],
  ['Why', silence.comment === '' ? null : isolated(silence.comment)],
  ['Begins next', silence.nextStartsAt && ago(silence.nextStartsAt, now)],
  ['Created', html`${ago(silence.createdAt, now)} by ${doerWords(silence.createdBy)}`],
])}
${includesScope(caller.scope, 'write') && silence.kubernetes === null ? html`<p><a class="button secondary outline" href="/silences/${silence.id}/delete">Delete</a></p>` : ''}`
  return { kind: 'page', title: `Silence ${title}`, main, live: 'list' }
}

async function confirmDelete(request: Request): Promise<Page> {
  const { context, caller, params } = request
  const { id, activeUntil, kubernetes } = await getSilence(context, caller, params.id!)
  if (kubernetes !== null) throw new AppError('managed_by_kubernetes', { what: 'silence', resource: kubernetes })
  const loss =
    activeUntil === null
      ? html`<p>It does not hold now, so nothing is sent.</p>`
      : html`<p>It ends now: each check that it covers and that is down is notified at once.</p>`
  return confirm(request, { ask: 'Delete this silence', loss, button: 'Delete the silence', back: `/silences/${id}` })
}
