import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { errorCode } from '../runtime/error-code.ts'
import type { Cluster } from './cluster.ts'
import { diskFull, EmbeddedPostgresError, explainOutput } from './failure.ts'
import { hasNoSpace, openLog } from './log-file.ts'
import { identifyProcess, isPostmasterOf } from './processes.ts'

/** One run of the server, from its start to its end. */
export type Postmaster = {
  pid: number
  /** How it ended, in words, whenever it does; never rejects. */
  ended: Promise<string>
  /** Ends it in order; where that takes too long, at once. Committed data is safe either way. */
  stop(): Promise<void>
}

/** A fast shutdown writes what is dirty in memory; past this, the next start replays the log instead. */
const FAST_SHUTDOWN_MS = 10_000
/** The server itself kills processes that have not obeyed an immediate shutdown after 5 s. */
const IMMEDIATE_SHUTDOWN_MS = 8_000
const POLL_MS = 20
const SLOW_START_MS = 10_000

/** Starts the server on `port` and waits until it takes connections; throws EmbeddedPostgresError, or the signal's reason. */
export async function startPostmaster(cluster: Cluster, port: number, signal?: AbortSignal): Promise<Postmaster> {
  const { folder, binaries, account } = cluster
  await removeLeftOver(cluster)
  const { file, args, ...ids } = account.command(binaries.postgres, [
    ...['-D', folder.clusterDir, '-p', String(port)],
    ...Object.entries(cluster.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  await using log = await openLog(folder.logFile)
  // A session of its own: the terminal's Ctrl-C reaches us alone, and we stop the server after its users.
  const child = spawn(file, args, {
    ...ids,
    env: binaries.env,
    cwd: '/',
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  })
  child.on('error', () => {}) // told by `ended`; a signal that cannot be sent is followed by the next one
  const ended = once(child, 'exit').then(
    ([code, killedBy]) => (killedBy === null ? `exit status ${code}` : `signal ${killedBy}`),
    (error: Error) => error.message, // it could not be started at all
  )
  const postmaster = { pid: child.pid ?? 0, ended, stop: () => stopChild(child, ended) }
  const ready = await waitUntilReady(cluster, child, signal)
  if (ready) return postmaster
  await postmaster.stop()
  signal?.throwIfAborted()
  const output = (await log.readNew()) || (await ended)
  const place = { dataDir: folder.name, program: 'the embedded PostgreSQL', port, logFile: folder.logFile }
  const failure = explainOutput(output, place)
  // On a full disk the server's last words did not get into its log.
  throw failure.reason === 'failed' && (await hasNoSpace(folder.clusterDir)) ? diskFull(folder.name) : failure
}

/** False when the server has ended first, or the signal aborted. Replaying the log after a crash may take long, so there is no limit. */
async function waitUntilReady({ folder, note }: Cluster, child: ChildProcess, signal?: AbortSignal): Promise<boolean> {
  let nextNoteAt = performance.now() + SLOW_START_MS
  while (isRunning(child) && !signal?.aborted) {
    const { pid, status } = await readPidFile(folder.clusterDir)
    if (pid === child.pid && status === 'ready') return true
    if (performance.now() > nextNoteAt) {
      note(`the embedded PostgreSQL is still starting; what it does is in ${folder.logFile}`)
      nextNoteAt = performance.now() + SLOW_START_MS
    }
    await systemClock.sleep(POLL_MS, signal)
  }
  return false
}

const isRunning = (child: ChildProcess) =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGINT', FAST_SHUTDOWN_MS],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS],
  ] as const) {
    if (!isRunning(child)) return
    child.kill(signal)
    const waiting = new AbortController()
    await Promise.race([ended, systemClock.sleep(waitMs, waiting.signal)])
    waiting.abort()
  }
  if (isRunning(child)) child.kill('SIGKILL')
  await ended
}

/**
 * Sees that nothing of an earlier run stands in the way. Our process was killed: its server is still there, and is
 * stopped. The server was killed as well, or the machine: its postmaster.pid may name a process that has nothing to do
 * with us, before which PostgreSQL would give up, so the file is removed.
 */
async function removeLeftOver({ folder, note }: Cluster): Promise<void> {
  const { pid } = await readPidFile(folder.clusterDir)
  if (pid === 0 || (await identifyProcess(pid)) === null) return
  if (!(await isPostmasterOf(pid, folder.clusterDir))) {
    await rm(join(folder.clusterDir, 'postmaster.pid'), { force: true })
    return
  }
  note(`stopping the PostgreSQL (process ${pid}) that an earlier run left behind in ${folder.name}`)
  for (const [signal, waitMs] of [
    ['SIGINT', FAST_SHUTDOWN_MS],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS],
    ['SIGKILL', IMMEDIATE_SHUTDOWN_MS],
  ] as const) {
    sendSignal(pid, signal)
    const until = performance.now() + waitMs
    while (performance.now() < until) {
      if (!(await isPostmasterOf(pid, folder.clusterDir))) return
      await systemClock.sleep(POLL_MS)
    }
  }
  throw new EmbeddedPostgresError(
    'in-use',
    `the PostgreSQL (process ${pid}) that an earlier run left behind in data folder ${folder.name} does not end: ` +
      'stop it, or set DATA_DIR to another folder',
  )
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** pid 0 where there is no server or no file; the status is `starting`, `ready`, `stopping` ... */
export async function readPidFile(cluster: string): Promise<{ pid: number; status: string }> {
  try {
    const lines = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')
    return { pid: Math.abs(Number.parseInt(lines[0] ?? '', 10)) || 0, status: lines[7]?.trim() ?? '' }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { pid: 0, status: '' }
    throw error
  }
}
