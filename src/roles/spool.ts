/**
 * The spool of an api process: pings on disk while the database is unavailable (design, section 10). Without it the
 * process works as well, and rejects them.
 */

import type { PingCounts } from '../checks/ping/counts.ts'
import { createPingSpool, type PingSpool } from '../checks/ping/ping-spool.ts'
import { createReadBack, type ReadBack } from '../checks/ping/read-back.ts'
import type { PingRecorder } from '../checks/ping/record.ts'
import { UnknownFormat } from '../checks/ping/spooled-ping.ts'
import { waitAtMost } from '../runtime/clock.ts'
import { createLimiter } from '../runtime/limiter.ts'
import { SyncFailed } from '../spool/errors.ts'
import type { Files } from '../spool/files.ts'
import { openSpool } from '../spool/open-spool.ts'
import type { Problem } from '../spool/recover.ts'
import type { Spool } from '../spool/spool.ts'
import type { SpoolReport } from '../store/history/gaps.ts'
import type { Database } from '../store/postgres/database.ts'
import { type Base, loopOf } from './base.ts'

export interface SpoolRoleOptions extends Base {
  readonly pingDatabase: Database
  readonly counts: PingCounts
  readonly recorder: Pick<PingRecorder, 'isWell' | 'recovered' | 'drain'>
  /** For tests. */
  readonly files?: Files
}

/** The database is noticed within this time. */
const READ_BACK_MS = 500
const WARN_MS = 60_000
/** With more locked checks than a beat names, all deadlines wait. */
const MAX_LOCKED = 1_000
/**
 * While there is none: the process before this one may have the lock until it has stopped, and some errors of a disk
 * pass.
 */
const OPEN_MS = 30_000
const CLOSE_MS = 5_000
/**
 * Kubernetes ends a pod 30 s after it asked it to stop, by default; and its folder is gone with it, unless that is a
 * persistent volume.
 */
const STOP_MS = 8_000

