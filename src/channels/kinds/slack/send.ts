import { postJson } from '../../../delivery/http-outcome.ts'
import type { Send, SendDigest } from '../../../delivery/outcome.ts'
import type { OpenChannel } from '../../../domain/channel.ts'
import type { SenderContext } from '../kind.ts'
import type { SlackSettings } from './config.ts'
import { renderDigest } from './digest.ts'
import { renderMessage, type SlackMessage } from './message.ts'

type Context = Pick<SenderContext, 'client' | 'clock' | 'links'>
export type SlackSender = Send<SlackSettings> & { sendDigest: SendDigest<SlackSettings> }

export function createSlackSender(context: Context): SlackSender {
  const { links } = context
  const post = (channel: OpenChannel<SlackSettings>, message: SlackMessage, signal: AbortSignal) =>
    postJson(context, channel, { url: channel.settings.url, body: JSON.stringify(message) }, signal)
  const send: Send<SlackSettings> = ({ channel, event }, signal) => post(channel, renderMessage(event, links), signal)
  const sendDigest: SendDigest<SlackSettings> = ({ channel, digest }, signal) =>
    post(channel, renderDigest(digest, links), signal)
  return Object.assign(send, { sendDigest })
}
