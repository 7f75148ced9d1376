/** Users of the organization. */

import { createUser, getUser, listUsers, removeUser, type UserRecord, updateUser } from '../../../../tenancy/users.ts'
import { parsePart } from '../../../api/faults.ts'
import { NewUser, UserUpdate } from '../../../api/users.ts'
import { type Html, html, isolated } from '../../html.ts'
import { act, action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import * as ui from '../../ui/form.ts'
import { confirm, crumbs, rowLink, table } from '../../ui/parts.ts'
import { addition, createdWords, pagerOf, SCOPE_CHOICES, SETTINGS, type Section, showSection } from './section.ts'

const LABELS = { email: 'E-mail', password: 'Password', scope: 'Scope' } as const

export const users: Section = {
  id: 'users',
  title: 'Users',
  async render(request, view) {
    const { context, caller, now } = request
    const list = await listUsers(context, caller, view)
    return html`${renderTable(list.rows, caller.id, now)}
${pagerOf(users, list, view)}
${addition('new-user', 'Create a user', renderForm(request, view.rejected))}`
  },
}

export const userRoutes = [
  page('/settings/users', 'admin', (request) => showSection(request, users)),
  action('/settings/users', 'admin', create),
  page('/settings/users/{id}', 'admin', async (request) => showUser(request, await findUser(request))),
  action('/settings/users/{id}', 'admin', change),
  page('/settings/users/{id}/remove', 'admin', async (request) => {
    const { id, email } = await findUser(request)
    const loss = html`<p>${isolated(email)} can no longer log in, and all sessions of this user end at once. Keys that the user has created stay valid.</p>
${id === request.caller.id ? html`<p><strong>This is your own account.</strong></p>` : ''}`
    return confirm(request, { ask: 'Remove this user', loss, button: 'Remove', back: `/settings/users/${id}` })
  }),
  act('/settings/users/{id}/remove', 'admin', removeUser, '/settings', 'user-removed'),
]

const findUser = ({ context, caller, params }: Request) => getUser(context, caller, params.id!)

function renderTable(rows: readonly UserRecord[], own: string, now: number): Html {
  return table<UserRecord>(
    [
      ['E-mail', ({ id, email }) => html`${isolated(email)}${id === own ? ' (you)' : ''}`, 'name'],
      ['Scope', ({ scope }) => scope],
      ['Created', (user) => createdWords(user, now)],
      [
        'Actions',
        ({ id, email }) =>
          html`${rowLink(`/settings/users/${id}`, 'Change', email)} ${rowLink(`/settings/users/${id}/remove`, 'Remove', email)}`,
        'actions',
      ],
    ],
    rows,
  )
}

function renderForm({ isPasswordLoginOn }: Request, rejected?: ui.Rejected): Html {
  const form = ui.stateOf('user', LABELS, rejected)
  const meaning = 'At least 12 characters. Hand it over in person; the user can change it here.'
  return html`<form method="post" action="/settings/users" class="settings-form" novalidate data-keep="new-user">
${ui.field(form, 'email', ui.text(ui.required, 'off', 'email'))}
${isPasswordLoginOn ? ui.field(form, 'password', ui.password('new-password', ui.required), meaning) : ''}
${ui.field(form, 'scope', ui.choice(SCOPE_CHOICES))}
<button type="submit">Create the user</button>
</form>`
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form, isPasswordLoginOn } = request
  try {
    const user = isPasswordLoginOn
      ? parsePart('body', NewUser, ui.typed(form, ['email', 'password', 'scope']))
      : parsePart('body', NewUser.omit({ password: true }), ui.typed(form, ['email', 'scope']))
    await createUser(context, caller, user)
    return redirect('/settings', 'user-created')
  } catch (error) {
    return showSection(request, users, { values: form, faults: ui.faultsOf(error, LABELS) })
  }
}

const CHANGE_LABELS = { ...LABELS, password: 'New password' } as const

function showUser({ isPasswordLoginOn }: Request, { id, email, scope }: UserRecord, rejected?: ui.Rejected): Page {
  const form = ui.stateOf('change', CHANGE_LABELS, rejected, { scope })
  const meaning = 'Empty: the password stays. A new one ends all sessions of the user.'
  const main = html`${crumbs([SETTINGS], 'User')}
<article class="narrow">
<h1>${isolated(email)}</h1>
${ui.generalFault(rejected?.faults)}
<form method="post" action="/settings/users/${id}" novalidate>
${ui.wasField({ scope }, rejected?.values.get(ui.WAS))}
${ui.field(form, 'scope', ui.choice(SCOPE_CHOICES))}
${isPasswordLoginOn ? ui.field(form, 'password', ui.password('new-password'), meaning) : ''}
<button type="submit">Save</button>
</form>
<p><a href="/settings/users/${id}/remove">Remove this user</a></p>
</article>`
  return { kind: 'page', status: rejected === undefined ? 200 : 422, title: email, main }
}

async function change(request: Request): Promise<Page | Redirect> {
  const { context, caller, params, form } = request
  const user = await findUser(request)
  try {
    const body = { ...ui.changes(form, ['scope']), ...ui.filled(form, ['password']) }
    await updateUser(context, caller, params.id!, parsePart('body', UserUpdate, body))
    return redirect('/settings', 'user-changed')
  } catch (error) {
    const faults = ui.faultsOf(error, CHANGE_LABELS, { rest: ui.WHOLE })
    const shown = showUser(request, user, { values: form, faults })
    return faults[ui.WHOLE] === undefined ? shown : { ...shown, status: 409 }
  }
}
