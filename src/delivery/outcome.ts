/** What became of one attempt to deliver an event. */

import type { ChannelKind, OpenChannel } from '../domain/channel.ts'
import type { Event } from '../domain/event.ts'

export type Outcome =
  /** `note`: what somebody who looks at the delivery should know nevertheless. */
  | { readonly kind: 'delivered'; readonly status: number | null; readonly note?: string }
  /** It may work later. `status`: of the HTTP or SMTP answer, null when there was none. */
  | { readonly kind: 'retry'; readonly status: number | null; readonly error: string; readonly retryAfterMs?: number }
  /** It will not work by itself: somebody must change something. */
  | { readonly kind: 'refused'; readonly status: number | null; readonly error: string }

export interface Attempt<Kind extends ChannelKind = ChannelKind> {
  readonly channel: OpenChannel<Kind>
  readonly event: Event
  /** The check's key; null for a test. */
  readonly checkKey: number | null
}

/**
 * Sends one event to one channel. Answers with what became of it, whatever happened; `error` and `note` hold no secret.
 * Ends, with `retry`, when `signal` aborts.
 */
export type Send<Kind extends ChannelKind = ChannelKind> = (
  attempt: Attempt<Kind>,
  signal: AbortSignal,
) => Promise<Outcome>

export type Senders = { readonly [Kind in ChannelKind]: Send<Kind> }
