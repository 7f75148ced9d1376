import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDataDirs, failureOf, query, start, startEmbeddedChild } from '../support/embedded.ts'
import { listProcesses, startPostgresServer } from '../support/postgres-server.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

/** kill -9 of our process and of the server, during the first start and in service. */

let temp: TempFolder
let dirs: ReturnType<typeof createDataDirs>

beforeAll(async () => {
  temp = await makeTempFolder()
  dirs = createDataDirs(temp.path)
})
afterAll(() => temp.remove())

const isAlive = async (pid: number) => (await listProcesses()).some((one) => one.pid === pid && one.command !== '')

test.each(['in its place', 'moved'])(
  'after a kill -9 of the service the next start stops its server, and has every committed row: data folder %s',
  async (place) => {
    const firstDir = await dirs.newDatabase()
    await using child = startEmbeddedChild(firstDir)
    const { url, serverPid } = await child.waitFor((line) => line.ready)
    await query(url, `create table kept as select 'here' as word`)
    await child.kill()
    expect(await isAlive(serverPid)).toBe(true)
    const dataDir = place === 'moved' ? dirs.newFolder() : firstDir
    if (place === 'moved') await rename(firstDir, dataDir)
    const notes: string[] = []
    await using server = await start(dataDir, { note: (line) => notes.push(line) })
    expect(notes).toEqual([
      `stopping the PostgreSQL (process ${serverPid}) that an earlier run left behind in ${dataDir}`,
    ])
    expect(await isAlive(serverPid)).toBe(false)
    expect(await query(server.url, 'select * from kept')).toEqual([{ word: 'here' }])
  },
)

test('after a kill -9 during the first start the next one works', async () => {
  const dataDir = dirs.newFolder()
  await using child = startEmbeddedChild(dataDir)
  const setsUp = async () => (await readdir(dataDir)).find((entry) => entry.startsWith('postgres-new-')) ?? null
  const staging = join(dataDir, await until(() => setsUp().catch(() => null)))
  // The moment when the folder holds most of a cluster and initdb still writes.
  await until(() => readdir(join(staging, 'data', 'base', '1')).catch(() => null))
  await child.kill()
  expect(await readdir(dataDir)).toContain('postgres.lock')
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await setsUp()).toBeNull()
})

test('a pid that belongs to another process now is neither waited for nor signalled', async () => {
  const dataDir = await dirs.newDatabase()
  // The likeliest stranger to be mistaken: a server of the same account, of another data folder.
  await using stranger = await startPostgresServer()
  const lines = [stranger.pid, join(dataDir, 'postgres'), 1, 5432, '', '127.0.0.1', '1 1', 'ready', '']
  await writeFile(join(dataDir, 'postgres', 'postmaster.pid'), lines.join('\n'))
  await writeFile(join(dataDir, 'postgres.lock'), `${process.pid} an-earlier-boot/4711\n`)
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await query(stranger.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a killed server comes back on the same url with every committed row', async () => {
  const notes: string[] = []
  const dataDir = await dirs.newDatabase()
  await using server = await start(dataDir, { note: (line) => notes.push(line) })
  await query(server.url, `create table kept as select 'here' as word`)
  const { url, pid } = server
  notes.length = 0
  process.kill(pid, 'SIGKILL')
  await until(() => notes.some((line) => line.includes('is back')))
  expect(server.url).toBe(url)
  expect(server.pid).not.toBe(pid)
  expect(await query(url, 'select * from kept')).toEqual([{ word: 'here' }])
  expect(notes).toEqual([
    `the embedded PostgreSQL in ${dataDir} ended without being stopped (signal SIGKILL): starting it again on port ${server.port}`,
    `the embedded PostgreSQL in ${dataDir} is back`,
  ])
})

test('a stop ends a server that is being restarted', async () => {
  const dataDir = await dirs.newDatabase()
  const cluster = join(dataDir, 'postgres')
  const listServers = async () => (await listProcesses()).filter(({ command }) => command.includes(`-D ${cluster}`))
  const notes: string[] = []
  const isAnnounced = () => notes.length > 0
  const isUnderWay = async () => isAnnounced() && (await listServers()).length > 0
  for (const moment of [isAnnounced, isUnderWay]) {
    notes.length = 0
    const server = await start(dataDir, { note: (line) => notes.push(line) })
    process.kill(server.pid, 'SIGKILL')
    await until(moment)
    await server.stop()
    expect(await server.exited).toBeNull()
    expect(await listServers()).toEqual([])
  }
})

test('without restart it reports how the server ended', async () => {
  const dataDir = await dirs.newDatabase()
  await using server = await start(dataDir, { restart: false })
  process.kill(server.pid, 'SIGKILL')
  expect(await server.exited).toMatchObject({ reason: 'failed', message: expect.stringContaining('signal SIGKILL') })
})

test('a folder that another process has taken over is left alone', async () => {
  const dataDir = await dirs.newDatabase()
  await using server = await start(dataDir)
  await rm(join(dataDir, 'postgres.lock'))
  await using other = startEmbeddedChild(dataDir)
  // It takes our server for a left-over and stops it; ours must not do the same to its server in turn.
  const { url } = await other.waitFor((line) => line.ready)
  expect(await server.exited).toMatchObject({ reason: 'in-use' })
  await server.stop()
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await readFile(join(dataDir, 'postgres.lock'), 'utf8')).toMatch(new RegExp(`^${other.pid} `))
  expect((await failureOf(dataDir)).reason).toBe('in-use')
})

test('Ctrl-C in the terminal reaches the service, but not its server', async () => {
  await using child = startEmbeddedChild(await dirs.newDatabase())
  const { url } = await child.waitFor((line) => line.ready)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  process.kill(-child.pid, 'SIGINT')
  await child.waitFor((line) => line.signal)
  // A server that got the signal too would end this within milliseconds.
  await client.query('select pg_sleep(0.5)')
  await client.end()
})

test('a stop with connected clients takes a bounded time', async () => {
  const server = await start(await dirs.newDatabase())
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const errors: string[] = []
  client.on('error', (error) => errors.push(String(error)))
  const waiting = client.query('select pg_sleep(600)').catch((error) => errors.push(String(error)))
  await server.stop()
  await waiting
  expect(errors.join()).toMatch(/terminating connection due to administrator command/)
})
