/** The audit log: who did what, when, to what. Newest first. */

import { listEntries } from '../../../../audit/find-entries.ts'
import { AUDIT_ACTIONS, type AuditAction, type AuditDetail, type AuditEntry } from '../../../../domain/audit.ts'
import { AuditQuery } from '../../../api/audit.ts'
import { parsePart } from '../../../api/faults.ts'
import { given } from '../../../api/present.ts'
import { type Html, html, isolated } from '../../html.ts'
import { page, type Request } from '../../page.ts'
import { choice, field, filled } from '../../ui/form.ts'
import { table } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'
import { pagerOf, type Section, showSection } from './section.ts'

/** Of actions whose words do not follow from their names. */
const WORDS: { readonly [Action in AuditAction]?: string } = {
  'login.succeeded': 'logged in',
  'login.failed': 'failed to log in',
  'login.locked': 'log-in locked after too many failures',
  'refresh.replayed': 'used a spent refresh token',
  logout: 'logged out',
  'password.changed': 'changed their password',
  'session.ended': 'ended a session',
  'api_key.removed': 'revoked the API key',
  'channel.secret_rotated': 'replaced the secret of the channel',
}

/** `created the API key`. */
function wordsOf(action: AuditAction): string {
  const [kind, done] = action.split('.')
  return WORDS[action] ?? `${done} the ${kind === 'api_key' ? 'API key' : kind}`
}

const ACTORS: Readonly<Record<AuditEntry['actor']['kind'], string>> = {
  user: 'User',
  api_key: 'API key',
  controller: 'Cluster',
  link: 'By the link of a message',
  system: 'The service',
}

export const audit: Section = {
  id: 'audit',
  title: 'Audit log',
  firstRows: 10,
  async render({ context, caller, query, path, now }, view) {
    const isOwnPage = path.startsWith('/settings/audit')
    const filters = isOwnPage ? filled(query, ['action', 'actor_id', 'target_id']) : {}
    const { action, actor_id: actorId, target_id: targetId } = parsePart('query', AuditQuery, filters)
    const list = await listEntries(context, caller, given({ action, actorId, targetId }), view)
    return html`${isOwnPage ? renderFilter(filters) : ''}
${list.rows.length === 0 ? html`<p>There is no such entry.</p>` : renderTable(list.rows, now)}
${pagerOf(audit, list, view, filters)}
${isOwnPage ? '' : html`<p><a href="/settings/audit">The whole audit log</a></p>`}`
  },
}

export const auditRoutes = [page('/settings/audit', 'admin', (request: Request) => showSection(request, audit))]

function renderFilter(filters: Readonly<Record<string, string>>): Html {
  const { action: _, ...others } = filters
  const choices = [['', 'All actions'], ...AUDIT_ACTIONS.map((action) => [action, wordsOf(action)])] as [
    string,
    string,
  ][]
  return html`<form method="get" action="/settings/audit" class="settings-form">
${field({ id: 'audit', labels: { action: 'Action' }, values: filters }, 'action', choice(choices))}
${Object.entries(others).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button type="submit" class="secondary">Show</button>
${Object.keys(filters).length === 0 ? '' : html`<p><a href="/settings/audit">Show all entries</a></p>`}
</form>`
}

function renderTable(entries: readonly AuditEntry[], now: number): Html {
  return table<AuditEntry>(
    [
      ['When', ({ at }) => ago(at, now)],
      ['Who', renderActor],
      ['What', (entry) => html`${wordsOf(entry.action)} ${renderTarget(entry)}${renderDetail(entry.detail)}`],
      ['From', ({ address }) => address],
    ],
    entries,
  )
}

function renderActor({ actor: { kind, id, name } }: AuditEntry): Html {
  const words = html`${ACTORS[kind]}${name === null ? '' : html` ${isolated(name)}`}`
  return id === null ? words : html`<a href="/settings/audit?actor_id=${id}">${words}</a>`
}

function renderTarget({ actor, target }: AuditEntry): Html {
  // A log-in is about the actor's own account.
  if (target === null || target.id === actor.id) return html``
  return html`<a href="/settings/audit?target_id=${target.id}">${isolated(target.name ?? target.id)}</a>`
}

function renderDetail(detail: AuditDetail): Html {
  const texts = Object.entries(detail).map(
    ([name, value]) => `${name.replaceAll('_', ' ')}: ${Array.isArray(value) ? value.join(', ') : value}`,
  )
  return texts.length === 0 ? html`` : html` <span class="muted">(${texts.join('; ')})</span>`
}
