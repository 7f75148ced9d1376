/** The keys of a project: the address of its pings by name, and its badges. */

import type { BadgeSubject } from '../../../../domain/badge.ts'
import { siteUrlOf } from '../../../../domain/site.ts'
import {
  createProjectKey,
  getProjectKey,
  type ProjectKeyKind,
  revokeProjectKey,
} from '../../../../tenancy/project-keys.ts'
import { getProject, type ProjectRecord } from '../../../../tenancy/projects.ts'
import { badgePath } from '../../../badges/path.ts'
import { type Html, html, isolated } from '../../html.ts'
import { act, type PageRoute, page, type Request } from '../../page.ts'
import { confirm, copyButton, section } from '../../ui/parts.ts'

/** What a new key, or none, breaks. */
const LOSSES = {
  ping: (name: Html) =>
    html`<p>Jobs of ${name} that ping by name with the present key get 404 from then on. Pings by public id go on.</p>`,
  badge: (name: Html) => html`<p>Pages that show badges of ${name} with the present key show none from then on.</p>`,
} as const satisfies Record<ProjectKeyKind, (name: Html) => Html>

export const projectKeyRoutes: readonly PageRoute[] = (['ping', 'badge'] as const).flatMap((kind) => {
  const path = `/settings/projects/{id}/${kind}-key` as const
  const question = async (request: Request, ask: string, button: string) => {
    const { id, name } = await getProject(request.context, request.caller, request.params.id!)
    const back = `/settings/projects/${id}`
    return confirm(request, { ask, loss: LOSSES[kind](isolated(name)), button, back })
  }
  const toProject = (id: string) => `/settings/projects/${id}`
  return [
    page(path, 'admin', (request) => question(request, `Replace the ${kind} key`, 'Replace it')),
    act(path, 'admin', (context, by, id) => createProjectKey(context, by, id, kind), toProject, `${kind}-key-created`),
    page(`${path}/revoke`, 'admin', (request) => question(request, `Revoke the ${kind} key`, 'Revoke it')),
    act(
      `${path}/revoke`,
      'admin',
      (context, by, id) => revokeProjectKey(context, by, id, kind),
      toProject,
      `${kind}-key-revoked`,
    ),
  ]
})

/** Both keys, for the page of the project. */
export async function renderProjectKeys(request: Request, project: ProjectRecord): Promise<Html> {
  const { context, caller, pingUrl, baseUrl } = request
  const find = (kind: ProjectKeyKind) => getProjectKey(context, caller, project.id, kind)
  const [pingKey, badgeKey] = await Promise.all([find('ping'), find('badge')])
  const pings = html`<p class="muted">With this key, a job pings by the slug of its check. With <code>?create=1</code> it creates a check that is missing.</p>
${pingKey === null ? html`<p>The project has no ping key.</p>` : html`<p class="secret-line"><code id="ping-key-url">${pingUrl()}/ping/${pingKey}/<em>slug</em></code> ${copyButton('ping-key-url', 'the address')}</p>`}
${renderActions(project, 'ping', pingKey)}`
  const badges = html`<p class="muted">An image of the status, for a README or a wiki. It needs no log-in: everyone who has its address sees it.</p>
${badgeKey === null ? html`<p>The project has no badge key.</p>` : renderBadges(project, badgeKey, baseUrl())}
${renderActions(project, 'badge', badgeKey)}`
  return html`${section('ping-key-title', 'Pings by name', pings)}
${section('badge-key-title', 'Badges', badges)}`
}

function renderBadges({ name }: ProjectRecord, key: string, baseUrl: string): Html {
  const image = (subject: BadgeSubject) => `${badgePath(key, subject)}.svg`
  const site = siteUrlOf(baseUrl)
  const whole = image({ kind: 'project' })
  return html`<p><img src="${whole}" alt="Status of all checks of the project" height="20"></p>
<p>All checks, in Markdown:</p>
<p class="secret-line"><code id="badge-markdown">![${toAlternative(name)}](${site}${whole})</code> ${copyButton('badge-markdown', 'the Markdown of all checks')}</p>
<p>One check, or the checks with a tag:</p>
<p class="secret-line"><code id="badge-check">![slug](${site}${image({ kind: 'check', slug: 'slug' })})</code> ${copyButton('badge-check', 'the Markdown of a check')}</p>
<p class="secret-line"><code id="badge-tag">![tag](${site}${image({ kind: 'tag', tag: 'tag' })})</code> ${copyButton('badge-tag', 'the Markdown of a tag')}</p>`
}

/** A name as the alternative text of an image in Markdown. */
function toAlternative(name: string): string {
  return name.replace(/[\\[\]`*_<>&!]/g, '\\$&')
}

/** A key that is there is replaced or revoked after a question. */
function renderActions({ id }: ProjectRecord, kind: ProjectKeyKind, key: string | null): Html {
  const path = `/settings/projects/${id}/${kind}-key`
  if (key === null)
    return html`<form method="post" action="${path}"><button type="submit">Create a ${kind} key</button></form>`
  return html`<p><a href="${path}">Replace the ${kind} key</a> <a href="${path}/revoke">Revoke the ${kind} key</a></p>`
}
