import { describe, expect, it } from 'vitest'
import { ISO, UUID } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

describe('projects', () => {
  it('are created, listed and removed', async () => {
    const made = await api.client.post('/projects', { name: ' Größte Backups ' })
    expect(made).toMatchObject({
      status: 201,
      body: {
        id: expect.stringMatching(UUID),
        name: 'Größte Backups',
        slug: 'grosste-backups',
        created_at: expect.stringMatching(ISO),
      },
    })
    const before = (await api.client.get('/projects')).body.projects
    expect(before).toEqual([expect.objectContaining({ id: api.project }), made.body])
    expect(await api.client.delete(`/projects/${made.body.id}`)).toMatchObject({ status: 204, body: null })
    expect((await api.client.get('/projects')).body.projects).toEqual([before[0]])
  })

  it('are listed page by page', async () => {
    await api.client.post('/projects', { name: 'Second' })
    const all = (await api.client.get('/projects')).body.projects
    const first = (await api.client.get('/projects?limit=1')).body
    expect(first.projects).toEqual(all.slice(0, 1))
    expect((await api.client.get(`/projects?cursor=${first.next_cursor}`)).body).toEqual({
      projects: all.slice(1),
      next_cursor: null,
    })
  })

  it.each([
    [{}, 'name is required'],
    [{ name: '\u2060' }, 'name must be text of 1 to 100 characters, without control characters'],
    [
      { name: 'x', slug: 'A' },
      'slug must be 1 to 100 characters of a-z, 0-9, - and _, and begin and end with a letter or digit',
    ],
  ])('are not created from %j', async (fields, error) => {
    expect(await api.client.post('/projects', fields)).toMatchObject({ status: 400, body: { error } })
  })
})

describe('the keys of a project', () => {
  it.each(['ping', 'badge'])('a %s key is created, replaced and revoked, and shown to admins only', async (kind) => {
    const { id } = (await api.client.post('/projects', { name: `Keys for ${kind}` })).body
    const path = `/projects/${id}/${kind}-key`
    const field = `${kind}_key`
    const aKey = { [field]: expect.stringMatching(/^[A-Za-z0-9]{22}$/) }
    const atFirst = kind === 'ping' ? { ping_key: null } : aKey
    expect(await api.client.get(path)).toMatchObject({ status: 200, body: atFirst })
    const first = await api.client.post(path)
    expect([first.status, first.body]).toEqual([201, aKey])
    const second = await api.client.post(path)
    expect([second.status, second.body]).toEqual([201, aKey])
    expect(second.body).not.toEqual(first.body)
    expect((await api.client.get(path)).body).toEqual(second.body)
    expect((await api.client.get(path, { key: api.keys.write })).status).toBe(403)
    expect(await api.client.delete(path)).toMatchObject({ status: 204, body: null })
    expect(await api.client.get(path)).toMatchObject({ status: 200, body: { [field]: null } })
    expect(await api.client.delete(path)).toMatchObject({ status: 204, body: null })
    // Neither the audit log nor the log has a key.
    const entries = (await api.client.get(`/audit?target_id=${id}`)).body
    for (const { body } of [first, second]) expect(JSON.stringify([entries, api.audited])).not.toContain(body[field])
    const made = { action: 'project.changed', detail: { changed: [field], change: 'created' } }
    const revoked = { ...made, detail: { ...made.detail, change: 'revoked' } }
    expect(entries.entries).toMatchObject([revoked, made, made, { action: 'project.created' }])
  })
})

