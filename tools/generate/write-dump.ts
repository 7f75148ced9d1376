/**
 * `node tools/generate/write-dump.ts`: runs this checkout, fills it by its API, and writes test/fixtures/release/.
 * The random texts of keys and tokens are replaced by texts that cannot be taken for real.
 */

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { stringify } from 'yaml'
import { startFakeCluster } from '../../test/support/fake-cluster.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { startSmtpReceiver } from '../../test/support/smtp-receiver.ts'
import { makeTempFolder } from '../../test/support/temp-folder.ts'
import { ADMIN_KEY, FILES, type Known, PASSWORDS, RECEIVER_PORT, SECRET_KEY } from '../../test/support/upgrade/known.ts'
import { workIn } from '../../test/support/workplace.ts'
import { dumpDatabase } from './dump.ts'
import { type Call, fill, readResponses } from './fill.ts'

const PROJECT = '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10'

await using stack = new AsyncDisposableStack()
const temporary = stack.use(await makeTempFolder())
const postgres = stack.use(await startPostgresServer())
const cluster = stack.use(await startFakeCluster())
const receiver = stack.use(await startReceiver({ port: RECEIVER_PORT }))
receiver.answer(({ path }) => ({ status: path === '/away' ? 503 : path === '/gone' ? 400 : 200 }))
const smtp = stack.use(await startSmtpReceiver())
await cluster.api('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
const kubeconfig = join(temporary.path, 'kubeconfig')
writeFileSync(
  kubeconfig,
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'fake',
    clusters: [{ name: 'fake', cluster: { server: cluster.server.url } }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', namespace: 'default' } }],
  }),
)

const child = spawn(process.execPath, ['src/main.ts'], {
  env: {
    PATH: process.env.PATH,
    HOME: temporary.path,
    DATA_DIR: join(temporary.path, 'data'),
    DATABASE_URL: postgres.url,
    SECRET_KEY: SECRET_KEY.toString('base64'),
    ...{ PING_PORT: '0', API_PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'error' },
    ...{ BOOTSTRAP_EMAIL: 'Admin@Example.com', BOOTSTRAP_PASSWORD: PASSWORDS.admin, BOOTSTRAP_PROJECT_ID: PROJECT },
    BOOTSTRAP_API_KEY: ADMIN_KEY,
    ALLOWED_TARGETS: '127.0.0.0/8',
    ALERTMANAGER_URL: `http://127.0.0.1:${RECEIVER_PORT}/installation`,
    SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    SPOOL_MAX_BYTES: '0',
    KUBECONFIG: kubeconfig,
  },
  stdio: ['ignore', 'pipe', 'inherit'],
})
stack.defer(() => void child.kill('SIGKILL'))
const [pingUrl, apiUrl] = await new Promise<string[]>((found, fail) => {
  let text = ''
  child.stdout.on('data', (piece) => {
    text += piece
    const ready = /^ready ping=(\S+) api=(\S+) /m.exec(text)
    if (ready !== null) found([ready[1]!, ready[2]!])
  })
  child.on('exit', () => fail(new Error(`it ended: ${text}`)))
})

const call: Call = async (method, path, json, authorization = `Bearer ${ADMIN_KEY}`) => {
  const response = await fetch(apiUrl + path, {
    method,
    headers: { authorization, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? null : JSON.parse(text)
}
const ping = async (publicId: string, path = '', body?: string) => {
  const response = await fetch(`${pingUrl}/ping/${publicId}${path}`, body === undefined ? {} : { method: 'POST', body })
  if (!response.ok) throw new Error(`ping ${path}: ${response.status} ${await response.text()}`)
}

const made = await fill({ call, ping, place: workIn(cluster, 'shop'), project: PROJECT, adminKey: ADMIN_KEY })
const responses = await readResponses(call, made)
child.kill('SIGTERM')
await once(child, 'exit')

const client = new Client({ connectionString: postgres.url })
await client.connect()
const keys: Record<string, string> = {}
for (const [name, key] of Object.entries(made.keys)) keys[name] = await renameKey(name, key)
const refreshTokens = {
  unspent: await replaceToken(made.refreshTokens.unspent, 'unspent'),
  spent: await replaceToken(made.refreshTokens.spent, 'spent'),
}
const known: Known = { ...made, keys, refreshTokens, responses }
writeFileSync(FILES.dump, await dumpDatabase(client))
writeFileSync(FILES.known, `${JSON.stringify(known, null, 2)}\n`)
await client.end()

/** Both are found by the SHA-256 of their text. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

async function renameKey(name: string, key: string): Promise<string> {
  if (key === ADMIN_KEY) return key
  const text = `hbk_${name}_${'example'.repeat(6).slice(0, 40)}`
  await client.query('update api_keys set prefix = $1, secret_hash = $2 where secret_hash = $3', [
    name,
    hashOf(text),
    hashOf(key),
  ])
  return text
}

async function replaceToken(token: string, name: string): Promise<string> {
  const text = `hbr_${name.padEnd(43, '-')}`
  await client.query('update refresh_tokens set token_hash = $1 where token_hash = $2', [hashOf(text), hashOf(token)])
  return text
}
