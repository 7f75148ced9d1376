import { beforeAll, describe, expect, it } from 'vitest'
import { includesScope, SCOPES } from '../../../src/domain/access.ts'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let checkId: string

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeAll(async () => {
  checkId = (await api.addCheck({ name: 'ours' })).id
})

const UNKNOWN = '01999999-9999-7999-8999-999999999999'
const fill = (path: string, id: string) => path.replace('{id}', id)
const routes = ROUTES.map(({ id, method, path, scope, endpoint }) => ({
  operation: id,
  method,
  path,
  scope,
  endpoint,
  title: `${method} ${path}`,
}))
const guarded = routes.flatMap((route) => (route.scope === null ? [] : [{ ...route, scope: route.scope }]))

describe.each(guarded)('$title', ({ operation, method, path, scope, endpoint }) => {
  const call = (key: string | null, id = UNKNOWN) =>
    api.client.call(method, fill(path, id), { key, ...(endpoint.body === undefined ? {} : { json: {} }) })

  it.each([
    ['no credential', null, 'no credential was received'],
    ['an unknown key', 'hbk_unknownkey_unknownunknownunknown', 'the credential is an unknown or revoked API key'],
    ['something else', 'x', 'the credential is neither an API key nor an access token that is valid here'],
  ])('needs a credential, and rejects %s', async (_, key, received) => {
    const { status, headers, body } = await call(key)
    expect(status).toBe(401)
    expect(headers.get('www-authenticate')).toBe('Bearer')
    expect(headers.get('ratelimit-limit')).toBeNull()
    expect(body.error.startsWith(received)).toBe(true)
    expect(body.error).toContain('send the header "Authorization: Bearer <API key or access token>"')
  })

  it.each(SCOPES)('accepts or rejects a key of the scope %s', async (held) => {
    const { status, body } = await call(api.keys[held])
    // Users have passwords and sessions; keys, whatever their scope, do not.
    if (path.startsWith('/me/sessions'))
      return expect({ status, body }).toEqual({
        status: 403,
        body: { error: expect.stringMatching(/^an API key has no/), code: 'forbidden' },
      })
    if (includesScope(held, scope)) return expect(status).not.toBe(403)
    expect(status).toBe(403)
    const error = `this call needs the scope ${scope}; the given credential has ${held}`
    expect(body).toEqual({ error, code: 'forbidden' })
  })

  if (endpoint.params !== undefined)
    it('returns 404 for a malformed id', async () => {
      for (const id of [
        '1',
        'x'.repeat(36),
        `${checkId}0`,
        '%zz',
        '%00',
        '%F0%9F%92%A9',
        '%2e%2e%2f',
        checkId.replaceAll('-', ''),
      ]) {
        const { status, body } = await call(api.keys.admin, id)
        expect({ id, status, body }).toEqual({
          id,
          status: 404,
          body: {
            error: expect.stringMatching(/^(check|project|user|API key|channel|delivery|session|silence) not found$/),
            code: 'not_found',
          },
        })
      }
    })

  if (endpoint.params !== undefined && !path.startsWith('/me/'))
    it('returns the same error for an unknown id', async () => {
      const unknown = await call(api.keys.admin)
      const malformed = await call(api.keys.admin, '1')
      if (endpoint.body !== undefined) return expect(unknown.status).toBe(404)
      expect({ status: unknown.status, body: unknown.body }).toEqual({ status: 404, body: malformed.body })
    })

  if (path.startsWith('/checks/{id}'))
    it("returns 404 for another organization's check, whatever the scope", async () => {
      const { status, body } = await call(foreign.keys.admin, checkId)
      expect({ status, body }).toEqual({ status: 404, body: { error: 'check not found', code: 'not_found' } })
    })

  if (endpoint.body !== undefined)
    it('names an unknown field', async () => {
      // The kind of a new channel decides which fields are known.
      const json = { ...(operation === 'createChannel' ? { kind: 'webhook' } : {}), surprise: 1 }
      const { status, body } = await api.client.call(method, fill(path, UNKNOWN), { json })
      expect(status).toBe(400)
      expect(body.details).toContainEqual({ path: 'body.surprise', message: 'is not a known field' })
    })
})

it('an id in upper case is accepted', async () => {
  const { status, body } = await api.client.get(`/checks/${checkId.toUpperCase()}`)
  expect([status, body.id]).toEqual([200, checkId])
})

it('the check is unchanged after all calls of the other organization', async () => {
  expect((await api.client.get(`/checks/${checkId}`)).body).toMatchObject({ id: checkId, name: 'ours', status: 'new' })
})
