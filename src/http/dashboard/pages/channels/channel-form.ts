/** `/channels/new` and `/channels/{id}/edit`: first the kind, then its fields. */

import { createChannel } from '../../../../channels/create-channel.ts'
import type { ChannelRecord } from '../../../../channels/find-channels.ts'
import { KINDS } from '../../../../channels/kinds/index.ts'
import type { ConfigField } from '../../../../channels/kinds/kind.ts'
import { updateChannel } from '../../../../channels/update-channel.ts'
import { AFTER_SECONDS, CHANNEL_KINDS, type ChannelKind, standardEventsOf } from '../../../../domain/channel.ts'
import { AppError, isConflict, notFound } from '../../../../domain/errors.ts'
import { CHECK_EVENT_TYPES } from '../../../../domain/event.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { NewChannel } from '../../../api/channels.ts'
import { parsePart } from '../../../api/faults.ts'
import { given } from '../../../api/present.ts'
import { STATUS } from '../../../error-codes.ts'
import { type Html, html, isolated } from '../../html.ts'
import { action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import * as ui from '../../ui/form.ts'
import type { Choice } from '../../ui/parts.ts'
import { EVENT_MEANINGS, EVENT_WORDS } from '../../words/status-words.ts'
import { parseDuration, spellDuration } from '../../words/time-words.ts'
import { sentence } from '../../words/words.ts'
import { listAllProjects } from '../all-projects.ts'
import { describeFault, inputOf, readConfigForm, writeConfigForm } from './channel-config.ts'
import { findChangeable, showSecret } from './channels.ts'

export const channelFormRoutes = [
  page('/channels/new', 'admin', (request) => {
    const kind = kindOf(request.query.get('kind'))
    return kind === null ? chooseKind() : showNew(request, kind, emptyForm(kind))
  }),
  action('/channels/new', 'admin', create),
  page('/channels/{id}/edit', 'admin', async (request) => {
    const channel = await findChangeable(request)
    return showEdit(request, channel, formOf(channel))
  }),
  action('/channels/{id}/edit', 'admin', change),
]

const LABELS = { name: 'Name', project_id: 'Checks', events: 'Events', after_seconds: 'Notify after' } as const

function kindOf(text: string | null): ChannelKind | null {
  return CHANNEL_KINDS.find((kind) => kind === text) ?? null
}

function chooseKind(): Page {
  const main = html`<h1>Add a channel</h1>
<p>Where do you want to be notified?</p>
<ul class="kinds">
${CHANNEL_KINDS.map((kind) => {
  const { title, purpose } = KINDS[kind].config
  return html`<li><article><h2><a href="/channels/new?kind=${kind}">${title}</a></h2><p>${purpose}</p></article></li>`
})}
</ul>
<p><a href="/channels">Back to the channels</a></p>`
  return { kind: 'page', title: 'Add a channel', main }
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  const kind = kindOf(form.get('kind'))
  if (kind === null) return chooseKind()
  try {
    const body = parsePart('body', NewChannel, { kind, ...readForm(kind, form) })
    const { name, project_id: projectId, events, after_seconds: afterSeconds, config } = body
    const fields = { ...ui.readNewId(form), kind, name, config, afterSeconds, ...given({ projectId, events }) }
    const { secret, ...channel } = await createChannel(context, caller, fields)
    if (secret === null) return redirect(`/channels/${channel.id}`, 'channel-added')
    return showSecret(channel, secret, 'The channel is added.')
  } catch (error) {
    const { faults, status } = readFaults(kind, error)
    return { ...(await showNew(request, kind, form, faults)), status }
  }
}

async function change(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  const channel = await findChangeable(request)
  const { id, kind } = channel
  const changed = ui.changedFields<string>(form, valuesOf(kind, form), ['events'])
  try {
    // By the schema of a new channel, which reads the config too, so that all faults are shown at once.
    const body = parsePart('body', NewChannel, { kind, ...readForm(kind, merge(formOf(channel), form, changed)) })
    const { name, project_id: projectId, events, after_seconds: afterSeconds, config } = body
    const isConfigChanged = KINDS[kind].config.form.some((field) => changed.has(inputOf(field)))
    const update = {
      name: changed.has('name') ? name : undefined,
      projectId: changed.has('project_id') ? projectId : undefined,
      events: changed.has('events') ? events : undefined,
      afterSeconds: changed.has('after_seconds') ? afterSeconds : undefined,
      readConfig: isConfigChanged ? () => config : undefined,
    }
    await updateChannel(context, caller, id, given(update))
    return redirect(`/channels/${id}`, 'channel-changed')
  } catch (error) {
    const { faults, status } = readFaults(kind, error)
    return { ...(await showEdit(request, channel, form, faults)), status }
  }
}

// The form and the API
// ---------------------------------------------------------------------------------------------------

function emptyForm(kind: ChannelKind): URLSearchParams {
  const form = writeConfigForm(KINDS[kind].config.form, null)
  for (const type of standardEventsOf(kind)) form.append('events', type)
  return form
}

function formOf({ kind, name, projectId, events, afterSeconds, config }: ChannelRecord): URLSearchParams {
  const form = writeConfigForm(KINDS[kind].config.form, config)
  form.set('name', name)
  form.set('project_id', projectId ?? '')
  form.set('after_seconds', afterSeconds === 0 ? '' : spellDuration(afterSeconds))
  for (const type of events) form.append('events', type)
  return form
}

const inputsOf = (kind: ChannelKind) => [
  'name',
  'project_id',
  'events',
  'after_seconds',
  ...KINDS[kind].config.form.map(inputOf),
]

/** One text for each input, in which no order of boxes counts. */
function valuesOf(kind: ChannelKind, form: URLSearchParams): Record<string, string> {
  return Object.fromEntries(inputsOf(kind).map((input) => [input, form.getAll(input).sort().join(' ')]))
}

/** What the user changed over what is stored now. */
function merge(stored: URLSearchParams, typed: URLSearchParams, changed: ReadonlySet<string>): URLSearchParams {
  const kept = [...stored].filter(([input]) => !changed.has(input))
  return new URLSearchParams([...kept, ...[...typed].filter(([input]) => changed.has(input))])
}

/** The body that the API would get. */
function readForm(kind: ChannelKind, form: URLSearchParams): object {
  const after = form.get('after_seconds')?.trim() || '0'
  return {
    name: form.get('name') ?? '',
    project_id: form.get('project_id') || null,
    events: form.getAll('events'),
    // What is no length stays a text, whose fault says so.
    after_seconds: parseDuration(after) ?? after,
    config: readConfigForm(KINDS[kind].config.form, form),
  }
}

/** Rethrows what is no fault of the form. */
function readFaults(kind: ChannelKind, error: unknown): { faults: ui.Faults; status: number } {
  if (!(error instanceof AppError)) throw error
  const { code, message } = error
  if (code === 'not_found' && message === notFound('project').message)
    return { faults: { project_id: 'This project does not exist any more: choose another.' }, status: 422 }
  const faults = ui.faultsOf(error, LABELS, {
    word: (name, inside, text) => wordInside(kind, [name, ...inside], text),
    rest: ui.WHOLE,
  })
  return { faults, status: isConflict(code) ? STATUS[code] : 422 }
}

/** The input of a fault of the events or the config, and its text without a full stop. */
function wordInside(kind: ChannelKind, [first, name, ...below]: readonly string[], message: string): ui.WordedFault {
  if (first === 'events') return ['events', 'Choose at least one event']
  if (first === 'after_seconds')
    return [
      first,
      `${LABELS.after_seconds} must be a length of time such as 30 min, at most ${spellDuration(AFTER_SECONDS.max)}`,
    ]
  if (first !== 'config') return null
  const field = KINDS[kind].config.form.find((one) => one.name === name)
  if (field === undefined) return [ui.WHOLE, `${['config', name, ...below].join('.')} ${message}`]
  return [inputOf(field), describeFault(field, below.join('.'), message)]
}

// HTML
// -------------------------------------------------------------------------------------------------------------------

async function showNew(request: Request, kind: ChannelKind, form: URLSearchParams, faults?: ui.Faults): Promise<Page> {
  const { title, purpose } = KINDS[kind].config
  const main = html`<h1>Add a channel: ${title}</h1>
<p>${purpose} <a href="/channels/new">Choose another kind</a></p>
<form method="post" action="/channels/new?kind=${kind}" class="channel-form" data-keep="channel-new-${kind}">
<input type="hidden" name="kind" value="${kind}">
${ui.newIdField(request.now)}
${await renderFields(request, kind, form, faults)}
<div class="buttons"><button type="submit">Add the channel</button></div>
<p class="muted">Next, send a test to see that it works.</p>
</form>`
  return { kind: 'page', title: `Add a channel: ${title}`, main }
}

async function showEdit(
  request: Request,
  channel: ChannelRecord,
  form: URLSearchParams,
  faults?: ui.Faults,
): Promise<Page> {
  const { id, kind, name, config, warnings } = channel
  const main = html`<h1>Edit ${isolated(name)}</h1>
${config === null ? html`<p class="warning">${sentence(warnings[0]!)}</p>` : ''}
<form method="post" action="/channels/${id}/edit" class="channel-form" data-keep="channel-${id}">
${ui.wasField(valuesOf(kind, formOf(channel)), form.get(ui.WAS))}
${await renderFields(request, kind, form, faults)}
<div class="buttons"><button type="submit">Save</button>
<a class="button secondary outline" href="/channels/${id}">Cancel</a></div>
</form>`
  return { kind: 'page', title: `Edit ${toOneLine(name)}`, main }
}

async function renderFields(
  request: Request,
  kind: ChannelKind,
  form: URLSearchParams,
  faults: ui.Faults = {},
): Promise<Html> {
  const ofConfig = KINDS[kind].config.form
  const labels = { ...LABELS, ...Object.fromEntries(ofConfig.map((one) => [inputOf(one), one.label])) }
  const focus = Object.keys(faults).find((input) => input !== ui.WHOLE) ?? 'name'
  const state: ui.FormState = { labels, values: { project_id: '', ...Object.fromEntries(form) }, faults, focus }
  const projects = (await listAllProjects(request)).map(({ id, name }): Choice => [id, `Project ${name}`])
  const events = CHECK_EVENT_TYPES.map((type): ui.Box => [type, EVENT_WORDS[type], EVENT_MEANINGS[type]])
  return html`${ui.generalFault(faults)}
${ui.field(state, 'name', ui.text(html` maxlength="200" required`), 'How you recognize it, for example "Pager of the database team".')}
${ofConfig.map((one) => ui.field(state, inputOf(one), controlOf(one), one.meaning))}
${ui.field(state, 'project_id', ui.choice([['', 'All checks of the organization'], ...projects]), 'The checks that notify this channel.')}
${ui.field(state, 'after_seconds', ui.text(), 'For a second channel, such as 30 min: it is notified of a check that is still down after this time, if no one has acknowledged that, and of its recovery; of nothing else. Empty: at once.')}
${ui.boxes(state, 'events', events, form.getAll('events'))}`
}

function controlOf({ as, example, isSecret, isOptional }: ConfigField): ui.Control {
  const more = html` placeholder="${example}" autocapitalize="off" spellcheck="false"${isSecret ? html` data-secret` : ''}`
  if (as === 'lines' || as === 'pairs') return ui.area(3, html` autocomplete="off"${more}`)
  const keys = as === 'number' ? 'numeric' : example.startsWith('http') ? 'url' : 'text'
  return ui.text(html` inputmode="${keys}"${more}${isOptional ? '' : html` required`}`)
}
