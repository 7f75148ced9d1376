/** `/settings`: each list and form, by scope. The rules of the verbs are tested with them (test/db/tenancy). */

import { describe, expect, it } from 'vitest'
import { hashPassword } from '../../../src/auth/passwords.ts'
import { beginSession } from '../../../src/auth/sessions.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { insertUser } from '../../../src/store/tenancy/users.ts'
import { readForm } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { createVisitor, type Visitor, visit } from '../../support/visitor.ts'

const HOSTILE = `<script>alert("1")</script>'&\u202E${'x'.repeat(50)}`
const ESCAPED = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;\u202E'
const PASSWORD = 'a long enough password'

const api = use(startTestApi)
const admin = use(() => visit(api))

/** The part of `/settings` with this id. */
const partOf = (text: string, id: string) => text.slice(text.indexOf(`<section id="${id}"`)).split('</section>')[0]!
const idsOf = (text: string, path: RegExp) => [...text.matchAll(path)].map((match) => match[1]!)
/** A user whose password is hashed at a low cost, with sessions that begin without it: most of the time of these tests would be hashes. */
async function aUser() {
  const id = newId(Date.now())
  const [email, now] = [anEmail('ann'), api.context.clock.now()]
  const passwordHash = await hashPassword(PASSWORD, { logN: 4, r: 8, p: 1 })
  const { organizationId, database, url } = api
  const row = { id, organizationId, email, scope: 'read', passwordHash, createdAt: now, createdBy: null } as const
  await insertUser(database, row)
  return {
    email,
    password: PASSWORD,
    async visit(): Promise<Visitor> {
      const start = { userId: id, address: '192.0.2.1', now: api.context.clock.now() }
      const { secret: token } = await database.transaction((tx) => beginSession(tx, 'dashboard', start))
      const visitor = createVisitor(new URL(url).origin)
      visitor.cookies.set('heartbeat_session', token)
      return visitor
    },
  }
}
const anEmail = (name: string) => `${name}-${crypto.randomUUID()}@example.com`

describe('the sections', () => {
  it('are all on one page for an admin, with the labels of their forms', async () => {
    const { status, text } = await admin.get('/settings')
    expect(status).toBe(200)
    expect(idsOf(text, /<section id="([^"]+)"/g)).toEqual(['account', 'api-keys', 'users', 'projects', 'audit'])
    const labels = (id: string) => idsOf(partOf(text, id), /<label for="[^"]+">([^<]+)</g)
    expect(labels('account')).toEqual(['Current password', 'New password'])
    expect(labels('api-keys')).toEqual(['Name', 'Scope', 'Project', 'Expires'])
    expect(labels('users')).toEqual(['E-mail', 'Password', 'Scope'])
    expect(labels('projects')).toEqual(['Name', 'Slug'])
    for (const id of idsOf(text, /<label for="([^"]+)"/g)) expect(text).toContain(` id="${id}"`)
    expect(partOf(text, 'users')).toContain('admin@example.com')
    expect(partOf(text, 'projects')).toContain('<code>default</code>')
    expect(partOf(text, 'audit')).toContain('created the project')
  })

  it.each(['read', 'write'] as const)('are only the own account for the scope %s', async (scope) => {
    const visitor = await visit(api, scope)
    const { text } = await visitor.get('/settings')
    expect(idsOf(text, /<section id="([^"]+)"/g)).toEqual(['account'])
    expect(text).not.toContain('admin@example.com')
    const { body } = await api.client.get('/users')
    const other = body.users[0].id
    for (const path of ['api-keys', 'users', 'projects', 'audit', `users/${other}`, `users/${other}/remove`])
      expect((await visitor.get(`/settings/${path}`)).status, path).toBe(403)
    for (const path of ['api-keys', 'users', 'projects', `users/${other}`, `users/${other}/remove`])
      expect((await visitor.post(`/settings/${path}`, { name: 'x', scope: 'admin' })).status, path).toBe(403)
  })

  it('need a session', async () => {
    const visitor = createVisitor(new URL(api.url).origin)
    expect((await visitor.get('/settings')).location).toBe('/login?next=%2Fsettings')
    expect((await visitor.post('/settings/users', { email: 'x' })).status).toBe(303)
  })
})

