/**
 * `node tools/bench/rows.ts`: what the database keeps of a check, of a ping, and of a notification, in bytes with all
 * indexes, for docs/operate/sizing.md. Pings are stored as they come: one of each check after the other.
 */

import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { createApiClient } from '../../test/support/api-client.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, startService } from '../../test/support/service-process.ts'
import { seedPingedChecks } from './seed-checks.ts'

const CHECKS = 10_000
const PINGS = 100
const DOWN = 1_000

const settings = { fsync: 'off' }
const open = (url: string) => createDatabase({ url, name: 'bench', connections: 2, patient: true })

async function bytesOf(database: Database, ...tables: string[]): Promise<number> {
  await database.query('vacuum')
  const { rows } = await database.query<{ bytes: number }>(
    'select sum(pg_total_relation_size(name::regclass))::int8 as bytes from unnest($1::text[]) name',
    [tables],
  )
  return rows[0]!.bytes
}
const say = (what: string, bytes: number) => process.stdout.write(`${what}: ${Math.round(bytes)} bytes\n`)

await using postgres = await startPostgresServer({ settings })
const database = open(postgres.url)
await migrate(database)
await seedPingedChecks(database, CHECKS, PINGS)
say('a check', (await bytesOf(database, 'checks', 'check_states')) / CHECKS)
say('a ping', (await bytesOf(database, 'pings')) / (CHECKS * PINGS))
await database.query(
  `insert into ping_bodies (check_key, ping_id, body)
   select check_key, id, convert_to(left(repeat(md5(id::text) || md5(random()::text), 16), 1024), 'UTF8')
   from pings order by created_at desc limit ${CHECKS}`,
)
say('a ping, besides, with 1,024 bytes of text', (await bytesOf(database, 'ping_bodies')) / CHECKS)

await database.close()

await using other = await startPostgresServer({ settings })
await using receiver = await startReceiver()
const service = await startService({
  ...databaseEnvironment(other.url),
  LOG_LEVEL: 'error',
  RATE_LIMIT_PER_MINUTE: '1000000',
  ALLOWED_TARGETS: '127.0.0.0/8',
})
const client = await createApiClient(service.api, API_KEY)
const config = { url: receiver.url }
const channel = await client.post('/channels', { kind: 'webhook', name: 'Hook', config })
if (channel.status !== 201) throw new Error(JSON.stringify(channel.body))
for (let n = 0; n < DOWN; n += 1) {
  const fields = { project_id: PROJECT_ID, name: `Nightly backup ${n}`, period_seconds: 86_400, grace_seconds: 3_600 }
  const { body: check } = await client.post('/checks', fields)
  await fetch(`${service.ping}/ping/${check.public_id}`)
  await fetch(`${service.ping}/ping/${check.public_id}/fail`, { method: 'POST', body: 'pg_dump: error: refused' })
}
await service.stop()
const notified = open(other.url)
const { rows } = await notified.query<{ count: number }>('select count(*) as count from deliveries')
say('a notification', (await bytesOf(notified, 'flips', 'events', 'deliveries')) / rows[0]!.count)
await notified.close()
