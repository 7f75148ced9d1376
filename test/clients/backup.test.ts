/**
 * The commands of docs/operate/operations.md: a dump while the service runs, and a restored database with which it goes
 * on.
 */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { listBlocksOf } from '../support/documents.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { startWholePostgres, type WholePostgres } from '../support/whole-postgres.ts'

const [dump, restore] = listBlocksOf('test/clients/backup.test.ts')
const URL_OF_RECEIVER = 'https://hooks.example.com/heartbeat'

let temp: TempFolder
let postgres: WholePostgres

beforeAll(async () => {
  temp = await makeTempFolder()
  postgres = await startWholePostgres()
})
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]()
  await temp?.remove()
})

const shell = (script: string) =>
  promisify(execFile)('bash', ['-ec', script], { cwd: temp.path, env: postgres.environment })
const clientOf = ({ api }: Service) => createApiClient(api, API_KEY)
const environmentOf = (database: string) => databaseEnvironment(postgres.urlOf(database))

it('a dump of a running service, restored by the owner of the database, is the service as it was', async () => {
  await using first = await startService(environmentOf('heartbeat'))
  const client = await clientOf(first)
  const fields = { project_id: PROJECT_ID, name: 'Backup', period_seconds: 10, grace_seconds: 5 }
  const { body: check } = await client.post('/checks', fields)
  const config = { url: URL_OF_RECEIVER }
  const { body: channel } = await client.post('/channels', { kind: 'webhook', name: 'Hook', config, muted: true })
  expect(await sendPing(first.ping, aPing(check.public_id))).toMatchObject({ status: 200 })
  const deadline = Date.now() + 15_000
  await shell(dump!.text)
  // After the dump, so not in it.
  const { body: later } = await client.post('/checks', { ...fields, name: 'Later' })
  await first.stop()

  await shell(restore!.text)
  await eventually('the deadline has passed', () => Date.now() > deadline)
  await using second = await startService(environmentOf('restored'))
  const again = await clientOf(second)
  expect((await again.get(`/checks/${later.id}`)).status).toBe(404)
  expect((await again.get(`/channels/${channel.id}`)).body.config).toMatchObject(config)
  // No job is blamed for the time since the dump: the deadline has moved.
  const { body: restored } = await again.get(`/checks/${check.id}`)
  expect(restored).toMatchObject({ public_id: check.public_id, name: 'Backup' })
  expect(restored.status).toMatch(/^(up|late)$/)
  expect(Date.parse(restored.due_at)).toBeGreaterThan(Date.now())
  expect(await sendPing(second.ping, aPing(check.public_id))).toMatchObject({ status: 200 })
  expect((await again.get(`/checks/${check.id}`)).body.status).toBe('up')
  await second.stop()

  const other = { SECRET_KEY: Buffer.alloc(32, 'another key of this test').toString('base64') }
  await using third = await startService({ ...environmentOf('restored'), ...other })
  expect((await (await clientOf(third)).get(`/channels/${channel.id}`)).body.config).toBeNull()
})
