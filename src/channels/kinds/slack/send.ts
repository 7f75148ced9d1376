import { createMessageSender } from '../message-sender.ts'
import type { SlackSettings } from './config.ts'
import { renderDigest } from './digest.ts'
import { renderMessage, type SlackMessage } from './message.ts'

export const createSlackSender = createMessageSender<SlackSettings, SlackMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf: ({ url }) => ({ url }),
})
