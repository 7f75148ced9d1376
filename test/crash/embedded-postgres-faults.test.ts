import { once } from 'node:events'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { createDataDirs, failureOf, query, start, startEmbeddedChild } from '../support/embedded.ts'
import { listProcesses, startPostgresServer } from '../support/postgres-server.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'

/** kill -9 of our process and of the server, during the first start and in service. */

let dirs: ReturnType<typeof createDataDirs>

const temp = use(makeTempFolder)
beforeAll(async () => {
  dirs = createDataDirs(temp.path)
})

const isAlive = async (pid: number) => (await listProcesses()).some((one) => one.pid === pid && one.command !== '')

it('after a kill -9 of the service the next start uses its server, and stops it', async () => {
  const dataDir = await dirs.newDatabase()
  await using child = startEmbeddedChild(dataDir)
  const { url, serverPid } = await child.waitFor((line) => line.ready)
  await query(url, `create table kept as select 'here' as word`)
  await child.kill()
  expect(await isAlive(serverPid)).toBe(true)
  const notes: string[] = []
  const server = await start(dataDir, { note: (line) => notes.push(line) })
  expect(notes).toEqual([`using the PostgreSQL (process ${serverPid}) that an earlier run left behind in ${dataDir}`])
  expect(server).toMatchObject({ url, pid: serverPid })
  expect(await query(server.url, 'select * from kept')).toEqual([{ word: 'here' }])
  expect((await failureOf(dataDir)).message).toContain(`process ${process.pid}:`)
  await server.stop()
  expect(await server.exited).toBeNull()
  expect(await isAlive(serverPid)).toBe(false)
})

it('reports how a server ended that an earlier run had left behind', async () => {
  const dataDir = await dirs.newDatabase()
  await using child = startEmbeddedChild(dataDir)
  const { serverPid } = await child.waitFor((line) => line.ready)
  await child.kill()
  await using server = await start(dataDir)
  process.kill(serverPid, 'SIGKILL')
  expect(await server.exited).toMatchObject({ reason: 'failed', message: expect.stringContaining('connection closed') })
})

it('of several starts at the same time one owns the server, and the others do not disturb it', async () => {
  const dataDir = dirs.newFolder()
  const starts = Array.from({ length: 3 }, () => startEmbeddedChild(dataDir))
  await using stack = new AsyncDisposableStack()
  for (const child of starts) stack.use(child)
  const outcomes = await Promise.allSettled(starts.map((child) => child.waitFor((line) => line.ready ?? line.failed)))
  const of = (key: string) =>
    outcomes.flatMap((one) => (one.status === 'fulfilled' && typeof one.value === key ? [one.value] : []))
  expect(of('string')).toEqual(Array(2).fill(expect.stringMatching(/in-use: data folder .* is in use by process \d+:/)))
  const [ready] = of('object') as { url: string }[]
  expect(await query(ready!.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('after a kill -9 during the first start the next one works', async () => {
  const dataDir = dirs.newFolder()
  await using child = startEmbeddedChild(dataDir)
  const setsUp = async () => (await readdir(dataDir)).find((entry) => entry.startsWith('postgres-new-')) ?? null
  const staging = join(dataDir, await eventually('initdb has its folder', () => setsUp().catch(() => null)))
  // The moment when the folder holds most of a cluster and initdb still writes.
  await eventually('initdb has made most of a cluster', () =>
    readdir(join(staging, 'data', 'base', '1')).catch(() => null),
  )
  await child.kill()
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(await setsUp()).toBeNull()
})

it('a pid file that names a server of another folder leads to no use of it', async () => {
  const dataDir = await dirs.newDatabase()
  // The likeliest stranger to be mistaken: a server of the same account and password, of another data folder.
  await using stranger = await startPostgresServer()
  const file = join(dataDir, 'postgres', 'postmaster.pid')
  const lines = [stranger.pid, join(dataDir, 'postgres'), 1, stranger.port, '', '127.0.0.1', '1 1', 'ready', '']
  await writeFile(file, lines.join('\n'))
  const { reason, message } = await failureOf(dataDir)
  expect({ reason, message }).toEqual({
    reason: 'in-use',
    message:
      `data folder ${dataDir} is in use by process ${stranger.pid}: stop it (when it is no PostgreSQL, ` +
      `remove ${file}), or set DATA_DIR to another folder`,
  })
  expect(await query(stranger.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await rm(file)
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('a pid file of a server that is gone does not hold a start up', async () => {
  const dataDir = await dirs.newDatabase()
  const first = await start(dataDir)
  process.kill(first.pid, 'SIGKILL')
  expect(await first.exited).toMatchObject({ reason: 'failed', message: expect.stringContaining('signal SIGKILL') })
  await first.stop()
  await using second = await start(dataDir)
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('what listens on the port of a server that is gone is not asked, and gets no password', async () => {
  const dataDir = await dirs.newDatabase()
  const first = await start(dataDir)
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  await first.stop()
  let connections = 0
  await using listener = createServer((socket) => {
    connections += 1
    // As a server does that wants the password itself.
    socket.on('error', () => {}).end(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
  })
  await once(listener.listen(first.port, '127.0.0.1'), 'listening')
  await using second = await start(dataDir)
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
  expect([connections, second.port === first.port]).toEqual([0, false])
}, 30_000)

it('Ctrl-C in the terminal reaches the service, but not its server', async () => {
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

it('a stop with connected clients takes a bounded time', async () => {
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
