import { execFile } from 'node:child_process'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isUuid } from '../../src/domain/ids.ts'
import { choosePort } from '../../src/embedded-postgres/port.ts'
import { readPidFile } from '../../src/embedded-postgres/postmaster.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { MIGRATION_LOCK } from '../../src/store/postgres/locks.ts'
import { createApiClient } from '../support/api-client.ts'
import { poll } from '../support/embedded.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { aPing, ask, createAgent, findMissing, type SentPing, sendPing } from '../support/sent-pings.ts'
import {
  assertPackagesAreInstalled,
  databaseEnvironment,
  listAlive,
  listTree,
  type Program,
  type ServiceProcess,
  spawnService,
  startService,
} from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'

const run = promisify(execFile)
const ENDED_WELL = { status: 0, signal: null }

let temp: TempFolder
let count = 0
const newDataDir = () => join(temp.path, `data-${count++}`)

beforeAll(async () => {
  temp = await makeTempFolder()
})
afterAll(() => temp.remove())

/** Everything that the service started, the server of its own with all its children among it, must end with it. */
async function stopAll(service: ServiceProcess, signal: NodeJS.Signals, send?: () => void) {
  const tree = await listTree(service.pid)
  send?.()
  const exit = send === undefined ? await service.stop(signal) : await service.end()
  return { exit, started: tree.length, alive: await listAlive(tree) }
}

/** The one value after a word of what the first start prints. */
function printed(stdout: string, word: string): string {
  return new RegExp(`^ +${word} +(\\S.*)$`, 'm').exec(stdout)?.[1] ?? ''
}

describe('the first start', () => {
  it('prints all that is needed to go on, and the second keeps everything and tells no secret again', async () => {
    const dataDir = newDataDir()
    await using first = await startService({ DATA_DIR: dataDir })
    const project = printed(first.stdout, 'project')
    const key = printed(first.stdout, 'API key')
    const [email = '', password = ''] = printed(first.stdout, 'log-in').split(' ')
    expect(printed(first.stdout, 'ping')).toMatch(`${first.ping}/ping/`)
    expect(printed(first.stdout, 'api')).toMatch(first.api)
    expect(printed(first.stdout, 'ops')).toMatch(first.ops)
    expect(project).toSatisfy(isUuid)
    expect(key).toMatch(/^hbk_[0-9A-Za-z]+_[0-9A-Za-z]+$/)
    expect(first.stdout.trimEnd().split('\n').at(-1)).toBe(`ready ping=${first.ping} api=${first.api} ops=${first.ops}`)
    for (const address of [first.ping, first.api, first.ops]) expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+/)

    const client = await createApiClient(first.api, key)
    expect((await client.post('/auth/login', { email, password }, { key: null })).status).toBe(200)
    const line = /^ +(curl .*\/checks .*)$/m.exec(first.stdout)![1]!
    const check = JSON.parse((await run('bash', ['-c', line])).stdout)
    expect(check).toMatchObject({ project_id: project, status: 'new' })
    expect((await sendPing(first.ping, aPing(check.public_id))).status).toBe(200)

    const stopped = await stopAll(first, 'SIGTERM')
    expect(stopped).toEqual({ exit: ENDED_WELL, started: expect.any(Number), alive: [] })
    expect(stopped.started).toBeGreaterThan(5)

    await using second = await startService({ DATA_DIR: dataDir })
    expect(printed(second.stdout, 'project')).toBe(project)
    for (const secret of ['hbk_', password]) expect(second.stdout + second.stderr).not.toContain(secret)
    const again = await createApiClient(second.api, key)
    expect((await again.get(`/checks/${check.id}`)).body).toMatchObject({ public_id: check.public_id, status: 'up' })
    expect((await again.get(`/checks/${check.id}/pings`)).body.pings).toHaveLength(1)
    expect((await again.post('/auth/login', { email, password }, { key: null })).status).toBe(200)
    expect(await stopAll(second, 'SIGINT')).toEqual({ exit: ENDED_WELL, started: expect.any(Number), alive: [] })
    for (const log of [first.stderr, second.stderr]) expect(log).toBe('')
  })
})

describe('a signal during the start', () => {
  const moments: [string, (dataDir: string, service: ServiceProcess) => Promise<unknown>][] = [
    ['while the database is made', (_dataDir, service) => service.waitFor(/setting up/)],
    [
      'while initdb works',
      (dataDir) =>
        poll(() =>
          readdir(dataDir).then(
            (names) => names.find((name) => name.startsWith('postgres-new-')) ?? null,
            () => null,
          ),
        ),
    ],
    [
      'while the server starts',
      (dataDir) => poll(() => readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').catch(() => null)),
    ],
    [
      'while the schema is made',
      (dataDir) => poll(async () => (await readPidFile(join(dataDir, 'postgres'))).status === 'ready'),
    ],
  ]

  it.each(moments)('%s ends everything, and the next start finds nothing wrong', async (_name, moment) => {
    const dataDir = newDataDir()
    await using service = spawnService({ DATA_DIR: dataDir })
    await moment(dataDir, service)
    const { exit, alive } = await stopAll(service, 'SIGTERM')
    expect({ exit, alive, stderr: service.stderr }).toEqual({ exit: ENDED_WELL, alive: [], stderr: '' })
    expect(service.stdout).not.toContain('ready')
    await using next = await startService({ DATA_DIR: dataDir })
    expect((await next.stop()).status).toBe(0)
  })

  it('while another replica migrates does not wait for it', async () => {
    await using server = await startPostgresServer({ settings: { fsync: 'off' } })
    const other = createDatabase({ url: server.url, name: 'other', connections: 1, patient: true })
    await other.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
      await using service = spawnService(databaseEnvironment(server.url))
      await poll(
        async () => (await tx.query(`select from pg_locks where locktype = 'advisory' and not granted`)).rowCount > 0,
      )
      expect(await service.stop('SIGTERM', 5_000)).toEqual(ENDED_WELL)
    })
    await other.close()
  })

  it('while the database hangs does not wait for it', async () => {
    await using server = await startPostgresServer({ settings: { fsync: 'off' } })
    await server.pause()
    await using service = spawnService(databaseEnvironment(server.url))
    await service.waitFor(/^waiting for the database/m)
    expect(await service.stop('SIGTERM', 5_000)).toEqual(ENDED_WELL)
    await server.resume()
  })
})