describe('an API key', () => {
  it('is shown once, works, and is revoked after a question', async () => {
    const made = await admin.post('/settings/api-keys', { name: 'CI', scope: 'read', project_id: '', expires_at: '' })
    expect(made.status).toBe(200)
    expect(made.headers.get('cache-control')).toBe('no-store')
    const [, key] = /<code id="new-key">(hbk_[^<]+)<\/code>/.exec(made.text)!
    expect((await api.client.get('/me', { key: key! })).body).toMatchObject({ kind: 'api_key', scope: 'read' })
    const { text } = await admin.get('/settings')
    expect(text).not.toContain(key)
    const prefix = key!.split('_')[1]
    const row = partOf(text, 'api-keys')
      .split('<tr>')
      .find((part) => part.includes(`hbk_${prefix}_...`))!
    expect(row).toContain('<bdi>CI</bdi>')
    const [, path] = /href="(\/settings\/api-keys\/[^"]+\/revoke)"/.exec(row)!
    const question = await admin.get(path!)
    expect(question.text).toContain('Revoke this API key?')
    expect(question.text).toContain(`<form method="post" action="${path}">`)
    expect((await api.client.get('/me', { key: key! })).status).toBe(200)
    expect((await admin.post(path!)).location).toBe('/settings?done=key-revoked')
    expect((await api.client.get('/me', { key: key! })).status).toBe(401)
    expect((await admin.get(path!)).status).toBe(404)
    expect((await admin.post(path!)).status).toBe(404)
    expect((await admin.get('/settings?done=key-revoked')).text).toContain('The API key is revoked.')
  })

  it('is created once, also when the browser loads the response again', async () => {
    const [, newId] = /name="new_id" value="([^"]+)"/.exec((await admin.get('/settings')).text)!
    const create = () => admin.post('/settings/api-keys', { name: 'once', scope: 'read', new_id: newId! })
    const both = await Promise.all([create(), create()])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const again = await create()
    expect(again.status).toBe(409)
    expect(again.text).toContain('This API key was created already, and is not shown again: revoke it')
    const { body } = await api.client.get('/api-keys')
    expect(body.api_keys.filter(({ name }: { name: string }) => name === 'once')).toHaveLength(1)
    expect((await admin.post('/settings/api-keys', { name: 'odd', scope: 'read', new_id: 'odd' })).status).toBe(200)
  })

  it('is bound to a project, and expires at the end of a day', async () => {
    const fields = { name: 'bound', scope: 'write', project_id: api.project, expires_at: '2099-12-31' }
    expect((await admin.post('/settings/api-keys', fields)).text).toContain('expires at 2099-12-31 23:59:59 UTC')
    const { body } = await api.client.get('/api-keys')
    expect(body.api_keys.at(-1)).toMatchObject({ project_id: api.project, expires_at: '2099-12-31T23:59:59.000Z' })
  })

  it.each([
    [{ name: '' }, 'Name must be text of 1 to 100 characters, without control characters.'],
    [{ scope: 'owner' }, 'Scope must be one of read, write, admin.'],
    [{ expires_at: 'soon' }, 'Expires must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z.'],
  ])('with %j is rejected, and the form keeps what was typed', async (fields: Record<string, string>, fault) => {
    const { rows: before } = await api.database.query('select from api_keys')
    const { status, text } = await admin.post('/settings/api-keys', { name: 'a "name"', scope: 'write', ...fields })
    expect(status).toBe(422)
    expect(text).toContain(`class="fault">${fault}</small>`)
    if (fields.name === undefined) expect(text).toContain('value="a &quot;name&quot;"')
    if (fields.scope === undefined) expect(text).toContain('<option value="write" selected>')
    expect(text).toContain('<fieldset id="new-api-key" class="settings-new"')
    expect((await api.database.query('select from api_keys')).rows.length).toBe(before.length)
  })
})

/** Made through the API: the path of the page, and the scope as it is stored. */
async function aUserWith(scope: string) {
  const fields = { email: anEmail('carol'), password: PASSWORD, scope }
  const { id } = (await api.client.post('/users', fields)).body
  const stored = async () => {
    const { users } = (await api.client.get('/users?limit=1000')).body
    return users.find((user: { id: string }) => user.id === id).scope
  }
  return { path: `/settings/users/${id}`, scope: stored }
}

