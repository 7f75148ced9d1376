/** `/silences/new`: once, or with `?times=again` again and again; with `?check=` of that check alone. */

import { getCheck, type StoredCheck } from '../../../../checks/find-checks.ts'
import { notFound } from '../../../../domain/errors.ts'
import { toIso } from '../../../../domain/instant.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { isTimeZone } from '../../../../domain/time-zone.ts'
import { createSilence } from '../../../../silences/create-silence.ts'
import { readNewSilence } from '../../../api/silences.ts'
import { html, isolated } from '../../html.ts'
import { action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import * as ui from '../../ui/form.ts'
import { readLocal } from '../../ui/local-time.ts'
import { addressOf, type Choice } from '../../ui/parts.ts'
import { parseDuration } from '../../words/time-words.ts'
import { listAllProjects } from '../all-projects.ts'

export const silenceFormRoutes = [
  page('/silences/new', 'write', (request) => showForm(request)),
  action('/silences/new', 'write', create),
]

const LABELS = {
  project_id: 'Project',
  tag: 'Tag',
  starts_at: 'From',
  ends_at: 'Until',
  schedule: 'Begins at',
  duration_seconds: 'Lasts',
  time_zone: 'Time zone',
  comment: 'Comment',
} as const

const SHORT = 'For'
/** The value of a length is its seconds; an empty one leaves the end to the field below. */
const LENGTHS: readonly Choice[] = [
  ['3600', 'one hour'],
  ['14400', 'four hours'],
  ['86400', 'one day'],
  ['', 'until the time below'],
]

const isAgain = ({ query }: Request) => query.get('times') === 'again'

/** Of `?check=`. Throws AppError `not_found`. */
function readCheck({ context, caller, query }: Request): Promise<StoredCheck> | null {
  const id = query.get('check')
  return id === null ? null : getCheck(context, caller, id)
}

async function showForm(request: Request, faults?: ui.Faults): Promise<Page> {
  const { form, query } = request
  const check = await readCheck(request)
  const again = isAgain(request)
  const zone = check?.spec.timeZone ?? 'UTC'
  const rejected = faults && { values: form, faults }
  const projects = check === null ? await listAllProjects(request) : []
  const usual = { project_id: projects[0]?.id ?? '', for: '3600', time_zone: zone }
  const shown = ui.stateOf('silence', { ...LABELS, for: SHORT }, rejected, usual)
  const to = (times: string | undefined) => addressOf('/silences/new', { check: query.get('check'), times })
  const other = again
    ? html`<a href="${to(undefined)}">Once instead</a>`
    : html`<a href="${to('again')}">Again and again instead, as a maintenance window</a>`
  const times = again
    ? html`${ui.field(shown, 'schedule', ui.text(html` required placeholder="0 3 * * 0"`), 'A cron expression: "0 3 * * 0" is at 03:00 on Sundays.')}
${ui.field(shown, 'duration_seconds', ui.text(html` required placeholder="2 hours"`), 'From 10 seconds to 30 days, for example "90 min".')}`
    : html`${ui.field(shown, 'for', ui.choice(LENGTHS))}
${ui.field(shown, 'ends_at', ui.text('', 'off', 'datetime-local'), 'Instead of the choice above.')}
${ui.field(shown, 'starts_at', ui.text('', 'off', 'datetime-local'), 'Empty: from now on.')}`
  const main = html`<h1>${check === null ? 'New silence' : html`Silence ${isolated(check.name)}`}</h1>
<p>While it holds, all is recorded, and no channel is notified. A check that is down at its end is notified then. ${other}</p>
<form method="post" action="${to(again ? 'again' : undefined)}" class="check-form" data-keep="silence-new">
${ui.generalFault(faults)}
${
  check === null
    ? html`${ui.field(shown, 'project_id', ui.choice(projects.map(({ id, name }): Choice => [id, name])))}
${ui.field(shown, 'tag', ui.text(), 'Of the checks with this tag only. Empty: of all checks of the project.')}`
    : ''
}
${times}
${ui.field(shown, 'time_zone', ui.text(ui.required), 'In which the times above are read, such as Europe/Berlin.')}
${ui.field(shown, 'comment', ui.text(html` required maxlength="${LIMITS.commentLength}"`), 'Why, for those who look for a message that was not sent.')}
<div class="actions"><button type="submit">Create the silence</button> <a href="${check === null ? '/silences' : `/checks/${check.id}`}">Cancel</a></div>
</form>`
  return { kind: 'page', title: 'New silence', main, ...(faults === undefined ? {} : { status: 422 }) }
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  const check = await readCheck(request)
  const zone = form.get('time_zone') ?? ''
  if (!isTimeZone(zone))
    return showForm(request, { time_zone: 'Time zone must be an IANA time zone like Europe/Berlin.' })
  const covers =
    check === null
      ? { project_id: form.get('project_id'), ...ui.filled(form, ['tag']) }
      : { project_id: check.projectId, check_id: check.id }
  try {
    const body = { ...covers, ...readTimes(request, zone), comment: form.get('comment') }
    const { id } = await createSilence(context, caller, readNewSilence(body))
    return redirect(check === null ? `/silences/${id}` : `/checks/${check.id}`, 'silence-created')
  } catch (error) {
    return showForm(request, faultsOf(error))
  }
}

/** What is no time or length stays a text, which the API rejects. */
function readTimes(request: Request, zone: string): object {
  const { form, now } = request
  const {
    starts_at: from,
    ends_at: until,
    for: length,
    duration_seconds: lasts = '',
    schedule,
  } = ui.filled(form, ['starts_at', 'ends_at', 'for', 'duration_seconds', 'schedule'])
  if (isAgain(request)) return { schedule, time_zone: zone, duration_seconds: parseDuration(lasts) ?? lasts }
  const start = from === undefined ? {} : { starts_at: readLocal(from, zone) }
  if (until !== undefined) return { ...start, ends_at: readLocal(until, zone) }
  const begins = from === undefined ? now : Date.parse(readLocal(from, zone))
  const ends = begins + Number(length) * 1_000
  return { ...start, ends_at: Number.isNaN(ends) ? '' : toIso(ends) }
}

function faultsOf(error: unknown): ui.Faults {
  if (error instanceof Error && error.message === notFound('project').message)
    return { project_id: 'This project does not exist any more: choose another.' }
  return ui.faultsOf(error, LABELS, { rest: ui.WHOLE })
}
