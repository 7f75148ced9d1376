/** One run of the server process, from its start to its end. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { errorCode } from '../runtime/error-code.ts'
import type { Cluster } from './cluster.ts'
import { readIfThere } from './data-folder.ts'
import { diskFull, EmbeddedPostgresError, explainOutput } from './failure.ts'
import { identifyProcess, isPostmasterOf } from './processes.ts'

export interface Postmaster {
  readonly pid: number
  /** Resolves with a description of how it ended. Never rejects. */
  readonly ended: Promise<string>
  /** Ends the server in order; when that takes too long, at once. Committed data is safe either way. */
  stop(): Promise<void>
}

/**
 * A fast shutdown writes the changed pages; after 10 s the next start replays the log instead. After an immediate shutdown the
 * server itself kills processes that do not obey within 5 s.
 */
const SHUTDOWN = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 8_000],
  ['SIGKILL', 8_000],
] as const
const POLL_MS = 20
const SLOW_START_MS = 10_000
/** A start truncates a longer log: it is for looking into the last trouble, not a record. */
const MAX_LOG_BYTES = 4_194_304
/** PostgreSQL needs one segment of its log to start. */
const LEAST_FREE_BYTES = 1_048_576

/** Starts the server on `port` and waits until it takes connections. Throws EmbeddedPostgresError, or the signal's reason. */
export async function startPostmaster(cluster: Cluster, port: number, signal?: AbortSignal): Promise<Postmaster> {
  const { folder, binaries, account, settings } = cluster
  await removeLeftOver(cluster)
  const { file, args, ...ids } = account(binaries.postgres, [
    ...['-D', folder.clusterDir, '-p', String(port)],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  await using log = await open(folder.logFile, 'a', 0o600)
  if ((await log.stat()).size > MAX_LOG_BYTES) await log.truncate(0)
  const { size: logged } = await log.stat()
  // A session of its own: the terminal's Ctrl-C reaches us alone, and we stop the server after its users.
  const { env } = binaries
  const child = spawn(file, args, { ...ids, env, cwd: '/', detached: true, stdio: ['ignore', log.fd, log.fd] })
  // `ended` reports a failed start, and a signal that cannot be sent is followed by the next one.
  child.on('error', () => {})
  const ended = once(child, 'exit').then(
    ([code, killedBy]) => (killedBy === null ? `exit status ${code}` : `signal ${killedBy}`),
    (error: Error) => error.message,
  )
  const stop = async () => {
    const send = (name: NodeJS.Signals) => child.kill(name)
    if (await shutDown(send, async () => !isRunning(child))) await ended
  }
  if (await waitUntilReady(cluster, child, signal)) return { pid: child.pid!, ended, stop }
  await stop()
  signal?.throwIfAborted()
  const output = (await readFile(folder.logFile)).subarray(logged).toString() || (await ended)
  const context = { dataDir: folder.name, program: 'the embedded PostgreSQL', port, logFile: folder.logFile }
  const failure = explainOutput(output, context)
  // On a full disk the server's last words may be missing from its log.
  const { bavail, bsize } = await statfs(folder.clusterDir)
  throw failure.reason === 'failed' && bavail * bsize < LEAST_FREE_BYTES ? diskFull(folder.name) : failure
}

/** False when the server ended first, or the signal aborted. No time limit: replaying the log after a crash may take long. */
async function waitUntilReady({ folder, note }: Cluster, child: ChildProcess, signal?: AbortSignal): Promise<boolean> {
  let nextNoteAt = performance.now() + SLOW_START_MS
  while (isRunning(child) && !signal?.aborted) {
    const { pid, status } = await readPidFile(folder.clusterDir)
    if (pid === child.pid && status === 'ready') return true
    if (performance.now() > nextNoteAt) {
      note(`the embedded PostgreSQL is still starting; its progress is in ${folder.logFile}`)
      nextNoteAt = performance.now() + SLOW_START_MS
    }
    await systemClock.sleep(POLL_MS, signal)
  }
  return false
}

const isRunning = (child: ChildProcess) =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null

/** Sends the signals of SHUTDOWN one after the other until the server has ended. False when it is still there after all. */
async function shutDown(send: (name: NodeJS.Signals) => unknown, hasEnded: () => Promise<boolean>): Promise<boolean> {
  for (const [name, waitMs] of SHUTDOWN) {
    if (await hasEnded()) return true
    send(name)
    for (const until = performance.now() + waitMs; performance.now() < until; await systemClock.sleep(POLL_MS))
      if (await hasEnded()) return true
  }
  return false
}

/**
 * Removes what an earlier run left behind. When only our process was killed, its server still runs, and is stopped. When the
 * server or the machine died too, postmaster.pid can name an unrelated process, because of which PostgreSQL would refuse to
 * start, so the file is removed.
 */
async function removeLeftOver({ folder, note }: Cluster): Promise<void> {
  const { clusterDir, name } = folder
  const { pid } = await readPidFile(clusterDir)
  if (pid === 0 || (await identifyProcess(pid)) === null) return
  if (!(await isPostmasterOf(pid, clusterDir))) return rm(join(clusterDir, 'postmaster.pid'), { force: true })
  note(`stopping the PostgreSQL (process ${pid}) that an earlier run left behind in ${name}`)
  const send = (signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error
    }
  }
  if (await shutDown(send, async () => !(await isPostmasterOf(pid, clusterDir)))) return
  const what = `the PostgreSQL (process ${pid}) that an earlier run left behind in data folder ${name}`
  throw new EmbeddedPostgresError('in-use', `${what} does not end: stop it, or set DATA_DIR to another folder`)
}

/** pid and port 0 when there is no server or no file; the status is `starting`, `ready`, `stopping` ... */
export async function readPidFile(clusterDir: string): Promise<{ pid: number; port: number; status: string }> {
  const lines = ((await readIfThere(join(clusterDir, 'postmaster.pid'))) ?? '').split('\n')
  const numberAt = (place: number) => Math.abs(Number.parseInt(lines[place] ?? '', 10)) || 0
  return { pid: numberAt(0), port: numberAt(3), status: lines[7]?.trim() ?? '' }
}
