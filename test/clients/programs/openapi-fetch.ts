/** A client by openapi-typescript and openapi-fetch. Its output is compared with that of the other generators. */

import createClient from 'openapi-fetch'
import type { paths } from './heartbeat.js'

const { BASE_URL = '', PING_URL = '', API_KEY = '', PROJECT_ID = '' } = process.env
const api = createClient<paths>({ baseUrl: BASE_URL, headers: { Authorization: `Bearer ${API_KEY}` } })
const pings = createClient<paths>({ baseUrl: PING_URL })

/** Of a request that must succeed. */
function take<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}

// The smallest body: no field with a default is required.
const check = take(
  await api.POST('/checks', { body: { project_id: PROJECT_ID, name: 'Generated', period_seconds: 60 } }),
)
const path = { id: check.id }
const wrong = await api.PATCH('/checks/{id}', { params: { path }, body: { name: ' ' } })

const answer = await pings.POST('/ping/{public_id}/{exit_code}', {
  params: { path: { public_id: check.public_id ?? '', exit_code: 3 } },
  body: 'dump failed',
  bodySerializer: (text) => text,
  headers: { 'Content-Type': 'text/plain' },
  parseAs: 'text',
})
const history = take(await api.GET('/checks/{id}/pings', { params: { path, query: { limit: 10 } } }))
const listed = take(
  await api.GET('/checks', { params: { query: { project_id: PROJECT_ID, status: ['down', 'late'] } } }),
)
const paused = take(await api.POST('/checks/{id}/pause', { params: { path } }))

const channel = take(
  await api.POST('/channels', {
    body: { kind: 'webhook', name: 'Pager', config: { url: 'https://hooks.example.com/heartbeat' } },
  }),
)
// Distinguished by their kind.
const url = channel.kind === 'webhook' ? channel.config?.url : undefined
await api.POST('/channels', { body: { kind: 'email', name: 'Mail', config: { to: ['ada@example.com'] } } })
const mixed = { kind: 'slack', name: 'x', config: { to: ['ada@example.com'] } } as const
// @ts-expect-error: the config of another kind
await api.POST('/channels', { body: mixed })
const { response } = await api.DELETE('/checks/{id}', { params: { path } })

console.log(
  JSON.stringify({
    created: check.status,
    code: wrong.error?.code,
    wrong: wrong.error?.details?.[0]?.path,
    answer: answer.data,
    pings: history.pings.map(({ type, exit_code, body }) => [type, exit_code, body]),
    listed: listed.checks.map(({ name }) => name),
    paused: paused.status,
    url,
    deleted: response.status,
  }),
)
