/** Resume and delete a check, and what leads to its pause (pause.ts). */

import { getCheck, type StoredCheck } from '../../../../checks/find-checks.ts'
import { resumeCheck } from '../../../../checks/pause-resume.ts'
import { removeCheck } from '../../../../checks/remove-check.ts'
import { type Html, html } from '../../html.ts'
import { icon } from '../../icons.ts'
import { act, type Page, page, type Request } from '../../page.ts'
import { confirm } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'
import { declarerOf, kubectl, type Resource, renderCommand, resourceWords } from './check-kubernetes.ts'

export const checkActionRoutes = [
  act('/checks/{id}/resume', 'write', resumeCheck, (id) => `/checks/${id}`, 'check-resumed'),
  page('/checks/{id}/delete', 'write', confirmDelete),
  act('/checks/{id}/delete', 'write', removeCheck, '/checks', 'check-deleted'),
]

/** For callers with the scope write. */
export function renderActions(check: StoredCheck): Html {
  const { id, spec, state, kubernetesSuspend } = check
  const isPaused = state.status === 'paused'
  const resource = declarerOf(check)
  const isSuspendSet = resource !== null && kubernetesSuspend !== null
  const turn = isPaused
    ? html`<form method="post" action="/checks/${id}/resume"><button type="submit">${icon('running')} Resume</button></form>`
    : html`<form method="post" action="/checks/${id}/pause"><button type="submit" class="secondary">${icon('paused')} Pause</button></form>`
  const until = html`<a class="button secondary outline" href="/checks/${id}/pause">${isPaused ? 'Change the pause' : 'Pause until …'}</a>`
  return html`<nav class="buttons compact" aria-label="Actions">
${isSuspendSet ? '' : html`${turn} ${until}`}
${spec.jobArea === null ? html`<a class="button secondary outline" href="/checks/${id}/how">How to ping</a>` : ''}
<a class="button secondary outline" href="/silences/new?check=${id}">Silence this check</a>
<a class="button secondary outline" href="/checks/${id}/edit">${resource === null ? 'Edit' : 'Settings'}</a>
<a class="button secondary outline" href="/checks/${id}/delete">Delete</a>
</nav>
${isSuspendSet ? explainSuspend(check, resource) : ''}`
}

function explainSuspend(check: StoredCheck, resource: Resource): Html {
  if (check.kubernetesSuspend === true && check.state.pause?.until != null)
    return html`<p>${resourceWords(resource)} pauses it by the annotation <code>heartbeat-operator.io/paused-until</code>. To resume it now, take the annotation away:</p>
${renderCommand('suspend-command', `${kubectl('annotate', 'heartbeatcheck', resource)} heartbeat-operator.io/paused-until-`)}`
  const wanted = check.kubernetesSuspend !== true
  const patch = `-p '{"spec":{"suspend":${wanted}}}'`
  if (check.cronJob !== undefined) {
    const { namespace } = resource
    const how = wanted
      ? 'To pause it, suspend its CronJob:'
      : 'No run is expected while its CronJob is suspended, not there or never due. To resume a suspended CronJob:'
    return html`<p>${how}</p>
${renderCommand('suspend-command', `${kubectl('patch', 'cronjob', { namespace, name: check.cronJob.name })} ${patch}`)}`
  }
  return html`<p>${resourceWords(resource)} sets <code>spec.suspend</code>, so ${wanted ? 'pause' : 'resume'} the check there:</p>
${renderCommand('suspend-command', `${kubectl('patch', 'heartbeatcheck', resource)} --type merge ${patch}`)}`
}

async function confirmDelete(request: Request): Promise<Page> {
  const { context, caller, params, now } = request
  const check = await getCheck(context, caller, params.id!)
  const { id, name, state } = check
  const resource = declarerOf(check)
  const question = { ask: 'Delete', name, back: `/checks/${id}` }
  if (resource !== null) {
    const loss = html`<p>${resourceWords(resource)} declares this check. If it were deleted here, the next reconcile would create it again. Delete the resource instead:</p>
${renderCommand('delete-command', kubectl('delete', 'heartbeatcheck', resource))}
${check.cronJob === undefined ? '' : html`<p>If it was made for the label <code>heartbeat-operator.io/watch</code> of its CronJob or Namespace, it would be made again: remove that label, or set it to <code>"false"</code> on the CronJob.</p>`}
<p>With <code>spec.deletionPolicy: Retain</code> the check stays, and belongs to the API from then on. With <code>Delete</code>, the default, it ends; if the resource is created again within 7 days, it gets its ping URL and its history back.</p>`
    return confirm(request, { ...question, loss, button: null })
  }
  const isAlive = state.lastPingAt !== null || state.lastStartAt !== null
  const last = Math.max(state.lastPingAt ?? 0, state.lastStartAt ?? 0)
  const loss = html`<p>This is lost, and cannot be brought back:</p>
<ul>
<li>its history: pings (${state.pingsTotal} in all) with their texts, changes of status, uptime;</li>
<li>its ping URL: a job that still uses it gets 404 from then on.${isAlive ? html` It reported ${ago(last, now)}.` : ''}</li>
</ul>
<p>Notifications that are on their way are still sent. To have no notifications for a while, ${
    state.status === 'paused' ? 'leave it paused' : 'pause it'
  } instead.</p>`
  return confirm(request, { ...question, loss, button: 'Delete this check' })
}
