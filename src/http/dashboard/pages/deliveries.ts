/** `/deliveries`: what was sent to channels, what failed and why; and the lists of one channel and of one check. */

import { type ChannelRecord, listChannels } from '../../../channels/find-channels.ts'
import { type DeliveryRecord, listDeliveries } from '../../../channels/find-deliveries.ts'
import { retryDelivery } from '../../../channels/retry-delivery.ts'
import { getCheck } from '../../../checks/find-checks.ts'
import { includesScope, type Scope } from '../../../domain/access.ts'
import { type Cause, DELIVERY_STATUSES, type Suppression } from '../../../domain/channel.ts'
import type { Instant } from '../../../domain/check.ts'
import { AppError } from '../../../domain/errors.ts'
import { toIso } from '../../../domain/instant.ts'
import { encodeCursor } from '../../../domain/page.ts'
import { findExisting } from '../../../silences/find-silences.ts'
import { DeliveryListQuery } from '../../api/deliveries.ts'
import { parsePart } from '../../api/faults.ts'
import { given } from '../../api/present.ts'
import { type Html, html, isolated } from '../html.ts'
import { ownPath } from '../own-page.ts'
import { action, type Page, page, type Request, redirect } from '../page.ts'
import { filled, filterAttribute, filterButton } from '../ui/form.ts'
import { addressOf, BY_TIME, type Choice, pager, type Query, select, table } from '../ui/parts.ts'
import { deliveryBadge, deliveryWord, EVENT_WORDS } from '../words/status-words.ts'
import { ago } from '../words/time-words.ts'

export const deliveriesRoutes = [
  page('/deliveries', 'read', showDeliveries),
  action('/deliveries/{id}/retry', 'write', async ({ context, caller, params, form }) => {
    await retryDelivery(context, caller, params.id!)
    return redirect(ownPath(form.get('back')) ?? '/deliveries', 'sent-again')
  }),
]

const HOUR_MS = 3_600_000
/** The choices of `since`. A link may also have a time, as the API takes it. */
const SPANS: Readonly<Record<string, { readonly ms: number; readonly name: string }>> = {
  '1h': { ms: HOUR_MS, name: 'The last hour' },
  '24h': { ms: 24 * HOUR_MS, name: 'The last 24 hours' },
  '7d': { ms: 7 * 24 * HOUR_MS, name: 'The last 7 days' },
}
const ROWS = 50
/** More are found by the page of the channel. */
const MAX_CHOICES = 200

/** The filters as the query has them. */
const FILTERS = ['status', 'channel', 'check', 'since'] as const
type Filters = Partial<Record<(typeof FILTERS)[number], string>>

const to = (query: Query) => addressOf('/deliveries', query)

async function showDeliveries({ context, caller, query, now }: Request): Promise<Page> {
  const filters: Filters = filled(query, FILTERS)
  const cursor = query.get('cursor')
  const { filter, after } = readQuery(filters, cursor, now)
  const [{ rows, next }, { rows: channels }, checkName] = await Promise.all([
    listDeliveries(context, caller, filter, { limit: ROWS, after }),
    listChannels(context, caller, { limit: MAX_CHOICES, after: null }),
    filters.check === undefined ? null : nameOfCheck(filters.check, { context, caller }),
  ])
  const back = to({ ...filters, cursor })
  const main = html`<h1>Deliveries</h1>
<p class="muted">Each event that a channel wants: sent, waiting, or not sent, and why. The newest are first.</p>
${filterForm(filters, channels, checkName, caller.scope)}
${rows.length === 0 ? empty(filters, cursor) : await deliveryList(rows, { context, caller, now, back })}
${pager('/deliveries', { ...filters, cursor }, next && `deliveries.${encodeCursor(next)}`, BY_TIME)}`
  return { kind: 'page', title: 'Deliveries', main, live: 'list' }
}

/** Throws AppError `invalid_request`, as the API does. */
function readQuery({ status, channel, check, since }: Filters, cursor: string | null, now: Instant) {
  const from = since !== undefined && Object.hasOwn(SPANS, since) ? toIso(now - SPANS[since]!.ms) : since
  const asked = given({ status, channel_id: channel, check_id: check, since: from, cursor: cursor ?? undefined })
  const read = parsePart('query', DeliveryListQuery, asked)
  const { channel_id: channelId, check_id: checkId, cursor: after = null } = read
  return { filter: given({ status: read.status, channelId, checkId, since: read.since }), after }
}

async function nameOfCheck(id: string, { context, caller }: Pick<Request, 'context' | 'caller'>): Promise<string> {
  try {
    return (await getCheck(context, caller, id)).name
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return 'a check that does not exist any more'
    throw error
  }
}

