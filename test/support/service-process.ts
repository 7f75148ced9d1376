/** The real program as a child process, as a container or `npm start` runs it, with an environment that a test writes down. */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { identifyProcess } from '../../tools/programs/process-identity.ts'
import { listProcesses } from './postgres-server.ts'

export const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))

export interface Exit {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
}

/** `api` holds /api/v1. */
export interface Addresses {
  readonly ping: string
  readonly api: string
  readonly ops: string
}

export interface ServiceProcess extends AsyncDisposable {
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  /** The first match in what was printed so far, or will be; fails when the process ends, or after `withinMs`. */
  waitFor(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>
  /** Waits for the line that begins with `ready`. */
  ready(withinMs?: number): Promise<Addresses>
  signal(name: NodeJS.Signals): void
  /** Closes the reading end of its standard output, as `| head -1` does. */
  closeStdout(): void
  /** Waits for it to end by itself; fails when it does not in `withinMs`. */
  end(withinMs?: number): Promise<Exit>
  /** Sends the signal, by default SIGTERM, and waits for the end. */
  stop(signal?: NodeJS.Signals, withinMs?: number): Promise<Exit>
  /** kill -9. */
  kill(): Promise<void>
}

/** A replica that serves. */
export interface Service extends ServiceProcess, Addresses {}

export interface Program {
  readonly command: string
  readonly args: readonly string[]
  /** Leads a process group of its own, as a shell's foreground job does; kill and the guard then mean the group. */
  readonly isGroup?: boolean
}

const MAIN: Program = { command: process.execPath, args: ['src/main.ts'] }

/** Free ports, and nothing of the environment of the tests except what any process needs. */
const ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '/',
  // Half of a start is the compiler's work, which is the same each time.
  NODE_COMPILE_CACHE: `${CHECKOUT}node_modules/.cache/compiled`,
  PING_PORT: '0',
  API_PORT: '0',
  OPS_PORT: '0',
  // A spool has a folder of its own: the tests of it name one.
  SPOOL_MAX_BYTES: '0',
  // Never the cluster of the person who runs the tests.
  KUBERNETES: 'off',
}

const READY = /^ready ping=(\S+) api=(\S+) ops=(\S+)$/m
/** A start makes a database, perhaps beside other tests that do. */
const READY_MS = 60_000
const END_MS = 30_000

/**
 * Known to the tests, so that none has to be read from what is printed. Random, as SECRET_KEY below: the service warns of a secret that
 * can be guessed.
 */
export const API_KEY = 'hbk_process_e892de6360fdda6c5015880b6a90a9e7'
export const PROJECT_ID = randomUUID()
export const LOG_IN = { email: 'admin@example.com', password: 'correct horse battery' }

/** Throws unless the locked packages are installed: `npm start` would replace those that the tests run on. */
export function assertPackagesAreInstalled(): void {
  const modifiedAt = (path: string) => statSync(`${CHECKOUT}${path}`).mtimeMs
  if (modifiedAt('node_modules/.package-lock.json') <= modifiedAt('package-lock.json'))
    throw new Error('the installed packages are older than package-lock.json: run `npm ci` first')
}

/** For a replica on a PostgreSQL that the test runs. */
export function databaseEnvironment(url: string): Record<string, string> {
  return {
    DATABASE_URL: url,
    SECRET_KEY: 'bN6LvCUZNYEFJXyhnuAg7GNzP4uUaA9tNevm4Sv2IrA=',
    BOOTSTRAP_API_KEY: API_KEY,
    BOOTSTRAP_PROJECT_ID: PROJECT_ID,
    BOOTSTRAP_PASSWORD: LOG_IN.password,
  }
}

export async function startService(environment: Record<string, string>, program?: Program): Promise<Service> {
  const service = spawnService(environment, program)
  try {
    return Object.assign(service, await service.ready())
  } catch (error) {
    await service.kill()
    throw error
  }
}