describe('API keys', () => {
  it('are returned once, work, and are rejected once revoked', async () => {
    const expires_at = new Date(Date.now() + 86_400_000).toISOString()
    const { status, body } = await api.client.post('/api-keys', {
      name: 'ci',
      scope: 'read',
      project_id: api.project,
      expires_at,
    })
    expect(status).toBe(201)
    const { key, ...made } = body
    expect(made).toEqual({
      id: expect.stringMatching(UUID),
      name: 'ci',
      prefix: expect.any(String),
      scope: 'read',
      project_id: api.project,
      expires_at,
      last_used_at: null,
      created_at: expect.stringMatching(ISO),
      created_by: { kind: 'api_key', id: expect.stringMatching(UUID), name: 'admin' },
    })
    expect(key).toMatch(new RegExp(`^hbk_${made.prefix}_\\w+$`))
    expect((await api.client.get('/me', { key })).body).toMatchObject({
      kind: 'api_key',
      user: null,
      scope: 'read',
      project_id: api.project,
    })

    const listed = (await api.client.get('/api-keys')).body.api_keys.find(({ id }: { id: string }) => id === made.id)
    expect({ ...listed, last_used_at: null }).toEqual(made)
    expect(JSON.stringify(await api.client.get('/api-keys'))).not.toContain(key)

    expect((await api.client.delete(`/api-keys/${made.id}`)).status).toBe(204)
    expect((await api.client.get('/me', { key })).status).toBe(401)
    expect((await api.client.delete(`/api-keys/${made.id}`)).body).toMatchObject({ code: 'not_found' })
  })

  const MOMENT = 'expires_at must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z'
  // L9: stored, it would be a time of the year 997.
  const YEARS = 'expires_at must lie in the years 1 to 9999 in UTC'
  it.each([
    [{ name: undefined }, 'name is required'],
    [{ scope: undefined }, 'scope is required'],
    [{ scope: 'root' }, 'scope must be one of read, write, admin'],
    [{ project_id: 'x' }, 'project_id must be a UUID'],
    [{ expires_at: '2030-01-01' }, MOMENT],
    [{ expires_at: '2030-02-30T00:00:00Z' }, MOMENT],
    [{ expires_at: 1 }, MOMENT],
    [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at must be in the future'],
    [{ expires_at: '9999-12-31T23:59:59-00:01' }, YEARS],
    [{ expires_at: '0001-01-01T00:00:00+00:01' }, YEARS],
  ])('are not created with %j', async (fields, error) => {
    const answer = await api.client.post('/api-keys', { name: 'x', scope: 'read', ...fields })
    expect(answer).toMatchObject({ status: 400, body: { error } })
  })

  it('have an expiry with an offset, or null for never', async () => {
    const made = await api.client.post('/api-keys', {
      name: 'x',
      scope: 'read',
      expires_at: '9999-12-31T23:59:59.999+00:00',
    })
    expect(made.body.expires_at).toBe('9999-12-31T23:59:59.999Z')
    expect(
      (await api.client.post('/api-keys', { name: 'x', scope: 'read', project_id: null, expires_at: null })).body,
    ).toMatchObject({ project_id: null, expires_at: null })
  })
})

const person = { email: 'Ann@Example.com', password: 'a long password', scope: 'write' }

describe('users', () => {
  it('are added, listed and removed', async () => {
    const { status, body } = await api.client.post('/users', person)
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(UUID),
      email: 'ann@example.com',
      scope: 'write',
      created_at: expect.stringMatching(ISO),
      created_by: { kind: 'api_key', id: expect.stringMatching(UUID), name: 'admin' },
    })
    const { users } = (await api.client.get('/users')).body
    expect(users).toEqual([expect.objectContaining({ email: api.admin.email, scope: 'admin' }), body])
    expect((await api.client.post('/users', { ...person, email: 'ann@example.com' })).status).toBe(409)
    expect((await api.client.delete(`/users/${body.id}`)).status).toBe(204)
    expect((await api.client.delete(`/users/${body.id}`)).body).toMatchObject({ code: 'not_found' })
  })

  it.each([
    [{ email: 'x' }, 'email must be an e-mail address'],
    [
      { email: 'adm\u0130n@example.com' },
      'email must be an e-mail address of ASCII characters: write an international domain in punycode (xn--...)',
    ],
    [{ password: '12345678901' }, 'password must be text of 12 to 200 characters'],
    [{ password: 'ann@example.com' }, 'password must not be the e-mail address'],
    [{ scope: null }, 'scope cannot be null'],
  ])('are not added with %j', async (fields, error) => {
    expect(await api.client.post('/users', { ...person, ...fields })).toMatchObject({ status: 400, body: { error } })
  })
})

