/** `/checks/new`, `/checks/{id}/edit` and the preview of a schedule. */

import { listChannels } from '../../../../channels/find-channels.ts'
import { listChoosableChannels } from '../../../../checks/choose-channels.ts'
import { createCheck, type NewCheck } from '../../../../checks/create-check.ts'
import { type CheckRecord, getCheck } from '../../../../checks/find-checks.ts'
import { findDependencies, readSlugs } from '../../../../checks/find-dependencies.ts'
import { updateCheck } from '../../../../checks/update-check.ts'
import { AppError, invalidField } from '../../../../domain/errors.ts'
import { PAGE_LIMIT } from '../../../../domain/page.ts'
import { readCheckUpdate, readNewCheck } from '../../../api/checks.ts'
import { html, isolated } from '../../html.ts'
import { action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import { changedFields, type Faults, WAS, wasField } from '../../ui/form.ts'
import { copyButton } from '../../ui/parts.ts'
import { listAllProjects } from '../all-projects.ts'
import { dependencyWords } from './check-dependencies.ts'
import { renderFields, renderPreview } from './check-fields.ts'
import { declarerOf, type Resource } from './check-kubernetes.ts'
import {
  type FormBody,
  faultsOfCheck,
  newValues,
  readValues,
  splitWords,
  toBody,
  type Values,
  valuesOfCheck,
} from './check-values.ts'
import { renderHeartbeatCheck } from './heartbeat-check.ts'

/** These routes come before the routes of a check: `new` and `preview` are no ids. */
export const checkFormRoutes = [
  page('/checks/new', 'write', showNew),
  action('/checks/new', 'write', create),
  page('/checks/preview', 'write', ({ query, now }) => {
    return { kind: 'fragment', body: renderPreview(readValues(query), now) }
  }),
  page('/checks/{id}/edit', 'write', async (request) => showEdit(request, await getCheckOf(request))),
  action('/checks/{id}/edit', 'write', save),
]

const getCheckOf = ({ context, caller, params }: Request) => getCheck(context, caller, params.id ?? '')

// A new check
// ---------------------------------------------------------------------------------------------------------------------

/** `?project=` names one by its slug or id. */
async function showNew(request: Request): Promise<Page> {
  const choices = await listChoices(request)
  const wanted = request.query.get('project')
  const chosen = choices.projects.find(({ id, slug }) => id === wanted || slug === wanted) ?? choices.projects[0]
  return renderNew(request, choices, newValues(chosen?.id ?? ''), null)
}

async function create(request: Request): Promise<Page | Redirect> {
  const choices = await listChoices(request)
  const sent = readValues(request.form)
  const values = { ...sent, project_id: sent.project_id || (choices.projects[0]?.id ?? '') }
  const body = toBody(await withIds(request, values), null)
  const result = await tryForm(body, readNewCheck, (input) => createIn(request, input))
  if ('faults' in result) return renderNew(request, choices, values, result.faults)
  return redirect(`/checks/${result.done.id}/how`, 'check-created')
}

/** A project that was removed since the form was opened is a fault of its field. */
async function createIn({ context, caller }: Request, input: NewCheck): Promise<CheckRecord> {
  try {
    return await createCheck(context, caller, input)
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found' && error.field === undefined)
      throw invalidField('projectId', 'does not exist any more: choose another one')
    throw error
  }
}

/** Of a new check the project is not chosen yet: the channels of each. */
async function listChoices(request: Request) {
  const all = listChannels(request.context, request.caller, { limit: PAGE_LIMIT, after: null })
  const [projects, { rows }] = await Promise.all([listAllProjects(request), all])
  return { projects, channels: rows.filter(({ managedBy }) => managedBy !== 'configuration') }
}

type Choices = Awaited<ReturnType<typeof listChoices>>

/** `found`: the faults of what the user sent; null before that. */
function renderNew({ now }: Request, { projects, channels }: Choices, values: Values, found: Faults | null): Page {
  const faults = found ?? {}
  if (projects.length === 0) {
    const main = html`<h1>New check</h1>
<p>A check belongs to a project, and there is none yet.</p>
<p><a class="button" href="/settings">Create a project first</a></p>`
    return { kind: 'page', title: 'New check', main }
  }
  const main = html`<h1>New check</h1>
<p class="muted">A check watches one job. A name is enough to begin with; all other fields can be changed later.</p>
<form method="post" action="/checks/new" class="check-form" data-keep="new-check" novalidate>
${projects.length === 1 ? html`<input type="hidden" name="project_id" value="${values.project_id}">` : ''}
${renderFields({ values, faults, now, projects, channels, isNew: true, isFresh: found === null })}
<div class="actions"><button type="submit">Create check</button> <a href="/checks">Cancel</a></div>
</form>`
  return { kind: 'page', title: 'New check', main, ...statusOf(faults) }
}

// A change
// ---------------------------------------------------------------------------------------------------------------------

async function showEdit(request: Request, check: CheckRecord): Promise<Page> {
  const linked = await findDependencies(request.context, request.caller, check)
  const values = { ...valuesOfCheck(check), depends_on: dependencyWords(check, linked) }
  const resource = declarerOf(check)
  return resource === null ? renderEdit(request, check, values) : renderManaged(check, resource, values, request.now)
}

async function save(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  const check = await getCheckOf(request)
  // Since the form was opened; the verb rejects it too.
  if (check.managedBy !== 'api') return { ...(await showEdit(request, check)), status: 409 }
  const values = readValues(form, valuesOfCheck(check))
  const body = toBody(await withIds(request, values), changedFields(form, values))
  const result = await tryForm(body, readCheckUpdate, (update) => updateCheck(context, caller, check.id, update))
  if ('faults' in result) return renderEdit(request, check, values, result.faults)
  return redirect(`/checks/${check.id}`, 'check-saved')
}

async function renderEdit(request: Request, check: CheckRecord, values: Values, faults: Faults = {}): Promise<Page> {
  const { context, caller, form, now } = request
  const { id, name, projectId } = check
  const channels = await listChoosableChannels(context, caller, projectId)
  const main = html`<h1>Change ${isolated(name)}</h1>
<form method="post" action="/checks/${id}/edit" class="check-form" data-keep="edit-check-${id}" novalidate>
${wasField(values, form.get(WAS))}
${renderFields({ values, faults, now, channels, isNew: false })}
<div class="actions"><button type="submit">Save</button> <a href="/checks/${id}">Cancel</a></div>
</form>`
  return { kind: 'page', title: `Change ${name}`, main, ...statusOf(faults) }
}

function renderManaged(
  check: CheckRecord,
  { cluster, namespace, name: resource }: Resource,
  values: Values,
  now: number,
): Page {
  const { id, name } = check
  const main = html`<h1>${isolated(name)} is managed by Kubernetes</h1>
<p>Its values come from the HeartbeatCheck <code>${namespace}/${resource}</code> in the cluster <code>${cluster}</code>. A change here would be undone, so change the resource instead.</p>
<section class="snippet">
<h2>Manifest</h2>${copyButton('manifest', 'the manifest')}
<p>Change its values here or in your repository, save it as <code>heartbeat-check.yaml</code>, and apply it with <code>kubectl apply -f heartbeat-check.yaml</code>.</p>
<pre tabindex="0"><code id="manifest">${renderHeartbeatCheck(check)}</code></pre>
</section>
${check.cronJob === undefined ? '' : html`<p>If it was made for the label <code>heartbeat-operator.io/watch</code>, annotate the CronJob instead, with <code>heartbeat-operator.io/grace-seconds</code> and the like: the operator keeps the HeartbeatCheck as the CronJob says.</p>`}
<h2>Current values</h2>
<div class="check-form">${renderFields({ values, faults: {}, now, isNew: false, isReadOnly: true })}</div>
<p><a class="button" href="/checks/${id}">Back to the check</a></p>`
  return { kind: 'page', title: `${name} is managed by Kubernetes`, main }
}

// Both
// ---------------------------------------------------------------------------------------------------------------------

/** What the check depends on, by its ids. */
async function withIds({ context, caller }: Request, values: Values): Promise<Values> {
  const words = splitWords(values.depends_on)
  return { ...values, depends_on: (await readSlugs(context, caller, values.project_id, words)).join(' ') }
}

const statusOf = (faults: Faults) => (Object.keys(faults).length === 0 ? {} : { status: 422 })

/** The verb finds the faults that depend on what is stored. The others are found together, before it. */
async function tryForm<Input, T>(
  { body, faults }: FormBody,
  read: (body: unknown) => Input,
  run: (input: Input) => Promise<T>,
): Promise<{ done: T } | { faults: Faults }> {
  try {
    const input = read(body)
    return Object.keys(faults).length > 0 ? { faults } : { done: await run(input) }
  } catch (error) {
    const isOfField = error instanceof AppError && error.code === 'not_found' && error.field !== undefined
    const fault = isOfField ? invalidField(error.field, `must be known: ${error.message}`) : error
    return { faults: { ...faultsOfCheck(fault), ...faults } }
  }
}
