/** A server that hangs with a statement of ours, and carries it out when it goes on, while the same pings are recorded from disk. */

import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { addCheck } from '../../support/check.ts'
import { startPostgresServer } from '../../support/postgres-server.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { addTenant } from '../../support/tenant.ts'
import { eventually, settle } from '../../support/until.ts'
import { pingOf } from './fixture.ts'
import { openSpoolReplica } from './spool-fixture.ts'

const ROUNDS = 6
const CHECKS = 20

it.each([
  ['without locks', false],
  ['with locks', true],
])('a commit (%s) that takes place after the hang records nothing twice', async (_name, isLocked) => {
  await using folder = await makeTempFolder()
  await using server = await startPostgresServer({ settings: { fsync: 'off' } })
  const database = createDatabase({ url: server.url, name: 'test', connections: 2, patient: true })
  await using _closed = { [Symbol.asyncDispose]: database.close }
  await migrate(database)
  const tenant = await addTenant({ database })
  const checks: CheckRecord[] = []
  while (checks.length < CHECKS) checks.push(await addCheck({ database }, tenant))
  await using one = await openSpoolReplica({ url: server.url, folder: join(folder.path, 'spool') })
  const sent: string[] = []
  const send = () =>
    checks.map((check) => {
      const text = `ping ${sent.length}`
      sent.push(text)
      // A run id needs locks.
      return one.recorder.record(
        pingOf(check, { body: Buffer.from(text), runId: isLocked ? crypto.randomUUID() : null }),
      )
    })
  // So that all are cached, and connections are open.
  await eventually('a ping is stored', async () => new Set(await Promise.all(send())).has('stored'), {
    retryErrors: false,
  })
  for (let round = 0; round < ROUNDS; round += 1) {
    await eventually(
      'all is read back',
      async () => {
        await one.readBack.run()
        return one.pings.isEmpty() && one.recorder.isWell()
      },
      { retryErrors: false },
    )
    const pinging = send()
    // In every other round the server takes the first statements.
    if (round % 2 === 0) await Promise.resolve()
    else await settle()
    await server.pause()
    const results = await Promise.all([...pinging, ...send()])
    expect(new Set(results).isSubsetOf(new Set(['stored', 'spooled']))).toBe(true)
    expect(results).toContain('spooled')
    await Promise.all([server.resume(), one.readBack.run()])
  }
  await eventually(
    'the spool is empty',
    async () => {
      await one.readBack.run()
      return one.pings.isEmpty()
    },
    { retryErrors: false },
  )
  // Also what the server still has to carry out.
  const busy = `select from pg_stat_activity where application_name = 'heartbeat-operator spooling' and state <> 'idle'`
  await eventually('no statement of ours runs', async () => (await database.query(busy)).rowCount === 0)
  const { rows } = await database.query<{ key: number; text: string }>(
    `select p.check_key as key, convert_from(b.body, 'UTF8') as text from pings p
      join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id order by p.check_key, p.id`,
  )
  expect(rows.map(({ text }) => text).sort()).toEqual([...sent].sort())
  for (const { key } of checks) {
    const numbers = rows.filter((row) => row.key === key).map(({ text }) => Number(text.slice(5)))
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
  }
  expect(one.dropped).toEqual([])
})
