import { describe, expect, it } from 'vitest'
import type { AuditAction } from '../../../src/domain/audit.ts'
import { ROUTES } from '../../../src/http/api/routes.ts'
import type { Log } from '../../../src/runtime/log.ts'
import { startTestApp } from '../../support/app.ts'
import { startTestApi } from '../../support/service.ts'
import { silentLog } from '../../support/silent-log.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

interface Entry {
  readonly id: string
  readonly at: string
  readonly actor: { readonly kind: string; readonly id: string | null; readonly name: string | null }
  readonly action: AuditAction
  readonly target: { readonly kind: string; readonly id: string; readonly name: string | null } | null
  readonly address: string | null
  readonly detail: Record<string, unknown>
}

const entries = async (query = '', key = api.keys.admin): Promise<Entry[]> =>
  (await api.client.get(`/audit${query}`, { key })).body.entries
const newest = async (query = '') => (await entries(`?limit=1${query}`))[0]!
const make = async (path: string, json: object) => (await api.client.post(path, json)).body

const aCheck = async () => `/checks/${(await api.addCheck({ name: 'Backup' })).id}`
const aDownCheck = async () => {
  const { id, public_id } = await api.addCheck({ name: 'Backup' })
  await api.ping(public_id, { type: 'fail', exitCode: 1 })
  return `/checks/${id}`
}
const aChannel = async (fields = {}) => {
  const config = { url: 'https://example.com/hooks/T0CKEN?key=s3cret' }
  return `/channels/${(await make('/channels', { kind: 'webhook', name: 'Pager', config, ...fields })).id}`
}
const aSilence = () => ({ project_id: api.project, ends_at: '2099-01-01T00:00:00Z', comment: 'T0CKEN' })
const aProject = async () => `/projects/${(await make('/projects', { name: 'Shop' })).id}`

const PASSWORD = 'correct horse battery staple'
let users = 0
const aUser = async () => {
  users += 1
  return `/users/${(await make('/users', { email: `user-${users}@example.com`, password: PASSWORD, scope: 'read' })).id}`
}
const aKey = async () => `/api-keys/${(await make('/api-keys', { name: 'ci', scope: 'read' })).id}`
const logIn = async () => (await api.client.post('/auth/login', api.admin, { key: null })).body
const isOfAccount = (action: string) => /^(login|logout|refresh|password)/.test(action)
const admin = async () => {
  const { users } = (await api.client.get('/users')).body
  const { id } = users.find(({ email }: { email: string }) => email === api.admin.email)
  return { kind: 'user', id, name: api.admin.email }
}

const idOfAdminKey = async () => {
  const { api_keys } = (await api.client.get('/api-keys')).body
  return api_keys.find((key: { name: string }) => key.name === 'admin').id
}

