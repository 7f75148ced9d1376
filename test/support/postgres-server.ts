import { execFile } from 'node:child_process'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded-postgres/start.ts'
import { makeTempFolder } from './temp-folder.ts'

/**
 * A PostgreSQL of one test, for faults that would disturb the others. It keeps fsync on, as in service: what is tested
 * here is what survives.
 */
export interface PostgresServer extends AsyncDisposable {
  /** The database `heartbeat` for the role that owns it. */
  readonly url: string
  /** The database `postgres` for the superuser. */
  readonly adminUrl: string
  readonly port: number
  readonly pid: number
  /** Holds every process of the server (SIGSTOP): connections stay open, nothing answers. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** kill -9 of every process of the server; resolves when it is gone. Committed data stays. */
  kill(): Promise<void>
  /** Starts it again after `kill` or `stop`: same port, same urls, same data. */
  start(): Promise<void>
  /** Stops it in order. */
  stop(): Promise<void>
  /** Ends it and removes its data, unless `dataDir` was given. */
  remove(): Promise<void>
}

/** `dataDir` default: a temporary folder, gone after `remove`. `settings` go to the server's command line. `port` default: a free one. */
export async function startPostgresServer(
  options: { settings?: Record<string, string>; dataDir?: string; port?: number } = {},
): Promise<PostgresServer> {
  const folder = options.dataDir === undefined ? await makeTempFolder() : null
  const dataDir = options.dataDir ?? join(folder?.path ?? '', 'data')
  if (folder !== null) await copyTemplate(dataDir)
  const startOn = (port?: number) =>
    startEmbeddedPostgres({ dataDir, port, settings: options.settings, note: () => {} })
  let server: EmbeddedPostgres
  try {
    server = await startOn(options.port)
  } catch (error) {
    await folder?.remove()
    throw error
  }
  const { url, adminUrl, port } = server
  let paused: number[] = []

  const resume = async () => {
    signalAll(paused, 'SIGCONT')
    paused = []
  }
  const stop = async () => {
    await resume()
    await server.stop()
  }
  const remove = async () => {
    await stop()
    await folder?.remove()
  }
  return {
    url,
    adminUrl,
    port,
    get pid() {
      return server.pid
    },
    async pause() {
      // The postmaster is held first, so that it starts no child that would be missed.
      process.kill(server.pid, 'SIGSTOP')
      paused = await listServerProcesses(server.pid)
      signalAll(paused, 'SIGSTOP')
    },
    resume,
    async kill() {
      process.kill(server.pid, 'SIGSTOP')
      signalAll(await listServerProcesses(server.pid), 'SIGKILL')
      paused = []
      await server.exited
      await server.stop()
    },
    async start() {
      await server.stop()
      server = await startOn(port)
    },
    stop,
    remove,
    [Symbol.asyncDispose]: remove,
  }
}

/** Makes a database that nothing was stored in yet, and stops it: what `copyTemplate` then copies. */
export async function makeTemplate(path: string): Promise<void> {
  const server = await startEmbeddedPostgres({ dataDir: path, settings: { fsync: 'off' }, note: () => {} })
  await server.stop()
  // Each copy chooses a port of its own.
  await rm(join(path, 'postgres', 'postmaster.opts'))
  process.env.TEST_POSTGRES_TEMPLATE = path
}

/** Setting a database up takes a second, copying one a moment. Without a template `dataDir` stays empty. */
export async function copyTemplate(dataDir: string): Promise<void> {
  const template = process.env.TEST_POSTGRES_TEMPLATE
  if (template !== undefined) await promisify(execFile)('cp', ['-a', template, dataDir])
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has just ended
    }
  }
}

/** The postmaster, first, and its children; PostgreSQL has no grandchildren. */
export async function listServerProcesses(postmaster: number): Promise<number[]> {
  const children = (await listProcesses()).filter(({ parent }) => parent === postmaster).map(({ pid }) => pid)
  return [postmaster, ...children]
}

/** Every process of the machine with its command line. */
export async function listProcesses(): Promise<{ pid: number; parent: number; command: string }[]> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,command='])
    return [...stdout.matchAll(/^ *(\d+) +(\d+) +(.*)$/gm)].map(([, pid, parent, command = '']) => ({
      pid: Number(pid),
      parent: Number(parent),
      command,
    }))
  }
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0)
  const found = await Promise.all(pids.map(readProcess))
  return found.filter((one) => one !== null)
}

async function readProcess(pid: number) {
  try {
    const [stat, command] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ])
    const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(parent), command: command.replaceAll('\0', ' ') }
  } catch {
    return null // it has just ended
  }
}
