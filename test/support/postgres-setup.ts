import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { copyTemplate, makeTemplate, startPostgresServer } from './postgres-server.ts'
import { makeTempFolder } from './temp-folder.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Superuser's address of the run's PostgreSQL; tests make their databases there. */
    postgresUrl: string
  }
}

/**
 * Every project of the run calls this once, in one process but with a module of its own, so the server that they share is
 * kept beside the modules.
 */
type Shared = { users: number; starting: Promise<AsyncDisposable & { readonly adminUrl: string }> }
const KEY = Symbol.for('heartbeat-operator.test-postgres')
const shelf = globalThis as { [KEY]?: Shared }

/**
 * Nothing of these tests has to survive the machine, so the server never waits for the disk. Tests of what survives start
 * their own with `startPostgresServer`. Connections: each worker has a few pools.
 */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  max_connections: '300',
}

/** One PostgreSQL for the whole run: that of TEST_DATABASE_URL (a superuser's address) or one of our own. */
export default async function setup(project: TestProject) {
  const given = process.env.TEST_DATABASE_URL
  if (given) {
    project.provide('postgresUrl', given)
    return
  }
  shelf[KEY] ??= { users: 0, starting: start() }
  const shared = shelf[KEY]
  shared.users += 1
  project.provide('postgresUrl', (await shared.starting).adminUrl)
  return async () => {
    shared.users -= 1
    if (shared.users > 0) return
    delete shelf[KEY]
    await (await shared.starting)[Symbol.asyncDispose]()
  }
}

/** Linux: a folder in memory. The databases of a run take a part of the room. */
const MEMORY = '/dev/shm'
const ROOM_BYTES = 2 ** 31

/** Each test file copies a database and drops it: on a disk, a file takes a quarter longer. */
async function findParent(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize >= ROOM_BYTES ? MEMORY : tmpdir()
}

/** The server, and beside it the database that tests copy for servers of their own. */
async function start() {
  await using stack = new AsyncDisposableStack()
  const { path } = stack.use(await makeTempFolder(await findParent()))
  await makeTemplate(join(path, 'template'))
  const dataDir = join(path, 'data')
  await copyTemplate(dataDir)
  const { adminUrl } = stack.use(await startPostgresServer({ dataDir, settings: SETTINGS }))
  const running = stack.move()
  return { adminUrl, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
