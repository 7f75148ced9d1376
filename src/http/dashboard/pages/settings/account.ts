/** One's own account: the password and the sessions. Every user has it. */

import { AppError } from '../../../../domain/errors.ts'
import { changeOwnPassword, endOwnSession, listOwnSessions, type SessionRecord } from '../../../../tenancy/me.ts'
import { parsePart } from '../../../api/faults.ts'
import { PasswordChange } from '../../../api/me.ts'
import { type Html, html, isolated } from '../../html.ts'
import { act, action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import { faultsOf, field, password, type Rejected, required, stateOf, typed } from '../../ui/form.ts'
import { table } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'
import { sentence } from '../../words/words.ts'
import { pagerOf, type Section, type SectionView, showSection } from './section.ts'

const LABELS = { current_password: 'Current password', new_password: 'New password' } as const

export const account: Section = {
  id: 'account',
  title: 'Your account',
  async render(request, view) {
    const { caller } = request
    return html`<p>You are ${isolated(caller.name)}, with the scope ${caller.scope}.</p>
<h3>Password</h3>
${renderPassword(request, view.rejected)}
<h3>Sessions</h3>
${await renderSessions(request, view)}`
  },
}

export const accountRoutes = [
  page('/settings/account', 'read', (request) => showSection(request, account)),
  action('/settings/password', 'read', changePassword),
  act('/settings/sessions/{id}/end', 'read', endOwnSession, '/settings', 'session-ended'),
]

function renderPassword({ caller, isPasswordLoginOn, signIn }: Request, rejected?: Rejected): Html {
  if (!isPasswordLoginOn) return html`<p>Log-in by password is off: you sign in with your identity provider.</p>`
  const form = stateOf('own', LABELS, rejected)
  return html`<form method="post" action="/settings/password" class="settings-form" novalidate>
<input type="hidden" name="username" autocomplete="username" value="${caller.name}">
${field(form, 'current_password', password('current-password', required))}
${field(form, 'new_password', password('new-password', required))}
<button type="submit">Change the password</button>
<p class="muted">All your other sessions end.${signIn.names.length === 0 ? '' : ' If you have no password yet, an administrator can set one.'}</p>
</form>`
}

async function changePassword(request: Request): Promise<Page | Redirect> {
  const { context, caller, address, form, isPasswordLoginOn } = request
  if (!isPasswordLoginOn)
    throw new AppError('forbidden', 'log-in by password is off: change your password at your identity provider')
  try {
    const body = parsePart('body', PasswordChange, typed(form, ['current_password', 'new_password']))
    const { current_password: currentPassword, new_password: newPassword } = body
    await changeOwnPassword(context, caller, { currentPassword, newPassword, address })
    return redirect('/settings', 'password-changed')
  } catch (error) {
    const isCounted = error instanceof AppError && error.code === 'too_many_requests'
    const faults =
      isCounted || (error instanceof AppError && error.code === 'forbidden')
        ? { current_password: sentence(error.message) }
        : faultsOf(error, LABELS)
    const shown = await showSection(request, account, { values: form, faults })
    return isCounted ? { ...shown, status: 429, waitSeconds: error.retryAfterSeconds } : shown
  }
}

const KINDS: Readonly<Record<SessionRecord['kind'], string>> = { dashboard: 'Dashboard', token: 'API' }

async function renderSessions({ context, caller, now }: Request, view: SectionView): Promise<Html> {
  const list = await listOwnSessions(context, caller, view)
  return html`${table<SessionRecord>(
    [
      ['Of', ({ kind }) => KINDS[kind], 'name'],
      ['Address', ({ address }) => address],
      ['Began', ({ createdAt }) => ago(createdAt, now)],
      ['Last used', ({ lastUsedAt }) => ago(lastUsedAt, now)],
      ['Actions', renderEnd, 'actions'],
    ],
    list.rows,
  )}
${pagerOf(account, list, view)}`
}

function renderEnd({ id, isCurrent }: SessionRecord): Html {
  if (isCurrent) return html`<strong>This session</strong>`
  return html`<form method="post" action="/settings/sessions/${id}/end"><button type="submit" class="secondary outline">End</button></form>`
}
