/** `/channels` and `/channels/{id}`: where events go, and whether it works. */

import { type ChannelRecord, getChannel, listChannels, showFor } from '../../../../channels/find-channels.ts'
import {
  type DeliveryRecord,
  findLastDeliveries,
  getDelivery,
  listDeliveries,
} from '../../../../channels/find-deliveries.ts'
import { KINDS } from '../../../../channels/kinds/index.ts'
import { countDependent, removeChannel } from '../../../../channels/remove-channel.ts'
import { findRotation, rotateSecret } from '../../../../channels/rotate-secret.ts'
import { testChannel } from '../../../../channels/test-channel.ts'
import { updateChannel } from '../../../../channels/update-channel.ts'
import { includesScope } from '../../../../domain/access.ts'
import { CHANNEL_KINDS, type DeliveryStatus } from '../../../../domain/channel.ts'
import type { Instant } from '../../../../domain/check.ts'
import { AppError } from '../../../../domain/errors.ts'
import { encodeCursor } from '../../../../domain/page.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { pause } from '../../../../runtime/clock.ts'
import { ChannelListQuery } from '../../../api/channels.ts'
import { parsePart } from '../../../api/faults.ts'
import { STATUS } from '../../../error-codes.ts'
import { type Html, html, isolated } from '../../html.ts'
import { badge, icon } from '../../icons.ts'
import { act, action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import { filled } from '../../ui/form.ts'
import { confirm, copyButton, crumbs, facts, pager, section, table } from '../../ui/parts.ts'
import { declaredBy } from '../../words/resource-words.ts'
import { deliveryBadge, EVENT_WORDS } from '../../words/status-words.ts'
import { ago, spellDuration } from '../../words/time-words.ts'
import { sentence } from '../../words/words.ts'
import { type ProjectNames, readProjectNames } from '../all-projects.ts'
import { deliveryList, responseWords } from '../deliveries.ts'
import { showField } from './channel-config.ts'

const toChannel = (id: string) => `/channels/${id}`

export const channelsRoutes = [
  page('/channels', 'read', showChannels),
  page('/channels/{id}', 'read', showChannel),
  action('/channels/{id}/test', 'admin', async ({ context, caller, params }) => {
    const { deliveryId } = await testChannel(context, caller, params.id!)
    // Most receivers respond within a second: the next page shows what they responded.
    for (let poll = 0; poll < POLLS; poll += 1) {
      const { status, lastError } = await getDelivery(context, caller, deliveryId)
      if (status !== 'pending' || lastError !== null) break
      await pause(POLL_MS)
    }
    return redirect(`/channels/${params.id}`, 'test-sent')
  }),
  page('/channels/{id}/mute', 'admin', confirmMute),
  act('/channels/{id}/mute', 'admin', (...of) => updateChannel(...of, { muted: true }), toChannel, 'channel-muted'),
  act(
    '/channels/{id}/unmute',
    'admin',
    (...of) => updateChannel(...of, { muted: false }),
    toChannel,
    'channel-unmuted',
  ),
  page('/channels/{id}/delete', 'admin', confirmDelete),
  action('/channels/{id}/delete', 'admin', deleteChannel),
  page('/channels/{id}/rotate-secret', 'admin', confirmRotation),
  action('/channels/{id}/rotate-secret', 'admin', rotate),
]

const POLLS = 10
const POLL_MS = 100
const ROWS = 100
const SHOWN_DELIVERIES = 20

// The list
// ---------------------------------------------------------------------------------------------------------------

async function showChannels({ context, caller, query, now }: Request): Promise<Page> {
  const asked = filled(query, ['cursor'])
  const { cursor } = parsePart('query', ChannelListQuery, asked)
  const [{ rows, next }, projects] = await Promise.all([
    listChannels(context, caller, { limit: ROWS, after: cursor ?? null }),
    readProjectNames({ context, caller }),
  ])
  const last = await findLastDeliveries(
    context,
    caller,
    rows.map(({ id }) => id),
  )
  const add = includesScope(caller.scope, 'admin')
    ? html`<p><a class="button" href="/channels/new">${icon('add')} Add a channel</a></p>`
    : ''
  const groups = CHANNEL_KINDS.map((kind) => ({ kind, channels: rows.filter((channel) => channel.kind === kind) }))
    .filter(({ channels }) => channels.length > 0)
    .map(({ kind, channels }) =>
      section(`kind-${kind}`, KINDS[kind].config.title, renderTable(channels, last, projects, now)),
    )
  const main = html`<h1>Channels</h1>
<p class="muted">Channels receive a notification when a check goes down and when it is up again.</p>
${rows.length === 0 ? empty(add) : add}
${groups}
${pager('/channels', asked, next && `channels.${encodeCursor(next)}`)}`
  return { kind: 'page', title: 'Channels', main, live: 'list' }
}

function empty(add: Html | string): Html {
  return html`<article class="empty">
<p>No channel exists yet, so no one is notified when a check goes down.</p>
${add === '' ? html`<p>An admin of this dashboard can add one.</p>` : add}
</article>`
}

function renderTable(
  channels: readonly ChannelRecord[],
  last: ReadonlyMap<string, DeliveryRecord>,
  projects: ProjectNames,
  now: Instant,
): Html {
  return table<ChannelRecord>(
    [
      ['Channel', ({ id, name }) => html`<a href="/channels/${id}">${isolated(name)}</a>`, 'name'],
      ['State', (channel) => stateBadge(channel, last.get(channel.id))],
      ['Checks', (channel) => servedWords(channel, projects)],
      channels.some(({ afterSeconds }) => afterSeconds > 0) && ['Notified', afterWords],
      ['Last delivery', ({ id }) => lastWords(last.get(id), now)],
    ],
    channels,
    { look: 'cards even-columns', id: ({ id }) => `channel-${id}` },
  )
}

function lastWords(last: DeliveryRecord | undefined, now: Instant): Html {
  if (last === undefined) return html`<span class="muted">none yet</span>`
  return html`<span>${EVENT_WORDS[last.type]} ${ago(last.createdAt, now)}</span>`
}

/** Whether the channel works, by its last delivery. */
function stateBadge({ muted, warnings }: ChannelRecord, last: DeliveryRecord | undefined): Html {
  const [look, word] = muted
    ? (['paused', 'Muted'] as const)
    : warnings.length > 0
      ? (['down', 'Cannot deliver'] as const)
      : last === undefined
        ? (['new', 'Not used yet'] as const)
        : STATES[last.status]
  return badge(look, word)
}

/** By its last delivery that was sent: one that is suppressed was not. */
const STATES = {
  delivered: ['up', 'Works'],
  failed: ['down', 'Failing'],
  pending: ['late', 'Tries again'],
  suppressed: ['new', 'Not used yet'],
} as const satisfies Record<DeliveryStatus, readonly [string, string]>

/** When it is notified of a check that goes down. */
function afterWords({ afterSeconds }: ChannelRecord): string {
  return afterSeconds === 0 ? 'at once' : `after ${spellDuration(afterSeconds)}, unless a person has it by then`
}

function servedWords({ projectId, managedBy }: ChannelRecord, projects: ProjectNames): Html {
  if (managedBy === 'configuration') return html`all of the installation`
  if (projectId === null) return html`all of the organization`
  return html`<span>project <a href="/checks?project=${projectId}">${isolated(projects.get(projectId) ?? projectId)}</a></span>`
}

// One channel
// ------------------------------------------------------------------------------------------------------------

async function showChannel({ context, caller, params, now }: Request): Promise<Page> {
  const channel = showFor(caller.scope, await getChannel(context, caller, params.id!))
  const { id, name, kind, events, afterSeconds, config, muted, warnings, isInClear, managedBy } = channel
  const [{ rows: deliveries }, { rows: pending }, projects] = await Promise.all([
    listDeliveries(context, caller, { channelId: id }, { limit: SHOWN_DELIVERIES, after: null }),
    listDeliveries(context, caller, { channelId: id, status: 'pending' }, { limit: 1, after: null }),
    readProjectNames({ context, caller }),
  ])
  const { title, form } = KINDS[kind].config
  const test = deliveries.find(({ type }) => type === 'channel.test')
  const main = html`${crumbs([['/channels', 'Channels']], title)}
<div class="check-head"><h1>${isolated(name)}</h1>
<p>${stateBadge(
    channel,
    deliveries.find(({ attempts }) => attempts > 0),
  )}</p></div>
${warnings.map((warning) => html`<p class="warning" role="status">${sentence(warning)}</p>`)}
${isInClear ? html`<p class="warning" role="status">The URL is http: what is sent can be read on its way. Use https where the network is not trusted.</p>` : ''}
${muted ? html`<p>It receives tests only. What happens meanwhile is not sent later.</p>` : ''}
${managedBy === 'configuration' ? html`<p>It belongs to the configuration of the installation (<code>ALERTMANAGER_URL</code>) and serves all organizations.</p>` : ''}
${channel.kubernetes === null ? '' : declaredBy('HeartbeatChannel', channel.kubernetes)}
${includesScope(caller.scope, 'admin') ? actions(channel, pending.length > 0) : ''}
${test === undefined ? '' : lastTest(test, now)}
${facts([
  ['Checks', servedWords(channel, projects)],
  ['Events', events.map((type) => EVENT_WORDS[type]).join(', ')],
  ...(afterSeconds === 0 ? [] : [['Notified', afterWords(channel)] as const]),
  ...(config === null || managedBy === 'configuration'
    ? []
    : form.map((field) => [field.label, showField(field, config)] as const)),
  ['Added', ago(channel.createdAt, now)],
])}
${section(
  'deliveries',
  'Last deliveries',
  deliveries.length === 0
    ? html`<p class="muted">Nothing has been sent to it yet.</p>`
    : html`${await deliveryList(deliveries, { context, caller, now, back: `/channels/${id}`, of: 'channel' })}
<p><a href="/deliveries?channel=${id}">All deliveries of this channel</a></p>`,
)}`
  return { kind: 'page', title: toOneLine(name), main, live: 'list' }
}

/** A test is a delivery, and has the outcome of the delivery. */
function lastTest(test: DeliveryRecord, now: Instant): Html {
  const isWaiting = test.status === 'pending' && test.attempts === 0
  return html`<p class="last-test"><strong>Last test</strong> ${ago(test.createdAt, now)}: ${deliveryBadge(test.status)} ${responseWords(test, now)}
${isWaiting ? html`<a href="/channels/${test.channelId}">Show the outcome</a>` : ''}</p>`
}

function actions({ id, kind, muted, managedBy }: ChannelRecord, hasPending: boolean): Html {
  const test = html`<form method="post" action="/channels/${id}/test"><button type="submit">Send a test</button></form>`
  if (managedBy !== 'api') return html`<nav class="buttons" aria-label="Actions">${test}</nav>`
  const post = (what: string, text: string) =>
    html`<form method="post" action="/channels/${id}/${what}"><button type="submit" class="secondary outline">${text}</button></form>`
  const link = (what: string, text: string) =>
    html`<a class="button secondary outline" href="/channels/${id}/${what}">${text}</a>`
  // Muting is one click unless something is lost by it.
  const mute = muted ? post('unmute', 'Unmute') : hasPending ? link('mute', 'Mute') : post('mute', 'Mute')
  return html`<nav class="buttons" aria-label="Actions">
${test}
${link('edit', 'Edit')}
${mute}
${KINDS[kind].config.secret === undefined ? '' : link('rotate-secret', 'New secret')}
${link('delete', 'Delete')}
</nav>`
}

async function confirmMute(request: Request): Promise<Page> {
  const { id, name } = await findChangeable(request)
  const loss = html`<p>Deliveries to it that are pending fail, and what happens until you unmute it is not sent later. Tests are sent.</p>`
  const back = `/channels/${id}`
  return confirm(request, { ask: 'Mute', name, loss, button: 'Mute the channel', isDanger: false, back })
}

async function confirmDelete(request: Request): Promise<Page> {
  const { id, name, kind } = await findChangeable(request)
  const count = await countDependent(request.context, request.caller, id)
  const [checks, them] = count === 1 ? ['1 check notifies', 'it'] : [`${count} checks notify`, 'them']
  const loss = html`<p>The ${KINDS[kind].config.title} channel receives nothing any more. Its deliveries are deleted, also those that are pending. This cannot be undone.</p>
${count === 0 ? '' : html`<p class="warning" role="status">${checks} this channel alone. Without it, all channels are notified of ${them} again. Let ${them} choose other channels first if that is too many.</p>`}`
  const fields = count === 0 ? '' : html`<input type="hidden" name="force" value="true">`
  const back = `/channels/${id}`
  return confirm(request, { ask: 'Delete', name, loss, button: 'Delete the channel', back, fields })
}

async function deleteChannel(request: Request): Promise<Page | Redirect> {
  const { context, caller, params, form } = request
  try {
    await removeChannel(context, caller, params.id!, { force: form.get('force') === 'true' })
    return redirect('/channels', 'channel-deleted')
  } catch (error) {
    // Checks have chosen it alone since the page that was confirmed.
    if (!(error instanceof AppError) || error.code !== 'channel_in_use') throw error
    return { ...(await confirmDelete(request)), status: STATUS[error.code] }
  }
}

/**
 * Throws AppError `not_found`, `conflict` for the channel of the installation, `managed_by_kubernetes` for a declared
 * one.
 */
export async function findChangeable({ context, caller, params }: Request): Promise<ChannelRecord> {
  const channel = await getChannel(context, caller, params.id!)
  if (channel.managedBy === 'api') return channel
  if (channel.kubernetes !== null)
    throw new AppError('managed_by_kubernetes', { what: 'channel', resource: channel.kubernetes })
  throw new AppError('conflict', 'the channel belongs to the configuration: change ALERTMANAGER_URL instead')
}

// The signing secret of a webhook, which is shown once: in the response of the form that makes it.
// ---------------------------------------------------------------------------------------------------------------------

async function confirmRotation(request: Request): Promise<Page> {
  const { id, name, kind } = await findChangeable(request)
  if (KINDS[kind].config.secret === undefined)
    throw new AppError('conflict', `a channel of the kind ${kind} has no signing secret`)
  const seen = await findRotation(request.context, request.caller, id)
  return confirm(request, {
    ask: 'Make a new secret for',
    name,
    loss: html`<p>The new secret is shown once. For 24 hours the previous one signs too, so that you have time to change the receiver.</p>`,
    button: 'Make a new secret',
    isDanger: false,
    back: `/channels/${id}`,
    fields: html`<input type="hidden" name="seen" value="${seen}">`,
  })
}

async function rotate(request: Request): Promise<Page> {
  const { context, caller, form } = request
  const channel = await findChangeable(request)
  // A browser that loads the response again posts the form again: that makes no other secret.
  const { secret } = await rotateSecret(context, caller, channel.id, form.get('seen') ?? undefined)
  return showSecret(channel, secret, 'The channel has a new secret. For 24 hours the previous one signs too.')
}

/** `what`: what has just happened. */
export function showSecret({ id, name }: Pick<ChannelRecord, 'id' | 'name'>, secret: string, what: string): Page {
  const main = html`<article class="confirm">
<h1>${isolated(name)}</h1>
<p role="status">${what}</p>
<p>With this secret the receiver verifies that a request comes from here. <strong>Copy it now: it is not shown again.</strong></p>
<p class="secret-line"><code id="secret">${secret}</code> ${copyButton('secret', 'the secret')}</p>
<form method="post" action="/channels/${id}/test" class="buttons">
<button type="submit">Send a test</button>
<a class="button secondary outline" href="/channels/${id}">Go to the channel</a>
</form>
</article>`
  return { kind: 'page', title: toOneLine(name), main }
}
