/**
 * A workflow's trigger responds with 202 before it posts the card, and with errors of Azure Logic Apps, whose codes
 * Microsoft does not list: these are in reports of users.
 */

import { fieldsOf, type Judge, rejectFor } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import type { TeamsSettings } from './config.ts'
import { renderDigest, renderMessage, type TeamsMessage } from './message.ts'

const RENEW = 'make a new one in the Workflows app of Teams, and change the URL of this channel'
/** Faults of the workflow, which no other message would mend. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  // Also of a deleted one: its trigger has the state Deleted.
  ['WorkflowTriggerIsNotEnabled', `the workflow is turned off or deleted: turn it on, or ${RENEW}`],
  ['WorkflowNotFound', `the workflow is deleted: ${RENEW}`],
  [
    'DirectApiAuthorizationRequired',
    'the URL has no signature: let anyone trigger the workflow, and copy its URL with all that is behind ?',
  ],
])

const judge: Judge = (response, outcome) => {
  if (outcome.kind === 'delivered') return outcome
  const { code } = (fieldsOf(response).error ?? {}) as { readonly code?: unknown }
  const advice = ADVICE.get(code)
  return advice === undefined ? outcome : rejectFor(outcome, advice)
}

export const createTeamsSender = createMessageSender<TeamsSettings, TeamsMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf: ({ url }) => ({ url }),
  judge,
})