function filterForm(
  filters: Filters,
  channels: readonly ChannelRecord[],
  checkName: string | null,
  scope: Scope,
): Html {
  const { channel, check, since } = filters
  const statuses = DELIVERY_STATUSES.map((one): Choice => [one, deliveryWord(one)])
  const names = channels.map(({ id, name }): Choice => [id, name])
  if (channel !== undefined && channels.every(({ id }) => id !== channel)) names.push([channel, 'Another channel'])
  const spans = Object.entries(SPANS).map(([value, { name }]): Choice => [value, name])
  if (since !== undefined && !Object.hasOwn(SPANS, since)) spans.push([since, `Since ${since}`])
  const choose = (name: keyof Filters, choices: readonly Choice[]) =>
    select(html`name="${name}"`, [['', 'All'], ...choices], filters[name] ?? '')
  return html`<form method="get" action="/deliveries" class="delivery-filters"${filterAttribute(scope)}>
<label>Outcome ${choose('status', statuses)}</label>
<label>Channel ${choose('channel', names)}</label>
<label>Time ${choose('since', spans)}</label>
${check === undefined ? '' : html`<input type="hidden" name="check" value="${check}">`}
${filterButton(scope)}
${checkName === null ? '' : html`<p>Only of ${isolated(checkName)} <a href="${to({ ...filters, check: undefined })}">Show those of all checks</a></p>`}
</form>`
}

function empty(filters: Filters, cursor: string | null): Html {
  if (cursor !== null || Object.keys(filters).length > 0)
    return html`<p>No delivery matches. <a href="/deliveries">Show all deliveries</a></p>`
  return html`<article class="empty">
<p>Nothing was sent yet. A check that goes down, or a test of a channel, is listed here.</p>
<p><a class="button" href="/channels">Go to the channels</a></p>
</article>`
}

// The list
// ---------------------------------------------------------------------------------------------------------------------

export interface DeliveryListOptions extends Pick<Request, 'context' | 'caller'> {
  readonly now: Instant
  /** The path and query that "Send again" leads back to. */
  readonly back: string
  /** What all deliveries of the list have in common, and no row repeats. */
  readonly of?: 'channel' | 'check'
}

export async function deliveryList(deliveries: readonly DeliveryRecord[], options: DeliveryListOptions): Promise<Html> {
  const { of, context, caller, now, back } = options
  const causes = deliveries.flatMap(({ cause }) => (cause?.kind === 'silence' ? [cause.id] : []))
  const silences = await findExisting(context, caller, causes)
  return table<DeliveryRecord>(
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
      ['Response', (delivery) => html`<span>${responseWords(delivery, now, silences)}</span>`],
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

function checkOf({ type, checkId, checkName }: DeliveryRecord): Html {
  if (type === 'channel.test') return html`<span class="muted">none, a test</span>`
  if (checkId === null || checkName === null) return html`<span class="muted">a check that was deleted</span>`
  return html`<a href="/checks/${checkId}">${isolated(checkName)}</a>`
}

/** "Why did I not get this?" */
const WHY_NOT: Readonly<Record<Suppression, string>> = {
  muted: 'the channel was muted',
  silenced: 'a silence covered the check',
  dependency: 'a check that this one depends on was down',
  flapping: 'the check was flapping: it went down and up, warned or was reminded of too often',
  escalation: 'the incident ended before the time of the channel',
  acknowledged: 'a person had acknowledged that the check is down',
}

/** Of what suppresses a delivery; null: it has none, or is the channel of the row. */
function pageOf({ kind, id }: Cause, silences: ReadonlySet<string>): string | null {
  if (kind === 'check') return `/checks/${id}`
  return silences.has(id) ? `/silences/${id}` : null
}

/**
 * `silences`: ids of silences that have a page. What the receiver responded, why an attempt failed, and what follows.
 * The text can hold words of the receiver.
 */
export function responseWords(delivery: DeliveryRecord, now: Instant, silences: ReadonlySet<string> = new Set()): Html {
  const { status, reason, cause, attempts, nextAttemptAt, lastStatus, lastError, deliveredAt, digestId } = delivery
  const parts: Html[] = []
  if (reason !== null) {
    const place = cause === null ? null : pageOf(cause, silences)
    parts.push(html`<span>${place === null ? WHY_NOT[reason] : html`<a href="${place}">${WHY_NOT[reason]}</a>`}</span>`)
  }
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

function sendAgain({ id, type }: DeliveryRecord, back: string): Html {
  return html`<form method="post" action="/deliveries/${id}/retry">
<input type="hidden" name="back" value="${back}">
<button type="submit" class="secondary outline" aria-label="Send again: ${EVENT_WORDS[type]}">Send again</button>
</form>`
}