describe('standard output without a reader (npm start | head -1)', () => {
  it('does not end the service: it starts, serves, and stops in order on a signal', async () => {
    const port = await choosePort('')
    await using service = spawnService({ DATA_DIR: newDataDir(), OPS_PORT: String(port) })
    await service.waitFor(/\n/)
    service.closeStdout()
    const isReady = () => ask(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status === 200)
    await poll(() => isReady().catch(() => false))
    const { exit, started, alive } = await stopAll(service, 'SIGTERM')
    expect({ exit, alive, stderr: service.stderr }).toEqual({ exit: ENDED_WELL, alive: [], stderr: '' })
    expect(started).toBeGreaterThan(5)
  })
})

describe('kill -9', () => {
  it('of the service loses no acknowledged ping, and the next start ends the server that was left behind', async () => {
    const dataDir = newDataDir()
    await using service = await startService({ DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' })
    const client = await createApiClient(service.api, databaseEnvironment('').BOOTSTRAP_API_KEY!)
    const { body: check } = await client.post('/checks', {
      project_id: databaseEnvironment('').BOOTSTRAP_PROJECT_ID,
      name: 'Backup',
    })
    const tree = await listTree(service.pid)
    const acknowledged: SentPing[] = []
    const agent = createAgent()
    let isOver = false
    const clients = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const { ping, status } = await sendPing(service.ping, aPing(check.public_id), agent)
        if (status === 200) acknowledged.push(ping)
      }
    })
    await poll(() => acknowledged.length >= 300)
    await service.kill()
    isOver = true
    await Promise.all(clients)
    const { pid } = await readPidFile(join(dataDir, 'postgres'))
    expect(await listAlive(tree)).toContain(pid)

    await using next = await startService({ DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' })
    expect(next.stdout).toContain(`stopping the PostgreSQL (process ${pid}) that an earlier run left behind`)
    expect(await listAlive(tree)).toEqual([])
    const password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim()
    const port = /"-p" "(\d+)"/.exec(await readFile(join(dataDir, 'postgres', 'postmaster.opts'), 'utf8'))![1]
    const database = createDatabase({
      url: `postgres://heartbeat:${password}@127.0.0.1:${port}/heartbeat`,
      name: 'test',
      connections: 1,
    })
    expect(await findMissing(database, acknowledged)).toEqual([])
    await database.close()
    expect((await next.stop()).status).toBe(0)
  })

  it('of the PostgreSQL of our own is an outage of a moment', async () => {
    const dataDir = newDataDir()
    await using service = await startService({ DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' })
    const client = await createApiClient(service.api, databaseEnvironment('').BOOTSTRAP_API_KEY!)
    const { body: check } = await client.post('/checks', {
      project_id: databaseEnvironment('').BOOTSTRAP_PROJECT_ID,
      name: 'Backup',
    })
    expect((await sendPing(service.ping, aPing(check.public_id))).status).toBe(200)
    const { pid } = await readPidFile(join(dataDir, 'postgres'))
    process.kill(pid, 'SIGKILL')
    await service.waitFor(/is back$/m)
    await poll(async () => (await sendPing(service.ping, aPing(check.public_id))).status === 200)
    expect(await stopAll(service, 'SIGTERM')).toMatchObject({ exit: ENDED_WELL, alive: [] })
  })
})

describe('a data folder that is removed under the service', () => {
  it('ends it with a line that says so, once its database is gone', async () => {
    const dataDir = newDataDir()
    await using service = await startService({ DATA_DIR: dataDir })
    const { pid } = await readPidFile(join(dataDir, 'postgres'))
    const tree = await listTree(service.pid)
    await rm(dataDir, { recursive: true })
    process.kill(pid, 'SIGKILL')
    expect(await service.end()).toEqual({ status: 2, signal: null })
    expect(service.stderr).toContain(`data folder ${dataDir} was removed`)
    await poll(async () => (await listAlive(tree)).length === 0)
  })
})

describe('npm start', () => {
  const NPM_START: Program = { command: 'npm', args: ['start'], isGroup: true }
  const signals: [string, NodeJS.Signals, (pid: number) => void][] = [
    ['SIGTERM to npm alone', 'SIGTERM', (pid) => process.kill(pid, 'SIGTERM')],
    ['SIGINT to its group, as Ctrl-C sends it,', 'SIGINT', (pid) => process.kill(-pid, 'SIGINT')],
  ]

  beforeAll(assertPackagesAreInstalled)

  it.each(signals)('serves, and %s ends everything with 0', async (_name, signal, send) => {
    await using service = await startService({ DATA_DIR: newDataDir() }, NPM_START)
    expect((await sendPing(service.ping, aPing('00000000-0000-4000-8000-000000000000'))).status).toBe(404)
    const { exit, started, alive } = await stopAll(service, signal, () => send(service.pid))
    expect({ exit, alive }).toEqual({ exit: ENDED_WELL, alive: [] })
    expect(started).toBeGreaterThan(6)
  })
})
