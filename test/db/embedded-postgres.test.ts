import { once } from 'node:events'
import { appendFile, lstat, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/start.ts'
import { createDataDirs, failureOf, query, start, startEmbeddedChild } from '../support/embedded.ts'
import { listProcesses } from '../support/postgres-server.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'

const isRoot = process.geteuid?.() === 0
let dirs: ReturnType<typeof createDataDirs>

const temp = use(makeTempFolder)
beforeAll(async () => {
  dirs = createDataDirs(temp.path)
})

describe('the first start', () => {
  let server: EmbeddedPostgres
  let dataDir: string
  let password: string
  const notes: string[] = []
  const commands = new Set<string>()

  beforeAll(async () => {
    dataDir = dirs.newFolder()
    let starting = true
    const watching = (async () => {
      while (starting) for (const { command } of await listProcesses()) commands.add(command)
    })()
    server = await start(dataDir, { note: (line) => notes.push(line) }).finally(() => {
      starting = false
    })
    await watching
    password = new URL(server.url).password
  })
  afterAll(() => server.stop())

  it('makes a UTF-8 database in UTC with durable commits', async () => {
    const [row] = await query(
      server.url,
      `select current_database() as database, current_setting('server_encoding') as encoding, lower('ÄÖ') as lower,
              current_setting('timezone') as zone, current_setting('jit') as jit, current_setting('fsync') as fsync,
              current_setting('synchronous_commit') as commits, current_setting('full_page_writes') as pages`,
    )
    const settings = { zone: 'UTC', jit: 'off', fsync: 'on', commits: 'on', pages: 'on' }
    expect(row).toEqual({ database: 'heartbeat', encoding: 'UTF8', lower: 'äö', ...settings })
  })

  it('makes a role that owns the database and is not a superuser', async () => {
    const [row] = await query(
      server.url,
      `select rolsuper, pg_get_userbyid(datdba) = current_user as owner from pg_roles, pg_database
        where rolname = current_user and datname = current_database()`,
    )
    expect(row).toEqual({ rolsuper: false, owner: true })
    await query(server.url, 'create table mine (); drop table mine')
  })

  it('listens on 127.0.0.1 only, with a password', async () => {
    const [row] = await query(
      server.adminUrl,
      `select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets,
              (select array_agg(distinct auth_method) from pg_hba_file_rules) as methods`,
    )
    expect(row).toEqual({ addresses: '127.0.0.1', sockets: '', methods: ['scram-sha-256'] })
    await expect(query(server.url.replace(password, 'wrong'), 'select 1')).rejects.toThrow(/password authentication/)
  })

  it('notes one line', () => {
    expect(notes).toEqual([`setting up the embedded PostgreSQL 18 in ${dataDir} (first start)`])
  })

  it('shows the password in no argument list, and gives other accounts no file', async () => {
    expect([...commands].filter((command) => command.includes('initdb'))).not.toEqual([])
    expect([...commands].filter((command) => command.includes(password))).toEqual([])
    const open: string[] = []
    for (const entry of await readdir(dataDir, { recursive: true })) {
      const { mode } = await lstat(join(dataDir, entry))
      if ((mode & 0o077) !== 0) open.push(`${entry} ${(mode & 0o777).toString(8)}`)
    }
    expect(open).toEqual([])
    expect((await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim()).toBe(password)
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).not.toContain(password)
  })

  it('runs under an unprivileged account', async () => {
    expect((await stat(join(dataDir, 'postgres'))).uid).not.toBe(0)
  })
})

it('a second start keeps the data and the port', async () => {
  const dataDir = dirs.newFolder()
  const first = await start(dataDir)
  await query(first.url, `create table kept as select 'here' as word`)
  await first.stop()
  await first.stop()
  const notes: string[] = []
  await using second = await start(dataDir, { note: (line) => notes.push(line) })
  expect(second.url).toBe(first.url)
  expect(await query(second.url, 'select * from kept')).toEqual([{ word: 'here' }])
  expect(notes).toEqual([])
})

it('takes another port when its last one is in use, and fails when a given one is', async () => {
  const dataDir = await dirs.newDatabase()
  const first = await start(dataDir)
  await first.stop()
  const occupant = createServer().listen(first.port, '127.0.0.1')
  await once(occupant, 'listening')
  try {
    const failure = await failureOf(dataDir, { port: first.port })
    expect(failure).toMatchObject({ reason: 'port-taken', message: expect.stringContaining(`127.0.0.1:${first.port}`) })
    await using second = await start(dataDir)
    expect(second.port).not.toBe(first.port)
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }])
  } finally {
    occupant.close()
  }
})