/** For each route of ROUTES that is audited: a call that succeeds. */
const CALLS: Record<string, () => Promise<[path: string, json?: object | undefined, key?: string | null]>> = {
  'POST /auth/login': async () => ['/auth/login', api.admin, null],
  'POST /auth/logout': async () => ['/auth/logout', { refresh_token: (await logIn()).refresh_token }, null],
  'PUT /me/password': async () => {
    const { access_token } = await logIn()
    const passwords = { current_password: api.admin.password, new_password: api.admin.password }
    return ['/me/password', passwords, access_token]
  },
  'DELETE /me/sessions/{id}': async () => {
    const { access_token } = await logIn()
    const { sessions } = (await api.client.get('/me/sessions', { key: access_token })).body
    return [`/me/sessions/${sessions[0].id}`, undefined, access_token]
  },
  'POST /users': async () => ['/users', { email: 'new@example.com', password: PASSWORD, scope: 'read' }],
  'PATCH /users/{id}': async () => [await aUser(), { scope: 'write', password: `${PASSWORD}!` }],
  'DELETE /users/{id}': async () => [await aUser()],
  'POST /api-keys': async () => ['/api-keys', { name: 'ci', scope: 'read' }],
  'PATCH /api-keys/{id}': async () => [await aKey(), { name: 'cd' }],
  'DELETE /api-keys/{id}': async () => [await aKey()],
  'POST /checks': async () => ['/checks', { project_id: api.project, name: 'Backup' }],
  'PATCH /checks/{id}': async () => [await aCheck(), { grace_seconds: 60 }],
  'DELETE /checks/{id}': async () => [await aCheck()],
  'POST /checks/{id}/acknowledge': async () => [`${await aDownCheck()}/acknowledge`],
  'DELETE /checks/{id}/acknowledge': async () => {
    const path = `${await aDownCheck()}/acknowledge`
    await api.client.post(path)
    return [path]
  },
  'POST /checks/{id}/pause': async () => [`${await aCheck()}/pause`],
  'POST /checks/{id}/resume': async () => {
    const path = await aCheck()
    await api.client.patch(`${path}/pause`)
    return [`${path}/resume`]
  },
  'POST /channels': async () => [
    '/channels',
    { kind: 'slack', name: 'Slack', config: { url: 'https://hooks.slack.com/services/T0CKEN' } },
  ],
  'PATCH /channels/{id}': async () => [await aChannel(), { name: 'Phone' }],
  'DELETE /channels/{id}': async () => [await aChannel()],
  'POST /channels/{id}/rotate-secret': async () => [`${await aChannel()}/rotate-secret`, {}],
  'POST /silences': async () => ['/silences', aSilence()],
  'DELETE /silences/{id}': async () => [`/silences/${(await make('/silences', aSilence())).id}`],
  'POST /projects': async () => ['/projects', { name: 'Shop' }],
  'PATCH /projects/{id}': async () => [await aProject(), { name: 'Store' }],
  'DELETE /projects/{id}': async () => [await aProject()],
  'POST /projects/{id}/ping-key': async () => [`${await aProject()}/ping-key`],
  'DELETE /projects/{id}/ping-key': async () => {
    const path = `${await aProject()}/ping-key`
    await api.client.post(path)
    return [path]
  },
  'POST /projects/{id}/badge-key': async () => [`${await aProject()}/badge-key`],
  'DELETE /projects/{id}/badge-key': async () => [`${await aProject()}/badge-key`],
}

/** Fields of requests that no entry and no line may hold. */
const SECRETS = ['T0CKEN', 's3cret', 'hooks']

