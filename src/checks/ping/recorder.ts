/** What a recorder of pings is, and what it needs. */

import type { Database } from '../../store/postgres/database.ts'
import type { CommitOptions } from './commit.ts'
import type { Ping, PingResult } from './ping.ts'
import type { PingSpool } from './ping-spool.ts'
import type { PingWaits } from './waits.ts'

export interface PingRecorder {
  /** `since`: when it began to wait, where its check had to be looked up first. Default: now. */
  record(ping: Ping, since?: number): Promise<PingResult>
  /** False from a group that the database failed to store until one commits, or until `recovered()`. */
  isWell(): boolean
  /** Whether pings are stored on disk, or wait there: what is recorded may lack pings that came in before. */
  isSpooling(): boolean
  recovered(): void
  /**
   * While `work` records the last pings on disk, newer ones of their checks wait in memory: they would go to the disk behind them, and the spool would
   * never be empty beside jobs that ping all the time.
   */
  holdBack(work: () => Promise<void>): Promise<void>
  waiting(): number
  /** How long the oldest ping without a result has waited, in milliseconds; also one whose group is in flight. */
  oldestWaitMs(): number
  /** What pings wait beside batches of deadlines, and otherwise. Without those that could not be stored. */
  readonly waits: Omit<PingWaits, 'onSettled'>
  /** Resolves when no ping waits and no group is in flight, after 20 ms at the latest: for background work. */
  yieldToPings(): Promise<void>
  /** Rejects new pings, and resolves when all others have their results. */
  stop(): Promise<void>
}

export interface PingRecorderOptions extends CommitOptions {
  /** A pool of its own, so that management never takes the connection that pings need. */
  readonly database: Database
  /** These pings are lost, as far as is known. */
  readonly onError: (error: unknown, pings: number) => void
  /** Null: none. */
  readonly spool?: {
    /** Null while it is not open. */
    readonly pings: () => Pick<PingSpool, 'accepts' | 'append' | 'flushed' | 'holds' | 'isEmpty' | 'noteRefusal'> | null
    /** Whether a check has this public id, as far as is known: invented ids must not fill the spool. */
    readonly isKnown: (publicId: string) => boolean
    /** The database stores no pings, and they are spooled from now on. */
    readonly onBegin: (error: unknown) => void
  } | null
}
