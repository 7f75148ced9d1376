/** On the page of a check that is down: who has it in hand, and the forms that say so. */

import { acknowledgeCheck, endAcknowledgement } from '../../../../checks/acknowledge.ts'
import type { StoredCheck } from '../../../../checks/find-checks.ts'
import { acknowledgementAt } from '../../../../domain/check.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { AcknowledgeBody } from '../../../api/checks.schema.ts'
import { parsePart } from '../../../api/faults.ts'
import { inCamelCase } from '../../../api/present.ts'
import { type Html, html, isolated } from '../../html.ts'
import { act, action, redirect } from '../../page.ts'
import { filled } from '../../ui/form.ts'
import { type Choice, select } from '../../ui/parts.ts'
import { acknowledgedSentence, type StatusFacts } from '../../words/status-words.ts'

const pageOf = (id: string) => `/checks/${id}`

export const acknowledgeRoutes = [
  action('/checks/{id}/acknowledge', 'write', async ({ context, caller, params, form }) => {
    const { for_seconds: seconds, ...others } = filled(form, ['for_seconds', 'comment'])
    const end = seconds === undefined ? {} : { for_seconds: Number(seconds) }
    const body = parsePart('body', AcknowledgeBody, { ...end, ...others })
    await acknowledgeCheck(context, caller, params.id!, inCamelCase(body))
    return redirect(pageOf(params.id!), 'check-acknowledged')
  }),
  act('/checks/{id}/unacknowledge', 'write', endAcknowledgement, pageOf, 'check-unacknowledged'),
]

/** Values of `for_seconds`; an empty one is left out. */
const ENDS: readonly Choice[] = [
  ['', 'until it is up again'],
  ['7200', 'for 2 hours'],
  ['86400', 'for 1 day'],
]

/** Empty for a check that is not down. */
export function renderAcknowledgement(
  { id, state }: Pick<StoredCheck, 'id' | 'state'>,
  facts: Pick<StatusFacts, 'now' | 'clock'>,
  mayWrite: boolean,
): Html {
  if (state.status !== 'down') return html``
  const held = acknowledgementAt(state, facts.now)
  if (held === null) return mayWrite ? renderForm(id) : html``
  const { comment } = held
  return html`<p id="acknowledged">${acknowledgedSentence(held, facts)}${comment === null ? '' : html` ${isolated(comment)}`}</p>
${mayWrite ? html`<form method="post" action="/checks/${id}/unacknowledge" class="acknowledge"><button type="submit" class="secondary outline">End the acknowledgement</button></form>` : ''}`
}

function renderForm(id: string): Html {
  return html`<form method="post" action="/checks/${id}/acknowledge" class="acknowledge">
${select(html`name="for_seconds" aria-label="How long nothing more is sent"`, ENDS, '')}
<input name="comment" maxlength="${LIMITS.commentLength}" placeholder="Comment" aria-label="Comment" autocomplete="off">
<button type="submit">Acknowledge</button>
</form>`
}