describe('the audit log', () => {
  const audited = ROUTES.filter(({ audits }) => audits.length > 0).map((route) => ({
    ...route,
    title: `${route.method} ${route.path}`,
    first: ROUTES.find(({ id }) => id === route.sameAs) ?? route,
  }))

  it.each(audited)('has $audits after $title', async ({ title, first, method, audits }) => {
    const [path, json, key] = await CALLS[`${first.method} ${first.path}`]!()
    const before = await newest()
    const { status } = await api.client.call(method, path, {
      ...(json === undefined ? {} : { json }),
      ...(key === undefined ? {} : { key }),
    })
    expect(status).toBeLessThan(300)
    const added = (await entries()).filter(({ id }) => id > before.id)
    expect(added.map(({ action }) => action)).toEqual(audits)
    const entry = added[0]!
    expect(entry).toEqual({
      id: expect.any(String),
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      actor: key === undefined ? { kind: 'api_key', id: await idOfAdminKey(), name: 'admin' } : await admin(),
      action: audits[0],
      target: isOfAccount(audits[0]!)
        ? { ...(await admin()), kind: 'user' }
        : {
            kind: audits[0]!.split('.')[0],
            id: expect.any(String),
            name: /^(session|silence)\./.test(audits[0]!) ? null : expect.any(String),
          },
      address: '127.0.0.1',
      detail: expect.any(Object),
    })
    if (path !== title.split(' ')[1] && !isOfAccount(audits[0]!)) expect(path).toContain(entry.target!.id)
    // The log gets the same entry after the commit.
    expect(api.audited.find(({ id }) => id === entry.id)).toEqual({ ...entry, at: expect.any(Number) })
  })

  it('has no entry of a call that is rejected or changes nothing', async () => {
    const path = await aCheck()
    const channel = await aChannel()
    const before = await newest()
    for (const json of [{ grace_seconds: -1 }, { name: 'Backup', grace_seconds: 3_600 }])
      await api.client.put(path, json)
    await api.client.patch(`${path}/resume`)
    await api.client.put(channel, { name: 'Pager', muted: false })
    await api.client.delete('/projects/01999999-9999-7999-8999-999999999999')
    await api.client.delete(`/projects/${api.project}`)
    await api.client.post('/checks', { project_id: api.project, name: 'x' }, { key: api.keys.read })
    expect(await newest()).toEqual(before)
  })

  it('names the changed fields, and holds no value of them', async () => {
    const check = await aCheck()
    const labels = { a: 'b' }
    await api.client.put(check, { name: 'Hourly', schedule: '0 * * * *', description: 'd', tags: ['a'], labels })
    expect((await newest()).detail).toEqual({
      changed: ['name', 'description', 'tags', 'labels', 'period_seconds', 'schedule', 'time_zone'],
    })
    const channel = await aChannel()
    await api.client.put(channel, {
      config: { url: 'https://example.com/hooks/T0CKEN2' },
      events: ['check.up'],
      muted: true,
      after_seconds: 1,
    })
    expect(await newest()).toMatchObject({
      detail: { kind: 'webhook', changed: ['events', 'muted', 'after_seconds', 'config'] },
    })
    const publicId = (await api.client.get(check)).body.public_id
    const stored = await api.database.query('select * from audit_log')
    for (const text of [stored.rows, api.audited].map((all) => JSON.stringify(all)))
      for (const secret of [...SECRETS, publicId, api.keys.admin]) expect(text).not.toContain(secret)
  })

  it('has what went with a project', async () => {
    const path = await aProject()
    const project_id = path.slice('/projects/'.length)
    await make('/api-keys', { name: 'bound', scope: 'read', project_id })
    await aChannel({ project_id })
    await api.client.delete(path)
    expect((await entries('?limit=3')).map(({ action, target }) => [action, target!.name])).toEqual([
      ['project.removed', 'Shop'],
      ['api_key.removed', 'bound'],
      ['channel.removed', 'Pager'],
    ])
  })

  it('is filtered by action, actor and target, and paged from the newest on', async () => {
    const first = await aCheck()
    const second = await aCheck()
    await api.client.put(first, { name: 'Other' })
    const target = first.slice('/checks/'.length)
    const actions = (found: Entry[]) => found.map(({ action }) => action)
    expect(actions(await entries(`?target_id=${target}`))).toEqual(['check.changed', 'check.created'])
    expect(actions(await entries(`?target_id=${target}&action=check.created`))).toEqual(['check.created'])
    expect((await newest('&action=check.created')).target!.id).toBe(second.slice('/checks/'.length))
    const { key, id } = await make('/api-keys', { name: 'Mine', scope: 'write' })
    await api.client.put(first, { name: 'Third' }, { key })
    expect(await entries(`?actor_id=${id}`)).toMatchObject([{ action: 'check.changed', actor: { id, name: 'Mine' } }])

    const page = (await api.client.get('/audit?limit=2')).body
    const next = (await api.client.get(`/audit?limit=2&cursor=${page.next_cursor}`)).body
    expect([...page.entries, ...next.entries]).toEqual(await entries('?limit=4'))
    expect((await api.client.get(`/audit?target_id=${target}`)).body).toMatchObject({ next_cursor: null })
  })

  it('rejects an action that does not exist', async () => {
    const { status, body } = await api.client.get('/audit?action=check.renamed')
    expect([status, body.error]).toEqual([400, expect.stringContaining('check.changed')])
  })

  it('shows an admin that is bound to a project the entries of that project only', async () => {
    const path = await aProject()
    const project_id = path.slice('/projects/'.length)
    const { key } = await make('/api-keys', { name: 'bound', scope: 'admin', project_id })
    const { id } = await make('/checks', { project_id, name: 'theirs' })
    const { id: channel } = (
      await api.client.post('/channels', { kind: 'email', name: 'Mail', config: { to: ['a@example.com'] } })
    ).body
    const seen = await entries('', key)
    expect(seen.map(({ target }) => target!.id)).toEqual(expect.arrayContaining([id, project_id]))
    expect(seen.map(({ target }) => target!.id)).not.toContain(channel)
    expect(await entries(`?target_id=${channel}`, key)).toEqual([])
    const foreign = await api.addOrganization()
    expect(await entries(`?target_id=${id}`, foreign.keys.admin)).toEqual([])
  })

  it('has what the first start made, by the system', async () => {
    const made = (await entries('?limit=1000')).filter(({ actor }) => actor.kind === 'system')
    expect(made.map(({ action }) => action)).toEqual(['api_key.created', 'user.created', 'project.created'])
    expect(made[0]).toMatchObject({ actor: { id: null, name: null }, address: null })
  })
})