describe('a user', () => {
  it('is created, logs in, is changed and removed', async () => {
    const user = { email: anEmail('bob'), password: PASSWORD }
    expect((await admin.post('/settings/users', { ...user, scope: 'read' })).location).toBe(
      '/settings?done=user-created',
    )
    const bob = createVisitor(new URL(api.url).origin)
    await bob.logIn(user)
    expect((await bob.get('/settings')).text).toContain('with the scope read')
    const { text } = await admin.get('/settings')
    const [, path] = new RegExp(
      `href="(/settings/users/[^"]+)">Change<span class="visually-hidden"> ${user.email}`,
    ).exec(text)!
    expect((await admin.get(path!)).text).toContain('<option value="read" selected>')
    expect((await admin.post(path!, { scope: 'write', password: '' })).location).toBe('/settings?done=user-changed')
    expect((await bob.get('/settings')).text).toContain('with the scope write')
    expect((await admin.post(path!, { scope: 'write', password: 'another long password' })).status).toBe(303)
    expect((await bob.get('/settings')).status).toBe(303)
    await bob.logIn({ ...user, password: 'another long password' })
    expect((await admin.get(`${path}/remove`)).text).toContain(`<bdi>${user.email}</bdi> can no longer log in`)
    expect((await bob.get('/settings')).status).toBe(200)
    expect((await admin.post(`${path}/remove`)).location).toBe('/settings?done=user-removed')
    expect((await bob.get('/settings')).status).toBe(303)
    expect((await admin.get(path!)).status).toBe(404)
  })

  it.each([
    [{ email: 'nothing' }, 'E-mail must be an e-mail address.'],
    [{ email: 'admin@example.com' }, 'This e-mail address cannot be used for a user: give another one.'],
    [{ password: 'short' }, 'Password must be text of 12 to 200 characters.'],
    [{ scope: '' }, 'Scope must be one of read, write, admin.'],
  ])('with %j is rejected, and the password is not shown', async (fields: Record<string, string>, fault) => {
    const { status, text } = await admin.post('/settings/users', {
      email: anEmail('eve'),
      password: PASSWORD,
      scope: 'read',
      ...fields,
    })
    expect(status).toBe(422)
    expect(text).toContain(`class="fault">${fault}</small>`)
    expect(text).not.toContain(PASSWORD)
  })

  it('keeps the scope that another admin has set meanwhile, when only the password is changed', async () => {
    const { path, scope } = await aUserWith('admin')
    const page = (await admin.get(path)).text
    await admin.post(path, { ...readForm(page, path), scope: 'read' })
    expect(await scope()).toBe('read')
    const { location } = await admin.post(path, { ...readForm(page, path), password: 'another long password' })
    expect([location, await scope()]).toEqual(['/settings?done=user-changed', 'read'])
    await admin.post(path, { ...readForm(page, path), scope: 'write' })
    expect(await scope()).toBe('write')
  })

  it('has the scope that was chosen, after a fault of the password in between', async () => {
    const { path, scope } = await aUserWith('read')
    const page = (await admin.get(path)).text
    const rejected = await admin.post(path, { ...readForm(page, path), scope: 'write', password: 'short' })
    expect(rejected.status).toBe(422)
    const again = readForm(rejected.text, path)
    expect(again).toMatchObject({ scope: 'write', password: '' })
    await admin.post(path, { ...again, password: 'another long password' })
    expect(await scope()).toBe('write')
  })

  it('of another organization is not found', async () => {
    const other = await api.addOrganization()
    const user = { email: anEmail('foreign'), password: PASSWORD, scope: 'read' }
    const { body } = await api.client.post('/users', user, { key: other.keys.admin })
    for (const path of [`users/${body.id}`, `users/${body.id}/remove`]) {
      expect((await admin.get(`/settings/${path}`)).status).toBe(404)
      expect((await admin.post(`/settings/${path}`, { scope: 'read' })).status).toBe(404)
    }
    expect((await admin.get('/settings/users')).text).not.toContain(body.email)
  })

  it('is the last admin, and stays', async () => {
    await using alone = await startTestApi()
    const visitor = await visit(alone)
    await alone.database.query('delete from api_keys')
    const [own] = idsOf((await visitor.get('/settings')).text, /href="\/settings\/users\/([^"/]+)"/g)
    const changed = await visitor.post(`/settings/users/${own}`, { scope: 'read' })
    expect(changed.status).toBe(409)
    expect(changed.text).toContain('This is the last admin of the organization')
    expect(readForm(changed.text, `/settings/users/${own}`).scope).toBe('read')
    expect((await visitor.get(`/settings/users/${own}/remove`)).text).toContain('This is your own account.')
    const removed = await visitor.post(`/settings/users/${own}/remove`)
    expect(removed.status).toBe(409)
    expect(removed.text).toContain('This is the last admin of the organization')
    expect((await visitor.get('/settings')).status).toBe(200)
  })

  it('gets no password where log-in by password is off', async () => {
    await using off = await startTestApi({ isPasswordLoginOn: false })
    const visitor = await visit(off)
    const { text } = await visitor.get('/settings')
    expect(text).not.toContain('type="password"')
    expect(text).toContain('Log-in by password is off')
    const own = { current_password: off.admin.password, new_password: 'another long password' }
    const changed = await visitor.post('/settings/password', own)
    expect(changed.status).toBe(403)
    expect(changed.text).toContain('Log-in by password is off')
    expect(off.audited.map(({ action }) => action)).not.toContain('password.changed')
    expect((await visitor.post('/settings/users', { email: 'bob@example.com', scope: 'read' })).status).toBe(303)
    const { body } = await off.client.get('/users')
    expect(body.users).toMatchObject([{}, { email: 'bob@example.com', scope: 'read' }])
  })
})

