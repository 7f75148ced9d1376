/** Users of the organization. */

import { randomText } from '../../../../auth/random-text.ts'
import { AppError } from '../../../../domain/errors.ts'
import { createUser, getUser, listUsers, removeUser, type UserRecord, updateUser } from '../../../../tenancy/users.ts'
import { parsePart } from '../../../api/faults.ts'
import { NewUser, UserUpdate } from '../../../api/users.schema.ts'
import { type Html, html } from '../../html.ts'
import { action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import { confirm } from '../../ui/confirm.ts'
import { crumbs } from '../../ui/crumbs.ts'
import { rowLink, table } from '../../ui/table.ts'
import { isolated, sentence } from '../../words/words.ts'
import { changedFields, WAS, wasField } from '../was.ts'
import { type Faults, findFaults, inputField, type Rejected, selectField } from './form-fields.ts'
import { addition, createdWords, pagerOf, SCOPE_CHOICES, SETTINGS, type Section, showSection } from './section.ts'

const LABELS = { email: 'E-mail', password: 'Password', scope: 'Scope' } as const
/** Of a user who signs in with an identity provider only. */
const UNKNOWN_PASSWORD_LENGTH = 43

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
  action('/settings/users/{id}/remove', 'admin', async ({ context, caller, params }) => {
    await removeUser(context, caller, params.id!)
    return redirect('/settings', 'user-removed')
  }),
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

function renderForm({ isPasswordLoginOn }: Request, rejected?: Rejected): Html {
  const common = (name: keyof typeof LABELS) => ({
    ...{ form: 'user', name, label: LABELS[name] },
    value: rejected?.values.get(name) ?? undefined,
    fault: rejected?.faults[name],
  })
  const hint = 'At least 12 characters. Hand it over in person; the user can change it here.'
  return html`<form method="post" action="/settings/users" class="settings-form" novalidate data-keep="new-user">
${inputField({ ...common('email'), type: 'email' })}
${isPasswordLoginOn ? inputField({ ...common('password'), type: 'password', autocomplete: 'new-password', hint }) : ''}
${selectField({ ...common('scope'), choices: SCOPE_CHOICES })}
<button type="submit">Create the user</button>
</form>`
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form, isPasswordLoginOn } = request
  try {
    const password = isPasswordLoginOn ? (form.get('password') ?? '') : randomText(UNKNOWN_PASSWORD_LENGTH)
    const given = { email: form.get('email') ?? '', password, scope: form.get('scope') ?? '' }
    await createUser(context, caller, parsePart('body', NewUser, given))
    return redirect('/settings', 'user-created')
  } catch (error) {
    return showSection(request, users, { values: form, faults: faultsOf(error) })
  }
}

/** Rethrows an error that is about no field. */
function faultsOf(error: unknown): Faults {
  const faults = findFaults(error, LABELS)
  if (faults !== null) return faults
  if (error instanceof AppError && error.code === 'conflict') return { email: sentence(error.message) }
  throw error
}

interface Typed {
  readonly scope: string
  readonly was: string | null
}

function showUser(
  { isPasswordLoginOn }: Request,
  { id, email, scope }: UserRecord,
  faults: Faults = {},
  typed: Typed = { scope, was: null },
): Page {
  const field = { form: 'change', name: 'password', label: 'New password', type: 'password' } as const
  const hint = 'Empty: the password stays. A new one ends all sessions of the user.'
  const main = html`${crumbs([SETTINGS], 'User')}
<article class="narrow settings-page">
<h1>${isolated(email)}</h1>
${faults.other === undefined ? '' : html`<p class="fault" role="alert">${faults.other}</p>`}
<form method="post" action="/settings/users/${id}" novalidate>
${wasField({ scope }, typed.was)}
${selectField({ form: 'change', name: 'scope', label: LABELS.scope, value: typed.scope, choices: SCOPE_CHOICES, fault: faults.scope })}
${isPasswordLoginOn ? inputField({ ...field, autocomplete: 'new-password', isRequired: false, hint, fault: faults.password }) : ''}
<button type="submit">Save</button>
</form>
<p><a href="/settings/users/${id}/remove">Remove this user</a></p>
</article>`
  const status = Object.keys(faults).length === 0 ? 200 : 422
  return { kind: 'page', status, title: email, main }
}

async function change(request: Request): Promise<Page | Redirect> {
  const { context, caller, params, form } = request
  const user = await findUser(request)
  const typed = { scope: form.get('scope') ?? user.scope, was: form.get(WAS) }
  const { scope } = typed
  try {
    const body = parsePart('body', UserUpdate, {
      ...(changedFields(form, { scope }).has('scope') ? { scope } : {}),
      ...(form.get('password') ? { password: form.get('password') } : {}),
    })
    await updateUser(context, caller, params.id!, body)
    return redirect('/settings', 'user-changed')
  } catch (error) {
    const faults = findFaults(error, { ...LABELS, password: 'New password' })
    if (faults !== null) return showUser(request, user, faults, typed)
    if (!(error instanceof AppError) || error.code !== 'conflict') throw error
    return { ...showUser(request, user, { other: sentence(error.message) }, typed), status: 409 }
  }
}
