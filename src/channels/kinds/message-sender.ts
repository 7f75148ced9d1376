/** The sender of a kind that sends one HTTP request for each event, and one for each digest. */

import type { HttpRequest } from '../../delivery/http.ts'
import type { Judge } from '../../delivery/http-outcome.ts'
import { postJson } from '../../delivery/http-outcome.ts'
import type { Outcome, Send, SendDigest } from '../../delivery/outcome.ts'
import type { ChannelSettings, OpenChannel } from '../../domain/channel.ts'
import type { Digest } from '../../domain/digest.ts'
import type { Event } from '../../domain/event.ts'
import type { Links, SenderContext } from './kind.ts'

/** How a kind words and addresses what it sends. The same event gives the same bytes. */
export interface Messages<Settings extends ChannelSettings, Message extends object> {
  renderEvent(event: Event, links: Links, settings: Settings): Message
  renderDigest(digest: Digest, links: Links, settings: Settings): Message
  /** `id`: of the event or the digest, the same in each attempt. */
  requestOf(settings: Settings, message: Message, id: string): MessageRequest
  /** What the responses of this service say, where the status alone does not. */
  readonly judge?: Judge
}

/** `body`: default the message as JSON. `secrets`: besides those of the URL, what a response may repeat. */
export interface MessageRequest extends Pick<HttpRequest, 'url' | 'headers'> {
  readonly method?: 'POST' | 'PUT'
  readonly body?: string
  readonly secrets?: readonly string[]
}

type Context = Pick<SenderContext, 'client' | 'clock' | 'links'>
export type MessageSender<Settings extends ChannelSettings> = Send<Settings> & { sendDigest: SendDigest<Settings> }

export function createMessageSender<Settings extends ChannelSettings, Message extends object>({
  renderEvent,
  renderDigest,
  requestOf,
  judge,
}: Messages<Settings, Message>): (context: Context) => MessageSender<Settings> {
  return (context) => {
    const post = (
      channel: OpenChannel<Settings>,
      message: Message,
      id: string,
      signal: AbortSignal,
    ): Promise<Outcome> => {
      const request = { body: JSON.stringify(message), ...requestOf(channel.settings, message, id) }
      return postJson(context, channel, judge === undefined ? request : { ...request, judge }, signal)
    }
    const { links } = context
    const send: Send<Settings> = ({ channel, event }, signal) =>
      post(channel, renderEvent(event, links, channel.settings), event.id, signal)
    const sendDigest: SendDigest<Settings> = ({ channel, digest }, signal) =>
      post(channel, renderDigest(digest, links, channel.settings), digest.id, signal)
    return Object.assign(send, { sendDigest })
  }
}