describe('a project', () => {
  it('is created, renamed and removed', async () => {
    expect((await admin.post('/settings/projects', { name: 'Payments', slug: '' })).location).toBe(
      '/settings?done=project-created',
    )
    const { text } = await admin.get('/settings')
    expect(partOf(text, 'projects')).toContain('<code>payments</code>')
    const [, path] =
      /href="(\/settings\/projects\/[^"]+)">Rename, keys, badges<span class="visually-hidden"> Payments/.exec(text)!
    expect((await admin.post(path!, { name: ' ' })).status).toBe(422)
    expect((await admin.post(path!, { name: 'Billing' })).location).toBe('/settings?done=project-changed')
    expect((await admin.get(path!)).text).toContain('value="Billing"')
    expect((await admin.get(`${path}/remove`)).text).toContain('<bdi>Billing</bdi>')
    expect((await admin.post(`${path}/remove`)).location).toBe('/settings?done=project-removed')
    expect((await admin.get(path!)).status).toBe(404)
  })

  it('keeps the name that another admin has given meanwhile, when its form is saved without a change', async () => {
    const { id } = (await api.client.post('/projects', { name: 'First' })).body
    const path = `/settings/projects/${id}`
    const page = (await admin.get(path)).text
    await admin.post(path, { ...readForm(page, path), name: 'Second' })
    expect((await admin.post(path, readForm(page, path))).status).toBe(303)
    expect((await api.client.get(`/projects/${id}`)).body.name).toBe('Second')
  })

  it('with a wrong or a taken slug is rejected', async () => {
    for (const [slug, fault] of [
      ['default', 'Another project has the slug &quot;default&quot;: choose another.'],
      ['A b', 'Slug must be 1 to 100 characters of a-z, 0-9, - and _, and begin and end with a letter or digit.'],
    ]) {
      const { status, text } = await admin.post('/settings/projects', { name: 'Payments', slug: slug! })
      expect(status).toBe(422)
      expect(text).toContain(`class="fault">${fault}</small>`)
      expect(text).toContain('value="Payments"')
    }
  })

  it('with checks stays', async () => {
    await api.addCheck()
    const { status, text } = await admin.post(`/settings/projects/${api.project}/remove`)
    expect(status).toBe(409)
    expect(text).toContain('The project holds 1 check: delete them first.')
  })
})

