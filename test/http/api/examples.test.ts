/** The examples of the document, sent to the service: it accepts each request, and its responses have the fields of the examples. */

import { beforeAll, describe, expect, it } from 'vitest'
import { EXAMPLES } from '../../../src/http/api/examples.ts'
import { statusOf } from '../../../src/http/api/route.ts'
import { ROUTES } from '../../../src/http/api/routes.ts'
import type { Answer } from '../../support/api-client.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

/** Ids by the first part of the path, as each operation needs one that exists. */
let ids: Record<string, string>
let refreshToken = ''
/** Of the example's user: keys have neither password nor sessions. */
let accessToken = ''
/** What was made before the tests. */
const made = new Map<string, Answer>()

const api = use(startTestApi)
beforeAll(async () => {
  const created = async (id: string) => {
    const answer = await send(id)
    made.set(id, answer)
    return answer.body.id as string
  }
  ids = { projects: (await api.client.post('/projects', { name: 'To be removed' })).body.id }
  ids.checks = await created('createCheck')
  const check = (await api.client.get(`/checks/${ids.checks}`)).body
  ids.channels = await created('createChannel')
  ids.silences = await created('createSilence')
  ids.users = await created('createUser')
  ids['api-keys'] = await created('createApiKey')
  accessToken = (await api.client.post('/auth/login', EXAMPLES.logIn!.body, { key: null })).body.access_token
  ids.me = (await api.client.get('/me/sessions', { key: accessToken })).body.sessions[0].id
  for (const exitCode of [0, 1])
    await api.ping(check.public_id, { type: exitCode === 0 ? 'success' : 'fail', exitCode, body: Buffer.from('text') })
  ids.ping = (await api.client.get(`/checks/${ids.checks}/pings`)).body.pings[0].id
  ids.deliveries = (await api.client.get('/deliveries')).body.deliveries[0].id
  await api.database.query(`update deliveries set status = 2, next_attempt_at = null where id = $1`, [ids.deliveries])
})

/** With an id of the service for each id of an example that must exist. */
async function send(id: string): Promise<Answer> {
  const { method, path, scope, endpoint } = ROUTES.find((route) => route.id === id)!
  const part = path.split('/')[1]!
  const query = path === '/checks' && method === 'GET' ? `?project_id=${api.project}` : ''
  const target = path.replace('{id}', ids?.[part] ?? '').replace('{ping_id}', ids?.ping ?? '') + query
  const { body } = EXAMPLES[id] ?? {}
  const json =
    body === undefined
      ? undefined
      : {
          ...body,
          ...('project_id' in body ? { project_id: api.project } : {}),
          ...('refresh_token' in body ? { refresh_token: refreshToken } : {}),
        }
  const key = scope === null ? { key: null } : part === 'me' ? { key: accessToken } : {}
  const answer = await api.client.call(method, target, { ...key, json })
  if (answer.body?.refresh_token !== undefined) refreshToken = answer.body.refresh_token
  expect({ id, status: answer.status, body: answer.body }).toMatchObject({ id, status: statusOf(endpoint) })
  return answer
}

/** Fields of one that the other lacks. Null has no fields, and a list those of its first item. */
function compare(example: unknown, real: unknown, place: string): string[] {
  if (example === null || real === null || example === undefined || real === undefined) return []
  if (typeof example !== typeof real) return [`${place} is ${typeof example} in the example, ${typeof real} in truth`]
  if (typeof example !== 'object') return []
  if (Array.isArray(example)) return compare(example[0], (real as unknown[])[0], `${place}[0]`)
  // Their names are the caller's own.
  if (place.endsWith('.labels')) return []
  const [one, other] = [example as Record<string, unknown>, real as Record<string, unknown>]
  return [
    ...Object.keys(one).flatMap((name) =>
      name in other ? compare(one[name], other[name], `${place}.${name}`) : [`${place}.${name} is in the example only`],
    ),
    ...Object.keys(other).flatMap((name) => (name in one ? [] : [`${place}.${name} is missing in the example`])),
  ]
}

/** Removals come last, that of the project after those of its keys, before them what ends sessions; the check is resumed after it was paused. */
const rank = (id: string) =>
  id === 'removeProject'
    ? 3
    : /^(remove|revoke)/.test(id) || id === 'logOut'
      ? 2
      : /^(changePassword|endSession)$/.test(id)
        ? 1
        : 0
const order = ROUTES.filter(({ sameAs }) => sameAs === undefined)
  .map(({ id }) => id)
  .filter((id) => id !== 'getDocument')
  .sort((one, other) => rank(one) - rank(other))
describe('the example of the document', () => {
  it.each(order)('%s is accepted, and has the fields of a real response', async (id) => {
    const { body } = made.get(id) ?? (await send(id))
    expect(compare(EXAMPLES[id]?.response ?? null, body, id), 'correct src/http/api/examples.ts').toEqual([])
  })
})
