/** The spool of an api process: pings on disk while the database is unavailable (design, section 10). Without it the process works as well, and rejects them. */

import type { CheckCache } from '../checks/ping/cache.ts'
import type { PingCounts } from '../checks/ping/counts.ts'
import { createPingSpool, type PingSpool } from '../checks/ping/ping-spool.ts'
import { createReadBack, type ReadBack } from '../checks/ping/read-back.ts'
import type { PingRecorder } from '../checks/ping/record.ts'
import type { Loop } from '../runtime/loop.ts'
import { openSpool } from '../spool/open-spool.ts'
import type { Problem } from '../spool/recover.ts'
import type { Spool } from '../spool/spool.ts'
import type { SpoolReport } from '../store/history/gaps.ts'
import type { Database } from '../store/postgres/database.ts'
import { type Base, loopOf } from './base.ts'

export interface SpoolRole {
  /** Opens it. Where that fails it says so, and there is none. */
  open(): Promise<void>
  /** Null: there is none. */
  pings(): PingSpool | null
  /** Its folder, which is this process's alone; null: there is none. */
  folder(): string | null
  /** Of this process, for its beat; null: there is none. */
  report(): SpoolReport | null
  /** Records what a process before this one left. Throws AppError `unavailable`. */
  drain(): Promise<void>
  /** Records what waits, as soon as the database is available. */
  readonly loop: Pick<Loop, 'start' | 'stop'>
  showMetrics(): void
  close(): Promise<void>
}

export interface SpoolRoleOptions extends Base {
  readonly pingDatabase: Database
  readonly cache: CheckCache
  readonly counts: PingCounts
  readonly recorder: Pick<PingRecorder, 'recovered' | 'holdBack'>
}

/** The database is noticed within this time. */
const READ_BACK_MS = 500

export function createSpoolRole(options: SpoolRoleOptions): SpoolRole {
  const { config, log, metrics, databaseClock, pingDatabase } = options
  const { cache, counts, recorder } = options
  const { spoolDir: folder, spoolMaxBytes: maxBytes } = config
  let spool: Spool | null = null
  let pings: PingSpool | null = null
  let readBack: ReadBack | null = null

  const loop = loopOf(options, 'read_back', READ_BACK_MS, () => readBack?.run() ?? Promise.resolve('done'))

  function onProblem(problem: Problem): void {
    const { kind, ...rest } = problem
    switch (kind) {
      case 'damaged':
        metrics.spoolDropped.inc({ reason: 'damaged' })
        log.error(rest, 'a file of the spool is damaged: the pings behind this byte are kept aside, and not recorded')
        break
      case 'gap':
        metrics.spoolDropped.inc({ reason: 'damaged' }, problem.count)
        log.error(rest, 'a file of the spool is missing: its pings are not recorded')
        break
      case 'cut off':
        log.warn(rest, 'the last ping of the spool was not whole, and not acknowledged; it is removed')
        break
      case 'disk full':
        log.error(rest, 'the disk of the spool is full: pings are rejected while the database is unavailable')
        break
      case 'broken':
        log.error(
          rest,
          'the spool cannot be written: pings are rejected while the database is unavailable, until this process starts again',
        )
    }
  }

  return {
    async open() {
      if (maxBytes === 0) return
      try {
        spool = await openSpool({ folder, maxBytes, onProblem })
      } catch (error) {
        log.error(
          { error, folder },
          'the spool cannot be opened: pings are rejected while the database is unavailable. Set SPOOL_DIR to a folder that this process alone can write, or SPOOL_MAX_BYTES=0',
        )
        return
      }
      pings = createPingSpool(spool)
      const left = pings.pings()
      if (left > 0) log.info({ pings: left }, 'pings wait in the spool; they are recorded first')
      readBack = createReadBack({
        database: pingDatabase,
        spool: pings,
        cache,
        counts,
        recorder,
        now: databaseClock.now,
        onDropped(reason, count, error) {
          metrics.spoolDropped.inc({ reason }, count)
          log.warn({ error, reason, pings: count }, 'pings of the spool could not be recorded')
        },
        onEnd: (count) => log.info({ pings: count }, 'all pings of the spool are recorded'),
      })
    },
    pings: () => pings,
    folder: () => (pings === null ? null : folder),
    report() {
      if (pings === null) return null
      return {
        pendingSince: pings.isEmpty() ? null : (pings.oldestAt() ?? databaseClock.now()),
        refusedAt: pings.refusedAt(),
      }
    },
    async drain() {
      await readBack?.drain()
    },
    loop,
    showMetrics() {
      const oldestAt = pings?.oldestAt() ?? null
      metrics.spoolPings.set(pings?.pings() ?? 0)
      metrics.spoolBytes.set(pings?.bytes() ?? 0)
      metrics.spoolOldestSeconds.set(oldestAt === null ? 0 : Math.max(0, databaseClock.now() - oldestAt) / 1_000)
    },
    close: async () => spool?.close(),
  }
}
