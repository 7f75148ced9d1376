import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readPidFile } from '../../src/embedded-postgres/postmaster.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { MIGRATION_LOCK } from '../../src/store/postgres/locks.ts'
import { createApiClient } from '../support/api-client.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import {
  API_KEY,
  assertPackagesAreInstalled,
  databaseEnvironment,
  listAlive,
  listTree,
  PROJECT_ID,
  type ServiceProcess,
  spawnService,
  startService,
  stopAll,
  withoutAudit,
} from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'

/** Signals and faults at bad moments of a service that runs its own PostgreSQL. */

const ENDED_WELL = { status: 0, signal: null }
/** Several start at the same time. */
const START_MS = 60_000

let count = 0
const newDataDir = () => join(temp.path, `data-${count++}`)

const temp = use(makeTempFolder)

describe('a signal during the start', () => {
  const moments: [string, (dataDir: string, service: ServiceProcess) => Promise<unknown>][] = [
    ['while the database is made', (_dataDir, service) => service.waitFor(/setting up/)],
    [
      'while initdb works',
      (dataDir) =>
        eventually('the set-up has its folder', () =>
          readdir(dataDir).then(
            (names) => names.find((name) => name.startsWith('postgres-new-')) ?? null,
            () => null,
          ),
        ),
    ],
    [
      'while the server starts',
      (dataDir) =>
        eventually(
          'PostgreSQL has its postmaster.pid',
          () => readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').catch(() => null),
          START_MS,
        ),
    ],
    [
      'while the schema is made',
      (dataDir) =>
        eventually(
          'postmaster.pid says ready',
          async () => (await readPidFile(join(dataDir, 'postgres'))).status === 'ready',
          START_MS,
        ),
    ],
  ]

  it.concurrent.each(moments)('%s ends everything, and the next start finds nothing wrong', async (_name, moment) => {
    const dataDir = newDataDir()
    await using service = spawnService({ DATA_DIR: dataDir })
    await moment(dataDir, service)
    // Held while its processes are listed, which takes a busy machine long enough for the start to end.
    service.signal('SIGSTOP')
    const { exit, alive } = await stopAll(service, 'SIGTERM', () => {
      service.signal('SIGTERM')
      service.signal('SIGCONT')
    })
    const stderr = withoutAudit(service.stderr)
    expect({ exit, alive, stderr }).toEqual({ exit: ENDED_WELL, alive: [], stderr: '' })
    expect(service.stdout).not.toContain('ready')
    await using next = await startService({ DATA_DIR: dataDir })
    expect((await next.stop()).status).toBe(0)
  })

  it.concurrent('while another replica migrates does not wait for it', async () => {
    await using server = await startPostgresServer({ settings: { fsync: 'off' } })
    const other = createDatabase({ url: server.url, name: 'other', connections: 1, patient: true })
    await other.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
      await using service = spawnService(databaseEnvironment(server.url))
      await eventually(
        'a session waits for the advisory lock',
        async () => (await tx.query(`select from pg_locks where locktype = 'advisory' and not granted`)).rowCount > 0,
      )
      expect(await service.stop()).toEqual(ENDED_WELL)
    })
    await other.close()
  })

  it.concurrent('while the database hangs does not wait for it', async () => {
    await using server = await startPostgresServer({ settings: { fsync: 'off' } })
    await server.pause()
    await using service = spawnService(databaseEnvironment(server.url))
    await service.waitFor(/^waiting for the database/m)
    expect(await service.stop()).toEqual(ENDED_WELL)
    await server.resume()
  })
})

describe('kill -9', () => {
  it.concurrent('of the PostgreSQL of our own ends the service with 2, and no acknowledged ping is lost', async () => {
    const dataDir = newDataDir()
    const environment = { DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' }
    await using service = await startService(environment)
    const client = await createApiClient(service.api, API_KEY)
    const { body: check } = await client.post('/checks', { project_id: PROJECT_ID, name: 'Backup' })
    expect((await sendPing(service.ping, aPing(check.public_id))).status).toBe(200)
    const tree = await listTree(service.pid)
    const { pid } = await readPidFile(join(dataDir, 'postgres'))
    process.kill(pid, 'SIGKILL')
    expect(await service.end()).toEqual({ status: 2, signal: null })
    expect(service.stderr).toContain(
      `the embedded PostgreSQL in ${dataDir} ended without being stopped (signal SIGKILL): start again; its log is `,
    )
    await eventually('no process of the service is left', async () => (await listAlive(tree)).length === 0)
    await using next = await startService(environment)
    const again = await createApiClient(next.api, API_KEY)
    expect((await again.get(`/checks/${check.id}/pings`)).body.pings).toHaveLength(1)
    expect(await stopAll(next, 'SIGTERM')).toMatchObject({ exit: ENDED_WELL, alive: [] })
  })
})

describe('npm start', () => {
  beforeAll(assertPackagesAreInstalled)

  it.concurrent('passes SIGTERM on, which ends everything with 0', async () => {
    await using service = await startService(
      { DATA_DIR: newDataDir() },
      { command: 'npm', args: ['start'], isGroup: true },
    )
    const { exit, started, alive } = await stopAll(service, 'SIGTERM', () => process.kill(service.pid, 'SIGTERM'))
    expect({ exit, alive }).toEqual({ exit: ENDED_WELL, alive: [] })
    expect(started).toBeGreaterThan(6)
  })
})
