/** Deliveries as a list: of all channels, of one channel, or of one check. */

import type { DashboardCaller } from '../../../auth/sessions.ts'
import type { NamedDelivery } from '../../../channels/find-deliveries.ts'
import { includesScope } from '../../../domain/access.ts'
import type { Instant } from '../../../domain/check.ts'
import { type Html, html, isolated } from '../html.ts'
import { table } from '../ui/parts.ts'
import { deliveryBadge, EVENT_WORDS } from '../words/status-words.ts'
import { ago } from '../words/time-words.ts'

export interface DeliveryListOptions {
  readonly caller: DashboardCaller
  readonly now: Instant
  /** The path and query that "Send again" leads back to. */
  readonly back: string
  /** What all deliveries of the list have in common, and no row repeats. */
  readonly of?: 'channel' | 'check'
}

export function deliveryList(deliveries: readonly NamedDelivery[], options: DeliveryListOptions): Html {
  const { of, caller, now, back } = options
  return table<NamedDelivery>(
    [
      [
        'Event',
        ({ type, createdAt }) =>
          html`<span>${EVENT_WORDS[type]} <small class="muted time">${ago(createdAt, now)}</small></span>`,
      ],
      of !== 'check' && ['Check', checkOf],
      of !== 'channel' && [
        'Channel',
        ({ channelId, channelName }) => html`<a href="/channels/${channelId}">${isolated(channelName)}</a>`,
      ],
      ['Outcome', ({ status }) => deliveryBadge(status)],
      ['Response', (delivery) => html`<span>${responseWords(delivery, now)}</span>`],
      includesScope(caller.scope, 'write') && [
        'Action',
        (delivery) => delivery.status !== 'pending' && sendAgain(delivery, back),
        'actions',
      ],
    ],
    deliveries,
    { id: ({ id }) => `delivery-${id}` },
  )
}

function checkOf({ type, checkId, checkName }: NamedDelivery): Html {
  if (type === 'channel.test') return html`<span class="muted">none, a test</span>`
  if (checkId === null || checkName === null) return html`<span class="muted">a check that was deleted</span>`
  return html`<a href="/checks/${checkId}">${isolated(checkName)}</a>`
}

/** What the receiver responded, why an attempt failed, and what follows. The text can hold words of the receiver. */
export function responseWords(delivery: NamedDelivery, now: Instant): Html {
  const { status, attempts, nextAttemptAt, lastStatus, lastError, deliveredAt, digestId } = delivery
  const parts: Html[] = []
  if (lastStatus !== null) parts.push(html`<strong>${lastStatus}</strong>`)
  if (lastError !== null) parts.push(html`<span class="response">${isolated(lastError)}</span>`)
  if (status === 'delivered' && deliveredAt !== null) parts.push(html`<span>accepted ${ago(deliveredAt, now)}</span>`)
  if (digestId !== null) parts.push(html`<span title="Digest ${digestId}">in a digest with others</span>`)
  if (status === 'pending' && attempts === 0) parts.push(html`<span>not sent yet</span>`)
  if (status === 'pending' && attempts > 0 && nextAttemptAt !== null)
    parts.push(html`<span>tried again ${ago(nextAttemptAt, now)}</span>`)
  if (attempts > 1) parts.push(html`<small class="muted">${attempts} attempts</small>`)
  return html`${parts.map((part, index) => (index === 0 ? part : html` <span aria-hidden="true">·</span> ${part}`))}`
}

function sendAgain({ id, type }: NamedDelivery, back: string): Html {
  return html`<form method="post" action="/deliveries/${id}/retry">
<input type="hidden" name="back" value="${back}">
<button type="submit" class="secondary outline" aria-label="Send again: ${EVENT_WORDS[type]}">Send again</button>
</form>`
}
