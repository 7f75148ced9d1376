import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import {
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../src/embedded-postgres/start.ts'
import { copyTemplate } from './postgres-server.ts'

/** What the tests of the embedded PostgreSQL share. */

type Options = Partial<EmbeddedPostgresOptions>

export const start = (dataDir: string, options: Options = {}) =>
  startEmbeddedPostgres({ dataDir, note: () => {}, ...options })

/** Gives new paths for data folders below `path`: without anything, or with a database that was stopped in order. */
export function createDataDirs(path: string) {
  let count = 0
  const newFolder = () => join(path, `data-${count++}`)
  return {
    newFolder,
    /** For tests that are not about the first start. */
    async newDatabase() {
      const dataDir = newFolder()
      await copyTemplate(dataDir)
      return dataDir
    },
  }
}

/** Starts where that must fail, and gives the error: one line that names the folder, as the caller prints it before exit 2. */
export async function failureOf(dataDir: string, options: Options = {}): Promise<EmbeddedPostgresError> {
  const error = await start(dataDir, options).then(
    (server) => server.stop(),
    (reason: unknown) => reason,
  )
  if (!(error instanceof EmbeddedPostgresError)) throw new Error('it did not fail as it should', { cause: error })
  if (error.message.includes('\n') || !error.message.includes(dataDir)) throw error
  return error
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/**
 * A process of its own that runs an embedded PostgreSQL, for tests that kill or signal the service itself. It leads a
 * process group, as a shell's foreground job does, and kills itself should the test die.
 */
const SCRIPT = `
  process.stdin.resume().once('end', () => process.kill(process.pid, 'SIGKILL'))
  process.on('SIGINT', () => console.log(JSON.stringify({ signal: 'SIGINT' })))
  const { startEmbeddedPostgres } = await import(process.argv[1])
  const note = (line) => console.log(JSON.stringify({ note: line }))
  try {
    const server = await startEmbeddedPostgres({ dataDir: process.argv[2], note })
    console.log(JSON.stringify({ ready: { url: server.url, serverPid: server.pid } }))
  } catch (error) {
    console.log(JSON.stringify({ failed: error.reason + ': ' + error.message }))
  }
`

type Line = { note?: string; signal?: string; failed?: string; ready?: { url: string; serverPid: number } }

export type EmbeddedChild = AsyncDisposable & {
  pid: number
  /** The next line it prints that `pick` finds something in; fails when it ends instead. */
  waitFor<T>(pick: (line: Line) => T | undefined): Promise<T>
  /** kill -9; resolves when it has ended. */
  kill(): Promise<void>
}

export function startEmbeddedChild(dataDir: string): EmbeddedChild {
  const source = new URL('../../src/embedded-postgres/start.ts', import.meta.url).href
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, source, dataDir], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return {
    pid: child.pid ?? 0,
    async waitFor(pick) {
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error('the child process ended')
        const found = pick(JSON.parse(value) as Line)
        if (found !== undefined) return found
      }
    },
    kill,
    [Symbol.asyncDispose]: kill,
  }
}
