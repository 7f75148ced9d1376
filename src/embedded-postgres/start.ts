/** The embedded PostgreSQL of `npm start` (design, section 9). */

import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { backoffMs } from '../runtime/backoff.ts'
import { systemClock } from '../runtime/clock.ts'
import { databaseUrl, ensureApplicationDatabase } from './application-database.ts'
import { findBinaries, locatePackage } from './binaries.ts'
import { APPLICATION_ROLE, type Cluster, DATABASE, prepareCluster, SUPERUSER } from './cluster.ts'
import { openDataFolder } from './data-folder.ts'
import { EmbeddedPostgresError, explainFolderError } from './failure.ts'
import { type Postmaster, startPostmaster } from './postmaster.ts'

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
  /** Whether a server that ends unexpectedly is started again, on the same port. Default true. */
  readonly restart?: boolean | undefined
  /** Ends a start in progress. */
  readonly signal?: AbortSignal | undefined
  /** The folder with bin/, lib/ and share/ of a PostgreSQL 18. Default: the installed platform package. */
  readonly nativeDir?: string | undefined
}

/**
 * A running server. When it ends unexpectedly (killed, out of memory), it is started again with the same url, with longer and
 * longer waits between the tries: for its users this is an outage like any other.
 */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** The database `heartbeat` for the role that owns it. */
  readonly url: string
  /** The database `postgres` for the superuser. */
  readonly adminUrl: string
  readonly port: number
  /** The server's process id. It changes with each restart. */
  readonly pid: number
  /** Resolves when the server has ended for good: with null after `stop`, else with what went wrong. Never rejects. */
  readonly exited: Promise<EmbeddedPostgresError | null>
  /** Stops the server within bounded time and releases the data folder. Idempotent. */
  stop(): Promise<void>
}

const RETRY = { firstMs: 100, maxMs: 5_000 }
/** When a server ran this long before it ended, the next restart begins with the shortest wait. */
const SOUND_AFTER_MS = 30_000
/** For obstacles that last a moment: children of a killed server, and a port that another program has just taken. */
const START_TRIES = 40
/**
 * Below the range from which the system takes the ports of outgoing connections (from 32768 on Linux, higher elsewhere): no
 * connection can take the port while the server restarts, not even one of its own clients.
 */
const FIRST_PORT = 15_000
const LAST_PORT = 32_000

/**
 * Starts PostgreSQL 18 on the data folder and waits until it takes connections: about a second the first time, a tenth of
 * that later, longer after a crash. Throws EmbeddedPostgresError, or the reason of `signal`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, note, settings = {}, signal } = options
  await using undo = new AsyncDisposableStack()
  try {
    // First, so that an image without the programs does not complain about a folder that it cannot write.
    const nativeDir = options.nativeDir ?? locatePackage()
    const folder = await openDataFolder(dataDir)
    undo.defer(folder.release)
    const binaries = await findBinaries(nativeDir, folder.linksDir)
    const { cluster, password } = await prepareCluster({ folder, binaries, settings, note, signal })
    const { postmaster, port } = await startOnSomePort(cluster, options.port, signal)
    undo.defer(postmaster.stop)
    await ensureApplicationDatabase(port, password, dataDir)
    signal?.throwIfAborted()
    undo.move()
    return new RunningServer(cluster, postmaster, port, password, options.restart ?? true)
  } catch (error) {
    signal?.throwIfAborted()
    throw explainFolderError(error, dataDir)
  }
}

async function startOnSomePort(cluster: Cluster, wanted: number | undefined, signal: AbortSignal | undefined) {
  const randomPort = () => randomInt(FIRST_PORT, LAST_PORT)
  let port = wanted ?? (await readLastPort(cluster)) ?? randomPort()
  for (let tries = 1; ; tries += 1) {
    try {
      return { postmaster: await startPostmaster(cluster, port, signal), port }
    } catch (error) {
      const reason = error instanceof EmbeddedPostgresError ? error.reason : undefined
      const isPassing = reason === 'memory-in-use' || (reason === 'port-taken' && wanted === undefined)
      if (!isPassing || tries === START_TRIES) throw error
      if (reason === 'port-taken') port = randomPort()
    }
    await systemClock.sleep(RETRY.firstMs, signal)
  }
}

/** The server keeps the command line of its last start in postmaster.opts. */
async function readLastPort({ folder }: Cluster): Promise<number | null> {
  const command = await readFile(join(folder.clusterDir, 'postmaster.opts'), 'utf8').catch(() => '')
  return Number(/"-p" "(\d+)"/.exec(command)?.[1]) || null
}

