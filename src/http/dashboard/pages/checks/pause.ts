/**
 * `/checks/{id}/pause`: until when a check is paused, and why. The form of the page of the check posts here without a
 * field.
 */

import { type CheckRecord, getCheck } from '../../../../checks/find-checks.ts'
import { pauseCheck } from '../../../../checks/pause-resume.ts'
import type { Instant } from '../../../../domain/check.ts'
import { toIso } from '../../../../domain/instant.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { readPause } from '../../../api/checks.ts'
import { html, isolated } from '../../html.ts'
import { action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import { choice, type Faults, faultsOf, field, filled, stateOf, text } from '../../ui/form.ts'
import { nextMorning, readLocal } from '../../ui/local-time.ts'

export const pauseRoutes = [
  page('/checks/{id}/pause', 'write', async (request) => showPause(await readCheck(request), new URLSearchParams())),
  action('/checks/{id}/pause', 'write', pause),
]

const readCheck = ({ context, caller, params }: Request) => getCheck(context, caller, params.id!)

const LABELS = { end: 'Until', until: 'Time', comment: 'Comment' } as const
const MORNING = 'tomorrow'
/** The value of a length is its seconds. */
const ENDS = [
  ['', 'it is resumed'],
  ['3600', 'in one hour'],
  ['14400', 'in four hours'],
  [MORNING, 'tomorrow at 08:00'],
] as const

function showPause({ id, name, spec, state }: CheckRecord, form: URLSearchParams, faults?: Faults): Page {
  const { pause } = state
  const shown = stateOf('pause', LABELS, faults && { values: form, faults }, { comment: pause?.comment ?? '' })
  const main = html`<h1>Pause ${isolated(name)}</h1>
<p>While it is paused, its pings are kept, nothing is expected, and no notification is sent.${pause === null ? '' : ' The pause that it has is replaced.'}</p>
<form method="post" action="/checks/${id}/pause" class="check-form" novalidate>
${field(shown, 'end', choice(ENDS))}
${field(shown, 'until', text('', 'off', 'datetime-local'), `Instead of the choice above, in the time zone ${zoneOf(spec)}.`)}
${field(shown, 'comment', text(html` maxlength="${LIMITS.commentLength}"`), 'Why, for the others who see the check.')}
<div class="actions"><button type="submit">Pause</button> <a href="/checks/${id}">Cancel</a></div>
</form>`
  return { kind: 'page', title: `Pause ${name}`, main, ...(faults === undefined ? {} : { status: 422 }) }
}

async function pause(request: Request): Promise<Page | Redirect> {
  const { context, caller, form, now } = request
  const check = await readCheck(request)
  try {
    await pauseCheck(context, caller, check.id, readPause(toBody(form, zoneOf(check.spec), now)))
    return redirect(`/checks/${check.id}`, 'check-paused')
  } catch (error) {
    return showPause(check, form, faultsOf(error, LABELS))
  }
}

const zoneOf = ({ timeZone }: CheckRecord['spec']): string => timeZone ?? 'UTC'

/** The body of the API. */
function toBody(form: URLSearchParams, zone: string, now: Instant): object {
  const { end, until, comment } = filled(form, Object.keys(LABELS))
  const said = comment === undefined ? {} : { comment }
  if (until !== undefined) return { ...said, until: readLocal(until, zone) }
  if (end === MORNING) return { ...said, until: toIso(nextMorning(now, zone)) }
  return end === undefined ? said : { ...said, for_seconds: Number(end) }
}
