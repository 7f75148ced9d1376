/** The server process: found or started, watched, stopped. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, realpath, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { readIfThere } from '../runtime/lasting-file.ts'
import type { Cluster } from './cluster.ts'
import { diskFull, explainOutput } from './failure.ts'
import { PROGRAM_ENV, sendSignal } from './run-program.ts'
import { type Client, connect } from './session.ts'

export interface Postmaster {
  readonly pid: number
  readonly port: number
  /** Of the superuser, to the database `postgres`. */
  readonly client: Client
  /** Resolves with a description of how the server ended. Never rejects. */
  readonly ended: Promise<string>
  /** Ends the server in order; when that takes too long, at once. */
  stop(): Promise<void>
}

/**
 * A fast shutdown writes the changed pages; after 10 s the next start replays the log instead. After an immediate shutdown the
 * server itself kills processes that do not obey within 5 s. Committed data is safe either way.
 */
const SHUTDOWN = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 8_000],
  ['SIGKILL', 8_000],
] as const
const POLL_MS = 20
/** A start truncates a longer log: it is for looking into the last trouble, not a record. */
const MAX_LOG_BYTES = 4_194_304
/** PostgreSQL needs one segment of its log to start. */
const LEAST_FREE_BYTES = 1_048_576

/**
 * The server that works on the cluster: of a process that runs, or left behind by a killed process. Null when none is
 * ready.
 */
export async function findPostmaster({ folder, password }: Cluster): Promise<Postmaster | null> {
  const { clusterDir } = folder
  const { pid, port, status } = await readPidFile(clusterDir)
  // Where the server is gone, anyone may listen on its port: the password is for a process of ours alone.
  const client = status === 'ready' && sendSignal(pid) ? await connect(port, password).catch(() => null) : null
  if (client === null) return null
  const { rows } = await client.query(`select current_setting('data_directory') as folder`)
  const served = await realpath(rows[0].folder).catch(() => null)
  if (served === (await realpath(clusterDir))) {
    const ended = new Promise<string>((resolve) => client.once('end', () => resolve('its connection closed')))
    const stop = () => shutDown(pid, async () => (await readPidFile(clusterDir)).pid !== pid)
    return { pid, port, client, ended, stop }
  }
  // The file was copied with the cluster, or is older than the machine's last start: the port is of another server.
  await client.end()
  return null
}

/**
 * Starts the server on `port` and waits until it takes connections. Throws EmbeddedPostgresError, or the signal's
 * reason.
 */
export async function startPostmaster(cluster: Cluster, port: number, signal?: AbortSignal): Promise<Postmaster> {
  const { folder, binaries, account, password, settings } = cluster
  const { name: dataDir, clusterDir, logFile } = folder
  await using log = await open(logFile, 'a', 0o600)
  if ((await log.stat()).size > MAX_LOG_BYTES) await log.truncate(0)
  const { size: logged } = await log.stat()
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(binaries.postgres, ['-D', clusterDir, '-p', String(port), ...options], {
    ...account,
    env: PROGRAM_ENV,
    cwd: '/',
    // A session of its own: the terminal's Ctrl-C reaches us alone, and we stop the server after its users.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  })
  await once(child, 'spawn')
  // A server that another process owns by now does not keep this one from ending.
  child.unref()
  const pid = child.pid!
  const ended = once(child, 'exit').then(([code, killedBy]) =>
    killedBy === null ? `exit status ${code}` : `signal ${killedBy}`,
  )
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const stop = () => shutDown(pid, hasEnded)
  try {
    // No time limit: replaying the log after a crash may take long.
    while (!hasEnded()) {
      signal?.throwIfAborted()
      const found = await readPidFile(clusterDir)
      if (found.pid === pid && found.status === 'ready')
        return { pid, port, client: await connect(port, password), ended, stop }
      await systemClock.sleep(POLL_MS, signal)
    }
  } catch (error) {
    await stop()
    throw error
  }
  const output = (await readFile(logFile)).subarray(logged).toString() || (await ended)
  const failure = explainOutput(output, { dataDir, program: 'the embedded PostgreSQL', port, logFile })
  // On a full disk the server's last words may be missing from its log.
  const { bavail, bsize } = await statfs(clusterDir)
  throw failure.reason === 'failed' && bavail * bsize < LEAST_FREE_BYTES ? diskFull(dataDir) : failure
}

/** Sends the signals of SHUTDOWN one after the other until the server has ended. */
async function shutDown(pid: number, hasEnded: () => boolean | Promise<boolean>): Promise<void> {
  for (const [signal, waitMs] of SHUTDOWN) {
    if ((await hasEnded()) || !sendSignal(pid, signal)) return
    for (const until = performance.now() + waitMs; performance.now() < until; await systemClock.sleep(POLL_MS))
      if (await hasEnded()) return
  }
}

/** pid and port 0 when there is no server or no file; the status is `starting`, `ready`, `stopping` ... */
export async function readPidFile(clusterDir: string): Promise<{ pid: number; port: number; status: string }> {
  const lines = ((await readIfThere(join(clusterDir, 'postmaster.pid'))) ?? '').split('\n')
  const numberAt = (place: number) => Math.abs(Number.parseInt(lines[place] ?? '', 10)) || 0
  return { pid: numberAt(0), port: numberAt(3), status: lines[7]?.trim() ?? '' }
}
