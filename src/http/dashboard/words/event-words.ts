/** Events and deliveries in everyday words. */

import type { NamedDelivery } from '../../../channels/find-deliveries.ts'
import type { CheckEventType, EventType } from '../../../domain/event.ts'
import { type Html, html } from '../html.ts'
import { icon } from '../icons.ts'

export const EVENT_WORDS: Readonly<Record<EventType, string>> = {
  'check.down': 'Down',
  'check.up': 'Up again',
  'check.paused': 'Paused',
  'check.resumed': 'Resumed',
  'check.flapping': 'Flapping',
  'check.late': 'Late',
  'check.unknown': 'Outcome not known',
  'channel.test': 'Test',
}

/** When each event is sent, for the choice of a channel. */
export const EVENT_MEANINGS: Readonly<Record<CheckEventType, string>> = {
  'check.down': 'a job failed, took too long, or did not report in time',
  'check.up': 'the first success after it was down',
  'check.paused': 'a user or a manifest paused the check',
  'check.resumed': 'the check is watched again',
  'check.flapping': 'it went down and up too often; then nothing more until it stays the same',
  'check.late': 'a report is overdue, and its grace time runs',
  'check.unknown': 'this service was down when the job should have reported',
}

const STATUSES = {
  delivered: { look: 'up', word: 'Delivered' },
  failed: { look: 'down', word: 'Failed' },
  pending: { look: 'late', word: 'Pending' },
} as const satisfies Record<NamedDelivery['status'], { look: 'up' | 'down' | 'late'; word: string }>

export const deliveryWord = (status: NamedDelivery['status']): string => STATUSES[status].word

/** By shape, word and colour. */
export function deliveryBadge(status: NamedDelivery['status']): Html {
  const { look, word } = STATUSES[status]
  return html`<span class="status status-${look}">${icon(look)} ${word}</span>`
}
