/** The embedded PostgreSQL of `npm start` (design, section 9). */

import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { findBinaries, locatePackage } from './binaries.ts'
import { APPLICATION_ROLE, type Cluster, DATABASE, prepareCluster, SUPERUSER } from './cluster.ts'
import { openDataFolder } from './data-folder.ts'
import { EmbeddedPostgresError, explainError } from './failure.ts'
import { findPostmaster, type Postmaster, startPostmaster } from './postmaster.ts'
import { databaseUrl, ensureApplicationDatabase, own } from './session.ts'

export { EmbeddedPostgresError }

export interface EmbeddedPostgresOptions {
  /** Made where it is missing; data-folder.ts lists its contents. */
  readonly dataDir: string
  /** Takes one line about anything that lasts longer than a moment or is worth knowing. It never holds a secret. */
  readonly note: (line: string) => void
  /** Default: the port of the last start, or another one when that is in use. */
  readonly port?: number | undefined
  /** Server settings that win over ours. With `fsync: 'off'` the first start does not wait for the disk either. */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /**
   * Uses the server of another process where one runs, and leaves it running. Default: that is EmbeddedPostgresError
   * `in-use`.
   */
  readonly shares?: boolean
  /** Ends a start in progress. */
  readonly signal?: AbortSignal | undefined
  /** The folder with bin/, lib/ and share/ of a PostgreSQL 18. Default: the installed platform package. */
  readonly nativeDir?: string | undefined
}

export interface EmbeddedPostgres extends AsyncDisposable {
  /** The database `heartbeat` for the role that owns it. */
  readonly url: string
  /** The database `postgres` for the superuser. */
  readonly adminUrl: string
  readonly port: number
  /** The server's process id. */
  readonly pid: number
  /** Resolves when the server has ended: with null after `stop`, else with what went wrong. Never rejects. */
  readonly exited: Promise<EmbeddedPostgresError | null>
  /** Stops the server within bounded time. Idempotent. */
  stop(): Promise<void>
}

/**
 * For obstacles that last a moment: a server that starts or stops, children of a killed one, a port that another
 * program has just taken.
 */
const START_TRIES = 40
const RETRY_MS = 100
/**
 * Below the range from which the system takes the ports of outgoing connections (from 32768 on Linux, higher
 * elsewhere).
 */
const FIRST_PORT = 15_000
const LAST_PORT = 32_000

/**
 * Starts PostgreSQL 18 on the data folder and waits until it takes connections: about a second the first time, a tenth
 * of that later, longer after a crash. A server that a killed process left behind is used as it is. Throws
 * EmbeddedPostgresError, or the reason of `signal`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, note, settings = {}, shares = false, signal } = options
  await using undo = new AsyncDisposableStack()
  try {
    // First, so that an image without the programs does not complain about a folder that it cannot write.
    const nativeDir = options.nativeDir ?? locatePackage()
    const folder = await openDataFolder(dataDir)
    const binaries = await findBinaries(nativeDir)
    const cluster = await prepareCluster({ folder, binaries, settings, note, signal })
    const { postmaster, isFound } = await findOrStart(cluster, options.port, signal)
    const { client, pid, port } = postmaster
    undo.defer(() => client.end().catch(() => {}))
    if (!(isFound && shares)) {
      await own(client, dataDir)
      undo.defer(postmaster.stop)
      if (isFound) note(`using the PostgreSQL (process ${pid}) that an earlier run left behind in ${dataDir}`)
    }
    await ensureApplicationDatabase(client, cluster.password)
    signal?.throwIfAborted()
    const running = undo.move()
    let stopped: Promise<void> | null = null
    const stop = () => {
      stopped ??= running.disposeAsync()
      return stopped
    }
    const exited = postmaster.ended.then((ending) => {
      if (stopped !== null) return null
      const what = `the embedded PostgreSQL in ${dataDir} ended without being stopped (${ending})`
      return new EmbeddedPostgresError('failed', `${what}: start again; its log is ${folder.logFile}`)
    })
    const urlOf = (role: string, database: string) => databaseUrl(role, cluster.password, port, database)
    const urls = { url: urlOf(APPLICATION_ROLE, DATABASE), adminUrl: urlOf(SUPERUSER, 'postgres') }
    return { ...urls, port, pid, exited, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    signal?.throwIfAborted()
    throw explainError(error, dataDir)
  }
}

async function findOrStart(
  cluster: Cluster,
  wanted: number | undefined,
  signal: AbortSignal | undefined,
): Promise<{ postmaster: Postmaster; isFound: boolean }> {
  const randomPort = () => randomInt(FIRST_PORT, LAST_PORT)
  let port = wanted ?? (await readLastPort(cluster)) ?? randomPort()
  for (let tries = 1; ; tries += 1) {
    const found = await findPostmaster(cluster)
    if (found !== null) return { postmaster: found, isFound: true }
    try {
      return { postmaster: await startPostmaster(cluster, port, signal), isFound: false }
    } catch (error) {
      const reason = error instanceof EmbeddedPostgresError ? error.reason : undefined
      const isPassing = reason === 'in-use' || reason === 'memory-in-use'
      if (!(isPassing || (reason === 'port-taken' && wanted === undefined)) || tries === START_TRIES) throw error
      if (reason === 'port-taken') port = randomPort()
    }
    await systemClock.sleep(RETRY_MS, signal)
  }
}

/** The server keeps the command line of its last start in postmaster.opts. */
async function readLastPort({ folder }: Cluster): Promise<number | null> {
  const command = await readFile(join(folder.clusterDir, 'postmaster.opts'), 'utf8').catch(() => '')
  return Number(/"-p" "(\d+)"/.exec(command)?.[1]) || null
}