describe('one’s own account', () => {
  it('has a password that is changed with the present one; other sessions end', async () => {
    const user = await aUser()
    const [here, there] = [await user.visit(), await user.visit()]
    const change = (current_password: string, new_password: string) =>
      here.post('/settings/password', { current_password, new_password })
    const wrong = await change('not the password', 'another long password')
    expect(wrong.status).toBe(422)
    expect(wrong.text).toContain('<small id="own-current-password-fault" class="fault">The current password is wrong.')
    const short = await change(PASSWORD, 'short')
    expect(short.status).toBe(422)
    expect(short.text).toContain('New password must be text of 12 to 200 characters.')
    expect((await there.get('/settings')).status).toBe(200)
    expect((await change(PASSWORD, 'another long password')).location).toBe('/settings?done=password-changed')
    expect((await here.get('/settings')).status).toBe(200)
    expect((await there.get('/settings')).status).toBe(303)
    await there.logIn({ email: user.email, password: 'another long password' })
  })

  it('throttles guesses of the present password', async () => {
    const visitor = await (await aUser()).visit()
    const guess = () =>
      visitor.post('/settings/password', { current_password: 'x', new_password: 'another long password' })
    const statuses = []
    for (let attempt = 0; attempt < 11; attempt += 1) statuses.push((await guess()).status)
    expect(statuses).toEqual([...Array(10).fill(422), 429])
    expect((await guess()).text).toContain('Too many failed log-ins')
  })

  it('lists the sessions, and ends one', async () => {
    const user = await aUser()
    const [here, there] = [await user.visit(), await user.visit()]
    const { email, password } = user
    await api.client.post('/auth/login', { email, password })
    const { text } = await here.get('/settings')
    const rows = partOf(text, 'account').split('<tr>').slice(2)
    expect(rows.map((row) => [/<th scope="row">(\w+)/.exec(row)![1], row.includes('This session')])).toEqual([
      ['Dashboard', true],
      ['Dashboard', false],
      ['API', false],
    ])
    const [, path] = /action="(\/settings\/sessions\/[^"]+\/end)"/.exec(rows[1]!)!
    const stranger = await visit(api, 'read')
    expect((await stranger.post(path!)).status).toBe(404)
    expect((await here.post(path!)).location).toBe('/settings?done=session-ended')
    expect((await there.get('/settings')).status).toBe(303)
    expect((await here.get('/settings')).status).toBe(200)
  })
})

describe('lists', () => {
  it('have pages', async () => {
    await using many = await startTestApi()
    const visitor = await visit(many)
    for (let at = 0; at < 105; at += 1)
      await many.database.query(
        `insert into projects (id, organization_id, name, slug, created_at) values (gen_random_uuid(), $1, $2, $2, now())`,
        [many.organizationId, `p-${at}`],
      )
    const first = partOf((await visitor.get('/settings')).text, 'projects')
    const slugs = (text: string) => idsOf(text, /<code>(p-\d+|default)<\/code>/g)
    expect(slugs(first)).toHaveLength(20)
    const [next] = idsOf(first, /href="([^"]+)" rel="next"/g)
    const second = (await visitor.get(next!)).text
    expect(slugs(second)).toHaveLength(86)
    expect(new Set([...slugs(first), ...slugs(second)]).size).toBe(106)
    expect(second).not.toContain('rel="next"')
    expect(second).toContain('<a href="/settings/projects">First page</a>')
    expect((await visitor.get('/settings/projects?cursor=x')).status).toBe(422)
  })

  it('the audit log has pages and filters', async () => {
    const { text } = await admin.get('/settings/audit?action=user.created')
    expect(text).toContain('created the user')
    expect(text).not.toContain('created the API key <')
    expect(text).toContain('<option value="user.created" selected>')
    expect((await admin.get('/settings/audit?action=nothing')).status).toBe(422)
    const [user] = idsOf(text, /href="\/settings\/audit\?target_id=([^"]+)"/g)
    expect((await admin.get(`/settings/audit?target_id=${user}`)).text).toContain('created the user')
  })

  it('hostile names stay text', async () => {
    for (const path of ['api-keys', 'projects'])
      expect((await admin.post(`/settings/${path}`, { name: HOSTILE, scope: 'read' })).status).toBeLessThan(400)
    const { text } = await admin.get('/settings')
    for (const id of ['api-keys', 'projects', 'audit']) expect(partOf(text, id), id).toContain(`<bdi>${ESCAPED}`)
    expect(text).not.toContain('<script>alert')
    const [key] = idsOf(text, /href="(\/settings\/api-keys\/[^"]+\/revoke)">Revoke<span class="visually-hidden"> &lt;/g)
    expect((await admin.get(key!)).text).toContain(`<bdi>${ESCAPED}`)
    const rejected = await admin.post('/settings/projects', { name: HOSTILE, slug: '"><script>' })
    expect(rejected.text).toContain('value="&quot;&gt;&lt;script&gt;"')
  })
})