export function createSpoolRole(options: SpoolRoleOptions) {
  const { config, log, metrics, clock, databaseClock, pingDatabase } = options
  const { counts, recorder, files } = options
  const { spoolDir: folder, spoolMaxBytes: maxBytes } = config
  let opened: { readonly spool: Spool; readonly pings: PingSpool; readonly readBack: ReadBack } | null = null
  let warnedAt = Number.NEGATIVE_INFINITY
  /** False: not in this process. */
  let mayOpen = maxBytes > 0
  /** What was said about the last failure to open it. */
  let failure: string | null = null
  /** One opens or closes it at a time. */
  const change = createLimiter({ atOnce: 1 })

  const openLoop = loopOf(options, 'open_spool', OPEN_MS, () => change(openLate))

  const loop = loopOf(options, 'read_back', READ_BACK_MS, () => whileReadable(async () => opened?.readBack.run()))

  /**
   * What cannot be read must not keep what comes later: pings of all checks would wait behind it. The files stay as
   * they are: another try would find the same.
   */
  async function whileReadable<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof UnknownFormat)) throw error
      mayOpen = false
      log.error({ error, folder }, 'the spool cannot be read: pings are rejected while the database is unavailable')
      await change(async () => {
        const left = opened
        opened = null
        await left?.spool.close()
      })
      return undefined
    }
  }

  function onProblem(problem: Problem): void {
    const { kind, ...rest } = problem
    switch (kind) {
      case 'damaged':
        metrics.spoolDropped.inc({ reason: 'damaged' })
        log.error(
          rest,
          'a file of the spool is damaged, or of another format: its bytes from this offset on are kept aside, and their pings are not recorded',
        )
        break
      case 'cut off':
        log.warn(rest, 'the last ping of the spool was not whole, and not acknowledged; it is removed')
        break
      case 'disk full':
        log.error(rest, 'the disk of the spool is full: pings are rejected while the database is unavailable')
        break
      case 'broken':
        mayOpen = false
        log.error(
          rest,
          'the spool cannot be written: pings are rejected while the database is unavailable, until this process starts again',
        )
    }
  }

  /** Where that fails it says so, and there is none until a later try succeeds. */
  async function open(): Promise<void> {
    if (maxBytes === 0) return
    await change(openNow)
    openLoop.start()
  }

  async function openLate(): Promise<void> {
    if (opened !== null || !mayOpen) return
    const pings = await openNow()
    if (pings === null) return
    // What came before got 503, so that the time until now is no time whose pings were all spooled.
    pings.noteRefusal()
    log.info({ folder }, 'the spool is open now: pings are stored there while the database is unavailable')
  }

  async function openNow(): Promise<PingSpool | null> {
    let spool: Spool
    try {
      spool = await openSpool({ folder, maxBytes, onProblem, ...(files === undefined ? {} : { files }) })
    } catch (error) {
      onOpenFailed(error)
      return null
    }
    failure = null
    const pings = createPingSpool(spool, databaseClock.now)
    const left = pings.pings()
    if (left > 0) log.info({ pings: left }, 'pings wait in the spool; they are recorded first')
    const readBack = createReadBack({
      database: pingDatabase,
      spool: pings,
      counts,
      recorder,
      now: databaseClock.now,
      processNow: clock.now,
      onDropped(reason, count, error) {
        metrics.spoolDropped.inc({ reason }, count)
        log.warn({ error, reason, pings: count }, 'pings of the spool could not be recorded')
      },
      onLocked,
      onEnd: (count) => log.info({ pings: count }, 'all pings of the spool are recorded'),
    })
    opened = { spool, pings, readBack }
    return pings
  }

  /**
   * Says each error once. After a failed fsync nothing that the files seem to have is believed, until the process
   * starts again.
   */
  function onOpenFailed(error: unknown): void {
    if (error instanceof SyncFailed) mayOpen = false
    const message = String(error)
    if (message !== failure)
      log.error(
        { error, folder },
        'the spool cannot be opened: pings are rejected while the database is unavailable. Set SPOOL_DIR to a folder that this process alone can write, or SPOOL_MAX_BYTES=0',
      )
    failure = message
  }

  function onLocked(count: number): void {
    if (clock.now() - warnedAt < WARN_MS) return
    warnedAt = clock.now()
    log.warn(
      { pings: count },
      'pings of the spool wait for rows of check_states that another session has locked: end its transaction',
    )
  }

  /** Records what a process before this one left, or as much until `signal` aborts. Throws AppError `unavailable`. */
  async function drain(signal?: AbortSignal): Promise<void> {
    await whileReadable(async () => opened?.readBack.drain(signal))
  }

  return {
    open,
    /** Null: there is none. */
    pings: () => opened?.pings ?? null,
    /** Of this process, for its beat; null: there is none. */
    report(): SpoolReport | null {
      if (opened === null) return null
      const { pings } = opened
      const lockedChecks = pings.lockedKeys()
      const isPending = !pings.isCaughtUp() || lockedChecks.length > MAX_LOCKED
      return {
        pendingSince: isPending ? (pings.oldestAt() ?? databaseClock.now()) : null,
        refusedAt: pings.refusedAt(),
        lockedChecks: isPending ? [] : lockedChecks,
      }
    },
    drain,
    /** Records what waits, as soon as the database is available. */
    loop,
    setGauges(): void {
      const pings = opened?.pings
      const oldestAt = pings?.oldestAt() ?? null
      metrics.spoolAccepting.set(pings?.hasRoom() ? 1 : 0)
      metrics.spoolPings.set(pings?.pings() ?? 0)
      metrics.spoolBytes.set(pings?.bytes() ?? 0)
      metrics.spoolOldestSeconds.set(oldestAt === null ? 0 : Math.max(0, databaseClock.now() - oldestAt) / 1_000)
    },
    /** Records what waits, if the database is available and as far as there is time; the rest stays on disk. */
    async close(): Promise<void> {
      const stopped = openLoop.stop()
      await drain(AbortSignal.timeout(STOP_MS)).catch((error) => log.warn({ error }, 'the spool could not be recorded'))
      const left = opened?.pings.pings() ?? 0
      if (left > 0) log.warn({ pings: left, folder }, 'pings stay in the spool: the next start records them')
      // A disk that hangs must not keep the process.
      await waitAtMost(
        CLOSE_MS,
        stopped.then(() => opened?.spool.close()),
      )
    },
  }
}
