import { backoffMs } from '../runtime/backoff.ts'
import { systemClock } from '../runtime/clock.ts'
import { databaseUrl, ensureApplicationDatabase } from './application-database.ts'
import { findBinaries, locatePackage } from './binaries.ts'
import { APPLICATION_ROLE, type Cluster, DATABASE, prepareCluster, SUPERUSER } from './cluster.ts'
import { openDataFolder } from './data-folder.ts'
import { EmbeddedPostgresError, explainFolderError } from './failure.ts'
import { choosePort } from './port.ts'
import { type Postmaster, startPostmaster } from './postmaster.ts'

export { EmbeddedPostgresError }

export type EmbeddedPostgresOptions = {
  /** Made where it is missing; embedded-postgres/data-folder.ts says what comes to lie in it. */
  dataDir: string
  /** Called with one line for whatever takes more than a moment or is worth knowing; never with a secret. */
  note: (line: string) => void
  /** Default: the port of the last start while it is free, else a free one. */
  port?: number | undefined
  /** Server settings that win over ours. With `fsync: 'off'` the first start does not wait for the disk either. */
  settings?: Record<string, string> | undefined
  /** Whether a server that ended without being told to is started again, on the same port. Default true. */
  restart?: boolean | undefined
  /** Ends a start that is still going on. */
  signal?: AbortSignal | undefined
  /** The folder with bin/, lib/ and share/ of a PostgreSQL 18. Default: the installed platform package. */
  nativeDir?: string | undefined
}

/**
 * A PostgreSQL of our own (design, section 9), running from `startEmbeddedPostgres` to `stop`. When it ends in between
 * (killed, out of memory) it is started again with the same url, so that for its users this is an outage like any other;
 * it goes on trying, at longer and longer intervals, while there is a database to start.
 */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** The database `heartbeat` for the role that owns it. */
  readonly url: string
  /** The database `postgres` for the superuser. */
  readonly adminUrl: string
  readonly port: number
  /** The process id of the server; another one after each restart. */
  readonly pid: number
  /** Resolves when the server has ended for good: with null after `stop`, else with what went wrong. Never rejects. */
  readonly exited: Promise<EmbeddedPostgresError | null>
  /** Stops the server in order (bounded, then at once) and gives the data folder free. Idempotent. */
  stop(): Promise<void>
}

const RETRY = { firstMs: 100, maxMs: 5_000 }
/** A server that ran this long before it ended was sound: the next restart begins with the shortest wait. */
const SOUND_AFTER_MS = 30_000
/** What may still lie in the way for a moment: children of a killed server, and a port that somebody took meanwhile. */
const START_TRIES = 40

/**
 * Starts PostgreSQL 18 on the data folder and waits until it takes connections: about a second the first time, a tenth of
 * that later, longer after a crash. Acknowledged means committed: fsync stays on unless `settings` say otherwise.
 * Throws EmbeddedPostgresError (one line for people), or the reason of `signal`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, note, settings = {}, signal } = options
  await using undo = new AsyncDisposableStack()
  try {
    // First of all: without programs, as in our image, nobody need be told about a folder that cannot be written.
    const nativeDir = options.nativeDir ?? locatePackage()
    const folder = await openDataFolder(dataDir)
    undo.defer(() => folder.release())
    const binaries = await findBinaries(nativeDir, folder.linksDir)
    const { cluster, password } = await prepareCluster({ folder, binaries, settings, note, signal })
    const { postmaster, port } = await startOnSomePort(cluster, options.port, signal)
    undo.defer(() => postmaster.stop())
    await ensureApplicationDatabase(port, password, dataDir)
    signal?.throwIfAborted()
    const release = undo.move()
    return new RunningServer(cluster, postmaster, port, password, options.restart ?? true, () => release.disposeAsync())
  } catch (error) {
    signal?.throwIfAborted()
    throw explainFolderError(error, dataDir)
  }
}

async function startOnSomePort(cluster: Cluster, wanted: number | undefined, signal: AbortSignal | undefined) {
  for (let tries = 1; ; tries += 1) {
    const port = wanted ?? (await choosePort(cluster.folder.clusterDir))
    try {
      return { postmaster: await startPostmaster(cluster, port, signal), port }
    } catch (error) {
      const reason = error instanceof EmbeddedPostgresError ? error.reason : undefined
      const mayPass = reason === 'memory-in-use' || (reason === 'port-taken' && wanted === undefined)
      if (!mayPass || tries === START_TRIES) throw error
    }
    await systemClock.sleep(RETRY.firstMs, signal)
  }
}

/** Owns the server process: watches it, starts it again, stops it. */
class RunningServer implements EmbeddedPostgres {
  readonly url: string
  readonly adminUrl: string
  readonly port: number
  readonly exited: Promise<EmbeddedPostgresError | null>
  readonly #cluster: Cluster
  readonly #release: () => Promise<void>
  readonly #stopping = new AbortController()
  #postmaster: Postmaster
  #stopped: Promise<void> | null = null

  constructor(
    cluster: Cluster,
    postmaster: Postmaster,
    port: number,
    password: string,
    restart: boolean,
    release: () => Promise<void>,
  ) {
    this.#cluster = cluster
    this.#postmaster = postmaster
    this.#release = release
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
    // A restart that is under way sees the signal and ends what it has started.
    await this.#postmaster.stop()
    await this.exited
    await this.#release()
  }

  async #watch(restart: boolean): Promise<EmbeddedPostgresError | null> {
    let starts = 0
    for (;;) {
      const startedAt = performance.now()
      const ending = await this.#postmaster.ended
      if (this.#stopping.signal.aborted) return null
      const { name, logFile } = this.#cluster.folder
      const what = `the embedded PostgreSQL in ${name} ended without being stopped (${ending})`
      if (!restart) return new EmbeddedPostgresError('failed', `${what}; its log is ${logFile}`)
      if (performance.now() - startedAt > SOUND_AFTER_MS) starts = 0
      this.#cluster.note(`${what}: starting it again on port ${this.port}`)
      starts = await this.#startAgain(starts)
      if (!this.#stopping.signal.aborted) this.#cluster.note(`the embedded PostgreSQL in ${name} is back`)
    }
  }

  /** Whoever removed the folder may have started another process on it, whose server must not be taken for a left-over. */
  async #refuseTakenFolder(): Promise<void> {
    const { folder } = this.#cluster
    if (await folder.isStillOurs()) return
    throw new EmbeddedPostgresError(
      'in-use',
      `data folder ${folder.name} was removed, or taken over by another process, while its database was running: start again`,
    )
  }

  /** Tries until the server runs again. Returns how often it was started in a row by then. Throws when there is nothing left to start, or on stop. */
  async #startAgain(before: number): Promise<number> {
    const { signal } = this.#stopping
    let said = ''
    for (let starts = before; ; ) {
      await systemClock.sleep(backoffMs(starts, RETRY), signal)
      signal.throwIfAborted()
      starts += 1
      try {
        await this.#refuseTakenFolder()
        this.#postmaster = await startPostmaster(this.#cluster, this.port, signal)
        // A stop that came just now has waited for the server before this one.
        if (signal.aborted) await this.#postmaster.stop()
        return starts
      } catch (error) {
        if (!(error instanceof EmbeddedPostgresError) || error.reason === 'in-use') throw error
        // The same trouble is told once; what only lasts a moment is not told.
        if (error.message !== said && error.reason !== 'memory-in-use')
          this.#cluster.note(`${error.message} (trying again)`)
        said = error.message
      }
    }
  }
}
