/** What a check depends on, and what depends on it. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import { type Dependencies, findDependencies, type LinkedCheck } from '../../../../checks/find-dependencies.ts'
import { type Html, html, isolated } from '../../html.ts'
import type { Request } from '../../page.ts'
import { facts, section } from '../../ui/parts.ts'
import { statusBadge } from '../../words/status-words.ts'

export async function renderDependencies({ context, caller }: Request, check: CheckRecord): Promise<Html> {
  const found = await findDependencies(context, caller, check)
  const { dependents, hasMoreDependents } = found
  if (check.dependsOn.length === 0 && dependents.length === 0) return html``
  const hidden = check.dependsOn.length - found.dependsOn.length
  const rest = hidden > 0 ? `${hidden} you may not see` : null
  const list = facts([
    ['Depends on', check.dependsOn.length === 0 ? null : renderLinks(found.dependsOn, rest)],
    ['Depended on by', dependents.length === 0 ? null : renderLinks(dependents, hasMoreDependents ? 'more' : null)],
  ])
  const note = html`<p class="muted">While a check that it depends on is down, a check does not notify that it is down too.</p>`
  return section('dependencies-title', 'Dependencies', list, note)
}

function renderLinks(checks: readonly LinkedCheck[], rest: string | null): Html {
  const links = checks.map(
    ({ id, name, status }) => html`<li><a href="/checks/${id}">${isolated(name)}</a> ${statusBadge(status)}</li>`,
  )
  return html`<ul>${links}${rest === null ? '' : html`<li class="muted">and ${rest}</li>`}</ul>`
}

/** In the words of the form: the slug of a check of the same project, else its id. */
export function dependencyWords({ projectId, dependsOn: ids }: CheckRecord, { dependsOn }: Dependencies): string {
  const slugOf = new Map(dependsOn.flatMap((one) => (one.projectId === projectId ? [[one.id, one.slug]] : [])))
  return ids.map((id) => slugOf.get(id) ?? id).join(' ')
}
