/**
 * An upgrade with data: what the latest release stored by its API, its ping API and its controller, in a database that
 * this version migrates and serves. The operator's part is in test/operator/upgrade.test.ts.
 */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { describeSchema } from '../../tools/generate/schema.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { silentLog } from '../support/silent-log.ts'
import { type SmtpReceiver, startSmtpReceiver } from '../support/smtp-receiver.ts'
import { eventually } from '../support/until.ts'
import { PASSWORDS, RECEIVER_PORT, readKnown, SECRET_KEY } from '../support/upgrade/known.ts'
import { type Restored, restoreRelease, toPresent } from '../support/upgrade/restore.ts'

const known = readKnown()
const stack = new AsyncDisposableStack()
let restored: Restored
let database: Database
let receiver: Receiver
let smtp: SmtpReceiver
let addresses: { ping: string; api: string }
/** Whether the receiver that was away is back. */
let isBack = false

beforeAll(async () => {
  restored = await restoreRelease()
  stack.defer(() => restored.close())
  database = createDatabase({ url: restored.url, name: 'test', connections: 2, patient: true })
  stack.defer(() => database.close())
  await migrate(database)
  receiver = stack.use(await startReceiver({ port: RECEIVER_PORT }))
  receiver.answer(({ path }) => ({ status: path === '/away' && !isBack ? 503 : 200 }))
  smtp = stack.use(await startSmtpReceiver())
  const config = readConfig(
    {
      ...{ PING_PORT: '0', API_PORT: '0', OPS_PORT: '0', SPOOL_MAX_BYTES: '0' },
      DATABASE_URL: restored.url,
      SECRET_KEY: SECRET_KEY.toString('base64'),
      ALLOWED_TARGETS: '127.0.0.0/8',
      ALERTMANAGER_URL: `${receiver.url}/installation`,
      SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    },
    false,
  )
  const app = createApp({ config, databaseUrl: restored.url, secretKey: SECRET_KEY, log: silentLog })
  stack.defer(() => app.stop())
  const { ping, api } = await app.start()
  addresses = { ping: ping!, api: api! }
})
afterAll(() => stack.disposeAsync())