describe('log-ins in the audit log', () => {
  const fail = (email: string) => api.client.post('/auth/login', { email, password: 'wrong password' }, { key: null })

  it('has failures with their account, and the lock', async () => {
    const path = await aUser()
    const name = `user-${users}@example.com`
    const user = { id: path.slice('/users/'.length), name }
    for (let tried = 1; tried <= 11; tried += 1) await fail(name)
    const found = (await entries('?limit=20')).filter(({ action }) => action.startsWith('login.'))
    expect(found.slice(0, 3)).toMatchObject([
      { action: 'login.locked', actor: { kind: 'user', ...user }, target: { kind: 'user', ...user } },
      {
        action: 'login.failed',
        actor: { kind: 'user', ...user },
        target: { kind: 'user', ...user },
        address: '127.0.0.1',
      },
      { action: 'login.failed' },
    ])
    expect(found.filter(({ target }) => target?.id === user.id)).toHaveLength(11)
  })

  it('has no text of a failure without an account, and stores a thousand of them a day', async () => {
    await fail('typed@example.com')
    const system = { kind: 'system', id: null, name: null }
    expect(await newest()).toMatchObject({ action: 'login.failed', actor: system, target: null, address: '127.0.0.1' })
    expect(JSON.stringify(await entries())).not.toContain('typed')
    await api.database.query(`update rate_windows set used = 999 where bucket = 'audit:login.failed'`)
    const count = async () => (await entries('?action=login.failed&limit=1000')).length
    const before = await count()
    const logged = api.audited.length
    for (const name of ['one', 'two']) await fail(`${name}@example.com`)
    expect(await count()).toBe(before + 1)
    expect(api.audited.slice(logged).map(({ action }) => action)).toEqual(['login.failed', 'login.failed'])
  })

  it('has the replay of a refresh token', async () => {
    const { refresh_token } = await logIn()
    for (const status of [200, 401])
      expect((await api.client.post('/auth/refresh', { refresh_token }, { key: null })).status).toBe(status)
    const user = await admin()
    expect(await newest()).toMatchObject({ action: 'refresh.replayed', actor: user, target: user })
  })

  it('has no second entry for a second log-out', async () => {
    const { refresh_token } = await logIn()
    for (let time = 1; time <= 2; time += 1) await api.client.post('/auth/logout', { refresh_token }, { key: null })
    expect((await entries('?limit=2')).map(({ action }) => action)).toEqual(['logout', 'login.succeeded'])
  })
})

it('a user and an API key are unknown to another organization', async () => {
  const { keys } = await api.addOrganization()
  for (const path of [await aUser(), await aKey()]) {
    expect((await api.client.get(path, { key: keys.admin })).status).toBe(404)
    const change = path.startsWith('/users') ? { scope: 'write' } : { name: 'x' }
    expect((await api.client.put(path, change, { key: keys.admin })).status).toBe(404)
  }
})

it('the running service writes a line for each entry, those of the first start aside', async () => {
  const lines: [level: string, action: string, message: string][] = []
  const at = (level: string) => (fields: { action: string }, message: string) => {
    if (message === 'audit') lines.push([level, fields.action, message])
  }
  const log = { ...silentLog, info: at('info'), warn: at('warn') } as unknown as Log
  await using app = await startTestApp({ log })
  await app.client.post('/projects', { name: 'Shop' })
  await app.client.post('/auth/login', { email: 'nobody@example.com', password: 'wrong password' }, { key: null })
  expect(lines).toEqual([
    ['info', 'project.created', 'audit'],
    ['warn', 'login.failed', 'audit'],
  ])
})
