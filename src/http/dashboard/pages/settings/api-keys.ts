/** API keys: created, shown once, revoked. */

import type { Instant } from '../../../../domain/check.ts'
import { type ApiKeyRecord, createApiKey, getApiKey, listApiKeys, revokeApiKey } from '../../../../tenancy/api-keys.ts'
import { NewApiKey } from '../../../api/api-keys.ts'
import { parsePart } from '../../../api/faults.ts'
import { type Html, html, isolated } from '../../html.ts'
import { icon } from '../../icons.ts'
import { act, action, type Page, page, type Redirect, type Request } from '../../page.ts'
import * as ui from '../../ui/form.ts'
import { confirm, copyButton, crumbs, rowLink, table } from '../../ui/parts.ts'
import { ago, exactWords } from '../../words/time-words.ts'
import { type ProjectNames, readProjectNames } from '../all-projects.ts'
import { addition, createdWords, pagerOf, SCOPE_CHOICES, SETTINGS, type Section, showSection } from './section.ts'

const LABELS = { name: 'Name', scope: 'Scope', project_id: 'Project', expires_at: 'Expires' } as const

export const apiKeys: Section = {
  id: 'api-keys',
  title: 'API keys',
  async render(request, view) {
    const { context, caller, now } = request
    const list = await listApiKeys(context, caller, view)
    const projects = await readProjectNames(request)
    return html`<p class="muted">For programs: <code>Authorization: Bearer hbk_...</code></p>
${list.rows.length === 0 ? html`<p>There is no API key.</p>` : renderTable(list.rows, projects, now)}
${pagerOf(apiKeys, list, view)}
${addition('new-api-key', 'Create an API key', renderForm(projects, now, view.rejected))}`
  },
}

export const apiKeyRoutes = [
  page('/settings/api-keys', 'admin', (request) => showSection(request, apiKeys)),
  action('/settings/api-keys', 'admin', create),
  page('/settings/api-keys/{id}/revoke', 'admin', async (request) => {
    const { name, lastUsedAt } = await getApiKey(request.context, request.caller, request.params.id!)
    const used = lastUsedAt === null ? 'It was never used.' : html`It was last used ${ago(lastUsedAt, request.now)}.`
    const loss = html`<p>Programs that use the key ${isolated(name)} get errors at once. ${used}</p>`
    return confirm(request, { ask: 'Revoke this API key', loss, button: 'Revoke', back: '/settings#api-keys' })
  }),
  act('/settings/api-keys/{id}/revoke', 'admin', revokeApiKey, '/settings', 'key-revoked'),
]

function renderTable(keys: readonly ApiKeyRecord[], projects: ProjectNames, now: number): Html {
  return table<ApiKeyRecord>(
    [
      ['Name', ({ name }) => isolated(name), 'name'],
      ['Key', ({ prefix }) => html`<code>hbk_${prefix}_...</code>`],
      ['Scope', ({ scope }) => scope],
      ['Project', ({ projectId }) => (projectId === null ? 'all' : isolated(projects.get(projectId) ?? 'one of many'))],
      ['Created', (key) => createdWords(key, now)],
      ['Last used', ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : ago(lastUsedAt, now))],
      ['Expires', ({ expiresAt }) => expiryWords(expiresAt, now)],
      ['Actions', ({ id, name }) => rowLink(`/settings/api-keys/${id}/revoke`, 'Revoke', name), 'actions'],
    ],
    keys,
  )
}

function expiryWords(expiresAt: Instant | null, now: Instant): Html | string {
  if (expiresAt === null) return 'never'
  if (expiresAt > now) return ago(expiresAt, now)
  return html`<span class="fault">${icon('late')} expired</span> ${ago(expiresAt, now)}`
}

function renderForm(projects: ProjectNames, now: number, rejected?: ui.Rejected): Html {
  const form = ui.stateOf('key', LABELS, rejected)
  return html`<form method="post" action="/settings/api-keys" class="settings-form" novalidate data-keep="new-api-key">
${ui.newIdField(now)}
${ui.field(form, 'name', ui.text(ui.required), 'Which program uses it, for example "CI".')}
${ui.field(form, 'scope', ui.choice(SCOPE_CHOICES))}
${ui.field(form, 'project_id', ui.choice([['', 'All projects'], ...projects]))}
${ui.field(form, 'expires_at', ui.text('', 'off', 'date'), 'The last day on which it is valid, in UTC. Empty: it does not expire.')}
<button type="submit">Create the key</button>
</form>`
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  try {
    const { expires_at: day, ...chosen } = ui.filled(form, ['project_id', 'expires_at'])
    const end = day && { expires_at: /^\d{4}-\d{2}-\d{2}$/.test(day) ? `${day}T23:59:59Z` : day }
    const body = parsePart('body', NewApiKey, { ...ui.typed(form, ['name', 'scope']), ...chosen, ...(end || {}) })
    const { name, scope, project_id: projectId = null, expires_at: expiresAt = null } = body
    return showKey(await createApiKey(context, caller, { ...ui.readNewId(form), name, scope, projectId, expiresAt }))
  } catch (error) {
    return showSection(request, apiKeys, { values: form, faults: ui.faultsOf(error, LABELS) })
  }
}

function showKey({ name, scope, key, expiresAt }: ApiKeyRecord & { readonly key: string }): Page {
  const title = 'The API key was created'
  const main = html`${crumbs([SETTINGS], 'New API key')}
<article>
<h1>${title}</h1>
<p>Copy the key ${isolated(name)} now: <strong>it is shown only once</strong>. It has the scope ${scope}${expiresAt === null ? ', and does not expire' : html`, and expires at ${exactWords(expiresAt)}`}.</p>
<p class="secret-line"><code id="new-key">${key}</code> ${copyButton('new-key', 'the key')}</p>
<p><a class="button" href="/settings#api-keys">I have copied it</a></p>
</article>`
  return { kind: 'page', title, main }
}