async function call(method: string, path: string, json?: unknown, key: string | null = known.keys.admin!) {
  const response = await fetch(addresses.api + path, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

const idOf = (check: string) => known.checks[check]!.id

async function ping(check: string, path = '', body?: string): Promise<void> {
  const url = `${addresses.ping}/ping/${known.checks[check]!.publicId}${path}`
  const response = await fetch(url, body === undefined ? {} : { method: 'POST', body })
  expect([response.status, await response.text()]).toEqual([200, 'OK'])
}

/** The first message about this check with this type that came to the path; fails when none comes. */
function untilReceived(path: string, pattern: RegExp) {
  return eventually(`a message that matches ${pattern} at ${path}`, () =>
    receiver.requests.find((request) => request.path.startsWith(path) && pattern.test(request.body)),
  )
}

it('makes the schema that a new installation has', async () => {
  expect(await describeSchema(database)).toBe(readFileSync(new URL('../schema.sql', import.meta.url), 'utf8'))
})

it('returns all that it returned, of checks, history, channels, deliveries, projects and users', async () => {
  for (const [path, response] of Object.entries(known.responses)) {
    const { status, body } = await call('GET', path)
    expect(status, path).toBe(200)
    const wanted = toPresent(path, response, restored.laterMs) as object
    expect(toPresent(path, body, 0), `GET ${path}`).toMatchObject(wanted)
  }
})

it('accepts each API key with its scope and project', async () => {
  const me = await Promise.all(
    Object.entries(known.keys).map(async ([name, key]) => {
      const { status, body } = await call('GET', '/me', undefined, key)
      return [name, status, body.scope, body.project_id]
    }),
  )
  expect(me).toEqual([
    ['admin', 200, 'admin', null],
    ['read', 200, 'read', null],
    ['write', 200, 'write', null],
    ['payments', 200, 'write', known.payments],
    ['expiring', 200, 'admin', null],
  ])
  expect((await call('GET', `/checks/${idOf('up')}`, undefined, known.keys.payments)).status).toBe(404)
})

it.each([
  ['admin@example.com', PASSWORDS.admin, 'admin'],
  ['WRITER@example.com', PASSWORDS.writer, 'write'],
  ['reader@example.com', PASSWORDS.reader, 'read'],
])('%s logs in', async (email, password, scope) => {
  const { status, body } = await call('POST', '/auth/login', { email, password }, null)
  expect(status).toBe(200)
  expect((await call('GET', '/me', undefined, body.access_token)).body).toMatchObject({ scope })
})

it('goes on with a log-in, and ends it when its spent token comes again', async () => {
  const refresh = (token: string) => call('POST', '/auth/refresh', { refresh_token: token }, null)
  const { status, body } = await refresh(known.refreshTokens.unspent)
  expect(status).toBe(200)
  expect((await call('GET', '/me', undefined, body.access_token)).status).toBe(200)
  expect((await refresh(known.refreshTokens.spent)).status).toBe(401)
  expect((await refresh(body.refresh_token)).status).toBe(401)
})

it('shows the text of an old ping, and stores new pings of old runs', async () => {
  await ping('up', '/0?rid=0190163d-8694-739b-aea5-966c26f8ad92', 'wrote 13 tables')
  const { pings } = (await call('GET', `/checks/${idOf('up')}/pings`)).body
  expect(pings.map((entry: { type: string; body: string | null }) => [entry.type, entry.body])).toEqual([
    ['success', 'wrote 13 tables'],
    ['start', null],
    ['log', 'a line \u2713\u0000 with a NUL'],
    ['success', 'wrote 12 tables\n'],
    ['start', null],
  ])
  expect(pings[0].duration_ms).toBeGreaterThan(0)
})

it('a check that was down comes up with check.up on every channel that had its check.down', async () => {
  const from = receiver.requests.length
  await ping('failed')
  await untilReceived('/webhook', /check\.up.*"failed"/)
  await untilReceived('/slack', /failed/)
  await untilReceived('/alertmanager', /"check":"failed"/)
  await eventually('a mail about the failure', () =>
    smtp.mails.find(({ headers }) => /failed/.test(headers.subject ?? '')),
  )
  const hook = receiver.requests.slice(from).find(({ path }) => path.startsWith('/webhook'))!
  expect(hook.headers['webhook-signature']).toMatch(/^v1,/)
  expect(JSON.parse(hook.body).data).toMatchObject({ check: { id: idOf('failed') }, reason: 'recovered' })
})

it('a check that was down, and paused before the upgrade, closes its incident when it comes up', async () => {
  expect((await call('POST', `/checks/${idOf('down-paused')}/resume`)).body).toMatchObject({ status: 'new' })
  await ping('down-paused')
  await untilReceived('/webhook', /check\.up.*"down-paused"/)
})

it('deliveries that waited are sent when their receiver is back, oldest first', async () => {
  isBack = true
  const delivered = await eventually(
    'each delivery is delivered',
    async () => {
      // Again and again: an attempt that was on its way writes its next time after us. The outbox locks rows in another
      // order: what it has locked is left out, so that neither waits for the other.
      await database.query(
        `update deliveries set next_attempt_at = now() where (event_id, channel_id) in (
        select event_id, channel_id from deliveries where status = 0 for update skip locked)`,
      )
      const { deliveries } = (await call('GET', `/deliveries?channel_id=${known.channels.away}&limit=1000`)).body
      return deliveries.every(({ status }: { status: string }) => status === 'delivered') ? deliveries : null
    },
    { retryErrors: false },
  )
  expect(delivered.length).toBeGreaterThan(5)
})

it('detects a deadline that was set before', async () => {
  const check = (await call('GET', `/checks/${idOf('armed')}`)).body
  expect(check).toMatchObject({ status: 'new' })
  await database.query(
    `update check_states set expected_at = expected_at - interval '3 days', due_at = now() - interval '1 second', wake_at = now() - interval '1 second'
      where check_key = (select key from checks where id = $1)`,
    [idOf('armed')],
  )
  await untilReceived('/webhook', /check\.down.*"armed"/)
  expect((await call('GET', `/checks/${idOf('armed')}`)).body).toMatchObject({ status: 'down' })
})

it('a check that was paused pauses on until it is resumed, and can be removed', async () => {
  await ping('paused', '/fail')
  expect((await call('GET', `/checks/${idOf('paused')}`)).body).toMatchObject({ status: 'paused' })
  expect((await call('POST', `/checks/${idOf('paused')}/resume`)).body).toMatchObject({ status: 'new' })
  expect((await call('DELETE', `/checks/${idOf('paused')}`)).status).toBe(204)
})

it('makes new checks, channels, keys and users beside the old ones', async () => {
  const made = [
    await call('POST', '/checks', { project_id: known.payments, name: 'New' }),
    await call('POST', '/channels', { kind: 'webhook', name: 'New', config: { url: `${receiver.url}/new` } }),
    await call('POST', '/api-keys', { name: 'New', scope: 'read' }),
    await call('POST', '/users', { email: 'new@example.com', password: 'a long enough phrase', scope: 'read' }),
  ]
  expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201])
})