describe('PUT /users/{id}', () => {
  it('sets scope and password', async () => {
    const { id } = (await api.client.post('/users', { ...person, email: 'put@example.com' })).body
    const { status, body } = await api.client.put(`/users/${id}`, { scope: 'read', password: 'a longer password' })
    expect([status, body]).toEqual([200, expect.objectContaining({ id, email: 'put@example.com', scope: 'read' })])
    const login = { email: 'put@example.com', password: 'a longer password' }
    expect((await api.client.post('/auth/login', login, { key: null })).status).toBe(200)
    expect((await api.client.put(`/users/${id}`, { email: 'x@example.com' })).status).toBe(400)
    expect((await api.client.delete(`/users/${id}`)).status).toBe(204)
  })
})

describe('the own account', () => {
  it('has a password and sessions', async () => {
    await using own = await startTestApi()
    const enter = async () => (await own.client.post('/auth/login', own.admin, { key: null })).body.access_token
    const [key, other] = [await enter(), await enter()]
    const { sessions } = (await own.client.get('/me/sessions', { key })).body
    expect(sessions).toEqual(
      [true, false].map((current) => ({
        id: expect.stringMatching(UUID),
        kind: 'token',
        created_at: expect.stringMatching(ISO),
        last_used_at: expect.stringMatching(ISO),
        address: '127.0.0.1',
        current,
      })),
    )
    const change = (fields: object = {}) =>
      own.client.put(
        '/me/password',
        { current_password: own.admin.password, new_password: 'a longer password', ...fields },
        { key },
      )
    expect(await change({ current_password: 'x' })).toMatchObject({
      status: 403,
      body: { error: 'the current password is wrong' },
    })
    expect(await change({ new_password: own.admin.email })).toMatchObject({
      status: 400,
      body: { error: 'new_password must not be the e-mail address' },
    })
    expect(await change()).toMatchObject({ status: 204, body: null })
    expect((await own.client.get('/me', { key: other })).status).toBe(401)
    expect((await own.client.delete(`/me/sessions/${sessions[1].id}`, { key })).status).toBe(404)
    expect((await own.client.delete(`/me/sessions/${sessions[0].id}`, { key })).status).toBe(204)
    expect((await own.client.get('/me', { key })).status).toBe(401)
  })

  it('is not one of a key', async () => {
    expect(await api.client.get('/me/sessions')).toMatchObject({
      status: 403,
      body: { error: 'an API key has no sessions: send the access token of a log-in' },
    })
  })
})

describe('GET /me', () => {
  it('describes the organization and scope of a key, and which key it is', async () => {
    const { key, id } = (
      await api.client.post('/api-keys', { name: 'CI', scope: 'read', expires_at: '2040-01-31T12:00:00Z' })
    ).body
    expect((await api.client.get('/me', { key })).body.key).toEqual({
      id,
      name: 'CI',
      prefix: key.split('_')[1],
      expires_at: '2040-01-31T12:00:00.000Z',
    })
    expect((await api.client.get('/me', { key: api.keys.write })).body).toEqual({
      kind: 'api_key',
      organization: { id: api.organizationId, name: expect.any(String) },
      user: null,
      key: { id: expect.stringMatching(UUID), name: 'write', prefix: expect.any(String), expires_at: null },
      scope: 'write',
      project_id: null,
    })
  })

  it('names no key for a user', async () => {
    const { access_token: key } = (await api.client.post('/auth/login', api.admin, { key: null })).body
    expect((await api.client.get('/me', { key })).body).toMatchObject({ kind: 'user', key: null })
  })

  it('describes a key that is bound to a project', async () => {
    const fields = { name: 'Bound', scope: 'read', project_id: api.project }
    const { key, id } = (await api.client.post('/api-keys', fields)).body
    expect((await api.client.get('/me', { key })).body).toMatchObject({ project_id: api.project, key: { id } })
  })
})
