/** `/settings`: one's own account, and for admins API keys, users, projects, audit log. */

import { includesScope } from '../../../../domain/access.ts'
import { html } from '../../html.ts'
import { type Page, page, type Request } from '../../page.ts'
import { account, accountRoutes } from './account.ts'
import { apiKeyRoutes, apiKeys } from './api-keys.ts'
import { audit, auditRoutes } from './audit.ts'
import { projectRoutes, projects } from './projects.ts'
import { renderSection, type Section } from './section.ts'
import { userRoutes, users } from './users.ts'

export const settingsRoutes = [
  page('/settings', 'read', showSettings),
  ...accountRoutes,
  ...apiKeyRoutes,
  ...userRoutes,
  ...projectRoutes,
  ...auditRoutes,
]

const OF_ADMINS: readonly Section[] = [apiKeys, users, projects, audit]

async function showSettings(request: Request): Promise<Page> {
  const isAdmin = includesScope(request.caller.scope, 'admin')
  const sections = [account, ...(isAdmin ? OF_ADMINS : [])]
  const parts = []
  // One after the other: a page takes one connection of the pool.
  for (const section of sections) parts.push(await renderSection(request, section))
  const main = html`<h1>Settings</h1>
${isAdmin ? html`<nav aria-label="On this page" class="contents"><ul>${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>` : ''}
${parts}
${isAdmin ? '' : html`<p class="muted">API keys, users, projects and the audit log are for users with the scope admin.</p>`}`
  return { kind: 'page', title: 'Settings', main }
}