it('rejects a folder that another live process uses, and names the process', async () => {
  const dataDir = await dirs.newDatabase()
  await using holder = startEmbeddedChild(dataDir)
  const { url } = await holder.waitFor((line) => line.ready)
  const failure = await failureOf(dataDir)
  expect(failure).toMatchObject({ reason: 'in-use', message: expect.stringContaining(`process ${holder.pid}:`) })
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('rejects a second use within one process', async () => {
  const dataDir = await dirs.newDatabase()
  await using _first = await start(dataDir)
  expect((await failureOf(dataDir)).message).toContain(`process ${process.pid}:`)
})

it('rejects a database of another major version', async () => {
  const dataDir = await dirs.newDatabase()
  await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '16\n')
  const failure = await failureOf(dataDir)
  expect(failure).toMatchObject({
    reason: 'wrong-version',
    message: expect.stringMatching(/PostgreSQL 16 .*PostgreSQL 18/),
  })
})

it('rejects a folder that holds something else, and changes nothing in it', async () => {
  const dataDir = dirs.newFolder()
  await mkdir(join(dataDir, 'postgres'), { recursive: true })
  await writeFile(join(dataDir, 'postgres', 'thesis.txt'), 'chapter 1')
  expect((await failureOf(dataDir)).reason).toBe('not-ours')
  expect(await readdir(dataDir, { recursive: true })).toEqual(['postgres', join('postgres', 'thesis.txt')])
})

it('rejects a data folder that is a file, or below one', async () => {
  const file = dirs.newFolder()
  await writeFile(file, '')
  expect((await failureOf(file)).message).toContain('is not a folder')
  expect((await failureOf(join(file, 'data'))).message).toContain('is not a folder')
})

it('rejects a folder that it cannot write', async () => {
  // Modes do not hold root back; sysfs does.
  const dataDir = isRoot ? '/sys/kernel' : dirs.newFolder()
  if (!isRoot) await mkdir(dataDir, { mode: 0o555 })
  expect((await failureOf(dataDir)).message).toMatch(/is not writable/)
})

it('names the file of the password when it is missing or wrong', async () => {
  const dataDir = await dirs.newDatabase()
  const file = join(dataDir, 'postgres-password')
  const password = await readFile(file, 'utf8')
  for (const [wrong, fault] of [
    ['wrong\n', `the password in ${file} is not the one of the database beside it: restore that file, or set DATA_DIR`],
    ['', `${file} is missing, the password of the database beside it: restore that file, or set DATA_DIR`],
  ] as const) {
    await writeFile(file, wrong)
    expect(await failureOf(dataDir)).toMatchObject({ reason: 'not-ours', message: expect.stringContaining(fault) })
  }
  await writeFile(file, password)
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('quotes the server when it does not start, and names its log', async () => {
  const dataDir = await dirs.newDatabase()
  await appendFile(join(dataDir, 'postgres', 'postgresql.conf'), 'nonsense = 1\n')
  const failure = await failureOf(dataDir)
  expect(failure.message).toMatch(/: FATAL: +configuration file .* contains errors; its log is .*postgres\.log$/)
  expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('nonsense')
})

it('truncates a long log', async () => {
  const dataDir = await dirs.newDatabase()
  await writeFile(join(dataDir, 'postgres.log'), 'x'.repeat(5 * 1024 * 1024))
  await using _server = await start(dataDir)
  expect((await stat(join(dataDir, 'postgres.log'))).size).toBeLessThan(10_000)
})

it('works in a folder with an awkward name', async () => {
  const dataDir = `${dirs.newFolder()} o'clock "ümläut" $HOME`
  await using server = await start(dataDir)
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
})

it('an aborted start ends at once, and the next one works', async () => {
  const dataDir = dirs.newFolder()
  const calling = new AbortController()
  const starting = start(dataDir, { signal: calling.signal })
  await eventually('the set-up has its folder', async () => (await stagings(dataDir)).length > 0)
  calling.abort(new Error('enough'))
  await expect(starting).rejects.toThrow('enough')
  expect(await readdir(dataDir)).toEqual(['postgres-password'])
  await (await start(dataDir)).stop()
})

const stagings = async (dataDir: string) =>
  (await readdir(dataDir).catch(() => [])).filter((entry) => entry.startsWith('postgres-new-'))