/** Starts the program without waiting for anything. It does not outlive the tests, even when those are killed. */
export function spawnService(environment: Record<string, string>, program = MAIN): ServiceProcess {
  const isGroup = program.isGroup === true
  const child = spawn(program.command, [...program.args], {
    cwd: CHECKOUT,
    env: { ...ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: isGroup,
  })
  const pid = child.pid
  if (pid === undefined) throw new Error(`${program.command} cannot be started`)
  const removeGuard = guard(isGroup ? -pid : pid)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  let exit: Exit | undefined
  const exited = once(child, 'close').then(([status, signal]): Exit => {
    removeGuard()
    exit = { status, signal }
    return exit
  })
  const output = () => `it printed:\n${stdout.text()}${stderr.text()}`

  async function waitFor(pattern: RegExp, withinMs = READY_MS): Promise<RegExpExecArray> {
    for (const until = performance.now() + withinMs; ; ) {
      const found = pattern.exec(stdout.text())
      if (found !== null) return found
      if (exit !== undefined)
        throw new Error(`it ended (${exit.status ?? exit.signal}) without ${pattern}; ${output()}`)
      if (performance.now() > until) throw new Error(`still no ${pattern} after ${withinMs} ms; ${output()}`)
      await Promise.race([stdout.more(), exited, sleep(until - performance.now() + 1)])
    }
  }

  async function end(withinMs = END_MS): Promise<Exit> {
    const ended = await Promise.race([exited, sleep(withinMs)])
    if (ended === undefined) throw new Error(`still running after ${withinMs} ms; ${output()}`)
    return ended
  }

  function stop(signal: NodeJS.Signals = 'SIGTERM', withinMs?: number): Promise<Exit> {
    child.kill(signal)
    return end(withinMs)
  }

  async function kill(): Promise<void> {
    if (isGroup && exit === undefined) process.kill(-pid!, 'SIGKILL')
    else child.kill('SIGKILL')
    await exited
  }

  return {
    pid,
    get stdout() {
      return stdout.text()
    },
    get stderr() {
      return stderr.text()
    },
    waitFor,
    async ready(withinMs) {
      const [, ping, api, ops] = await waitFor(READY, withinMs)
      return { ping: ping!, api: api!, ops: ops! }
    },
    signal: (name) => void child.kill(name),
    closeStdout: () => void child.stdout.destroy(),
    end,
    stop,
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

/** Kills the process once our end of its pipe closes, which it does however this process ends. */
function guard(target: number): () => void {
  const watcher = spawn('/bin/sh', ['-c', 'cat > /dev/null; kill -s KILL -- "$1"', 'guard', String(target)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.unref()
  const input = watcher.stdin as typeof watcher.stdin & { unref?: () => void }
  input.unref?.()
  input.on('error', () => {})
  return () => void watcher.kill('SIGKILL')
}

function collect(stream: ChildProcess['stdout']) {
  let text = ''
  let announce = () => {}
  let next = Promise.resolve()
  const arm = () => {
    next = new Promise((resolve) => {
      announce = resolve
    })
  }
  arm()
  stream!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    announce()
    arm()
  })
  return { text: () => text, more: () => next }
}

/** Resolves with undefined; only for limits, which no test that passes reaches. */
function sleep(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms).unref())
}

/** A process, with what distinguishes it from a later one of the same pid. */
export interface KnownProcess {
  readonly pid: number
  readonly identity: string
}

/** The process and all that it has started, directly or not, as far as the parents still live. */
export async function listTree(root: number): Promise<KnownProcess[]> {
  const all = await listProcesses()
  const pids = [root]
  for (const pid of pids) pids.push(...all.filter(({ parent }) => parent === pid).map((child) => child.pid))
  const known = await Promise.all(pids.map(async (pid) => ({ pid, identity: await identifyProcess(pid) })))
  return known.filter((one): one is KnownProcess => one.identity !== null)
}

export async function listAlive(processes: readonly KnownProcess[]): Promise<number[]> {
  const identities = await Promise.all(processes.map(({ pid }) => identifyProcess(pid)))
  return processes.filter(({ identity }, index) => identity === identities[index]).map(({ pid }) => pid)
}

/** Sends the signal, or lets `send` do so, and waits for the end. `alive` lists what the service had started and left behind. */
export async function stopAll(service: ServiceProcess, signal: NodeJS.Signals, send?: () => void) {
  const tree = await listTree(service.pid)
  send?.()
  const exit = send === undefined ? await service.stop(signal) : await service.end()
  return { exit, started: tree.length, alive: await listAlive(tree) }
}

/** The log without the entries of the audit log, which each change adds. */
export const withoutAudit = (log: string) => log.replace(/^.*"msg":"audit"}\n/gm, '')