/** Owns the server process: watches it, restarts it, stops it. */
class RunningServer implements EmbeddedPostgres {
  readonly url: string
  readonly adminUrl: string
  readonly port: number
  readonly exited: Promise<EmbeddedPostgresError | null>
  readonly #cluster: Cluster
  readonly #stopping = new AbortController()
  #postmaster: Postmaster
  #stopped: Promise<void> | null = null

  constructor(cluster: Cluster, postmaster: Postmaster, port: number, password: string, restart: boolean) {
    this.#cluster = cluster
    this.#postmaster = postmaster
    this.port = port
    this.url = databaseUrl(APPLICATION_ROLE, password, port, DATABASE)
    this.adminUrl = databaseUrl(SUPERUSER, password, port, 'postgres')
    this.exited = this.#watch(restart).catch((error) =>
      this.#stopping.signal.aborted ? null : explainFolderError(error, cluster.folder.name),
    )
  }

  get pid(): number {
    return this.#postmaster.pid
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    // A restart in progress sees the signal and ends what it has started.
    await this.#postmaster.stop()
    await this.exited
    await this.#cluster.folder.release()
  }

  async #watch(restart: boolean): Promise<EmbeddedPostgresError | null> {
    const { folder, note } = this.#cluster
    for (let starts = 0; ; ) {
      const startedAt = performance.now()
      const ending = await this.#postmaster.ended
      if (this.#stopping.signal.aborted) return null
      const what = `the embedded PostgreSQL in ${folder.name} ended without being stopped (${ending})`
      if (!restart) return new EmbeddedPostgresError('failed', `${what}; its log is ${folder.logFile}`)
      if (performance.now() - startedAt > SOUND_AFTER_MS) starts = 0
      note(`${what}: starting it again on port ${this.port}`)
      starts = await this.#startAgain(starts)
      if (!this.#stopping.signal.aborted) note(`the embedded PostgreSQL in ${folder.name} is back`)
    }
  }

  /**
   * Tries until the server runs again. Returns the number of starts in a row. Throws on stop, and EmbeddedPostgresError `in-use`
   * when the data folder is no longer ours: another process may run its own server there by now.
   */
  async #startAgain(before: number): Promise<number> {
    const { signal } = this.#stopping
    const { folder, note } = this.#cluster
    let noted = ''
    for (let starts = before; ; ) {
      await systemClock.sleep(backoffMs(starts, RETRY), signal)
      signal.throwIfAborted()
      starts += 1
      if (!(await folder.isStillOurs()))
        throw new EmbeddedPostgresError(
          'in-use',
          `data folder ${folder.name} was removed, or taken over by another process, while its database was running: start again`,
        )
      try {
        this.#postmaster = await startPostmaster(this.#cluster, this.port, signal)
        // A stop that came just now has waited for the server before this one.
        if (signal.aborted) await this.#postmaster.stop()
        return starts
      } catch (error) {
        if (!(error instanceof EmbeddedPostgresError) || error.reason === 'in-use') throw error
        // The same failure is noted once, and one that lasts a moment is not noted.
        if (error.message !== noted && error.reason !== 'memory-in-use') note(`${error.message} (trying again)`)
        noted = error.message
      }
    }
  }
}
