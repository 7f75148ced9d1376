/**
 * Slack's incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks ("Handling
 * errors": a word as the whole response). Other services behind the same kind say other things: their status decides.
 */

import { type Judge, rejectFor } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import type { SlackSettings } from './config.ts'
import { renderDigest } from './digest.ts'
import { renderMessage, type SlackMessage } from './message.ts'

const RENEW = 'make a new one in the settings of your Slack app, and change the URL of this channel'
const NO_CHANNEL = `its channel is archived or deleted: restore it, or ${RENEW}`
const NO_WEBHOOK = `the webhook is turned off or deleted: ${RENEW}`
/** Faults of the webhook, which no other message would mend. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['no_service', NO_WEBHOOK],
  ['no_service_id', NO_WEBHOOK],
  ['no_active_hooks', NO_WEBHOOK],
  ['invalid_token', NO_WEBHOOK],
  ['channel_not_found', NO_CHANNEL],
  ['channel_is_archived', NO_CHANNEL],
  ['no_team', `the app is no longer in the workspace, or the workspace is gone: ${RENEW}`],
  ['team_disabled', 'the workspace is disabled'],
  ['action_prohibited', 'an administrator of the workspace does not let the webhook post there'],
  ['posting_to_general_channel_denied', 'an administrator of the workspace does not let the webhook post there'],
])

const judge: Judge = ({ text }, outcome) => {
  const advice = outcome.kind === 'delivered' ? undefined : ADVICE.get(text.trim())
  return advice === undefined ? outcome : rejectFor(outcome, advice)
}

export const createSlackSender = createMessageSender<SlackSettings, SlackMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf: ({ url }) => ({ url }),
  judge,
})
