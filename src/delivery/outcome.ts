/** One attempt to deliver an event, or a digest of many: what goes in, and its outcome. */

import type { ChannelKind, ChannelSettings, OpenChannel } from '../domain/channel.ts'
import type { Digest } from '../domain/digest.ts'
import type { Event } from '../domain/event.ts'

export type Outcome =
  /** `note`: what an operator should know although the event was delivered. */
  | { readonly kind: 'delivered'; readonly status: number | null; readonly note?: string }
  /**
   * A later attempt may work. `status`: of the HTTP or SMTP response; null when there was none. `isRefusal`: the receiver refuses, finally
   * unless it is restarting, so it is tried for an hour.
   */
  | {
      readonly kind: 'retry'
      readonly status: number | null
      readonly error: string
      readonly retryAfterMs?: number
      readonly isRefusal?: true
    }
  /**
   * No later attempt can work until an operator changes something. `isOfMessage`: this message is refused, not the channel, so another
   * one may be accepted.
   */
  | { readonly kind: 'rejected'; readonly status: number | null; readonly error: string; readonly isOfMessage?: true }

export interface Attempt<Settings extends ChannelSettings = ChannelSettings> {
  readonly channel: OpenChannel<Settings>
  readonly event: Event
  /** The check's key; null for a test. */
  readonly checkKey: number | null
}

/**
 * Sends one event to one channel. Every failure of the receiver or of the network is an outcome, not an exception. `error` and
 * `note` contain no secret. Ends with `retry` when `signal` aborts.
 */
export type Send<Settings extends ChannelSettings = ChannelSettings> = (
  attempt: Attempt<Settings>,
  signal: AbortSignal,
) => Promise<Outcome>

/** Sends one message for many events, by the same rules as Send. */
export type SendDigest<Settings extends ChannelSettings = ChannelSettings> = (
  attempt: { readonly channel: OpenChannel<Settings>; readonly digest: Digest },
  signal: AbortSignal,
) => Promise<Outcome>

export type Sender<Settings extends ChannelSettings = ChannelSettings> = Send<Settings> & {
  /** Absent: channels of this kind get each event in a message of its own. */
  readonly sendDigest?: SendDigest<Settings>
  /** Closes all connections, those in use too. */
  close?(): void
}

export type Senders = Readonly<Record<ChannelKind, Sender>>
