/** A client by @hey-api/openapi-ts. Its output is compared with that of the other generators. */

import {
  createChannel,
  createCheck,
  listChecks,
  listPings,
  pauseCheck,
  postExitCode,
  removeCheck,
  updateCheck,
} from './client'
import { createClient } from './client/client'

const { BASE_URL = '', PING_URL = '', API_KEY = '', PROJECT_ID = '' } = process.env
const client = createClient({ baseUrl: BASE_URL, auth: API_KEY })
const pings = createClient({ baseUrl: PING_URL })

/** Of a request that must succeed. */
function take<Data>({ data, error }: { data?: Data; error?: unknown }): NonNullable<Data> {
  if (data === undefined || data === null) throw new Error(JSON.stringify(error))
  return data
}

// The smallest body: no field with a default is required.
const check = take(
  await createCheck({ client, body: { project_id: PROJECT_ID, name: 'Generated', period_seconds: 60 } }),
)
const path = { id: check.id }
const wrong = await updateCheck({ client, path, body: { name: ' ' } })

const answer = await postExitCode({
  client: pings,
  baseUrl: PING_URL,
  path: { public_id: check.public_id ?? '', exit_code: 3 },
  body: 'dump failed',
})
const history = take(await listPings({ client, path, query: { limit: 10 } }))
const listed = take(await listChecks({ client, query: { project_id: PROJECT_ID, status: ['down', 'late'] } }))
const paused = take(await pauseCheck({ client, path }))

const channel = take(
  await createChannel({
    client,
    body: { kind: 'webhook', name: 'Pager', config: { url: 'https://hooks.example.com/heartbeat' } },
  }),
)
// Distinguished by their kind.
const url = channel.kind === 'webhook' ? channel.config?.url : undefined
await createChannel({ client, body: { kind: 'email', name: 'Mail', config: { to: ['ada@example.com'] } } })
const mixed = { kind: 'slack' as const, name: 'x', config: { to: ['ada@example.com'] } }
// @ts-expect-error: the config of another kind
await createChannel({ client, body: mixed })
const { response } = await removeCheck({ client, path })

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
    deleted: response?.status,
  }),
)
