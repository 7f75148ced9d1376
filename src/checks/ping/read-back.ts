/**
 * Records the pings of the spool once the database is available again, in their order, each once (design, section 10):
 * the transaction that records pings also moves the position of the spool. A ping whose row another session has locked
 * goes to the end of the spool, with its arrival.
 */

import type { Instant } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { idBytesOf } from '../../runtime/ids.ts'
import { SpoolBroken, SpoolFull } from '../../spool/errors.ts'
import { saveChanges } from '../../store/checks/change-sets.ts'
import { findKeys, findRunPings, lockStates } from '../../store/checks/states.ts'
import { findStoredPings, lockSpoolPosition, moveSpoolPosition } from '../../store/history/spools.ts'
import type { Database, Session } from '../../store/postgres/database.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import {
  isConnectionError,
  isOutage,
  isRetriable,
  LOCK_NOT_AVAILABLE,
  sqlStateOf,
} from '../../store/postgres/sqlstate.ts'
import { decideChanges, inCircumstances, withWarnings } from '../change.ts'
import type { PingCounts } from './counts.ts'
import { findRepeats, hasRunId } from './locked.ts'
import { type PingChange, toChange } from './ping.ts'
import type { LockedPing, PingSpool, ReadPing } from './ping-spool.ts'

export interface ReadBackOptions {
  /** The pool of pings. */
  readonly database: Database
  readonly spool: PingSpool
  readonly counts?: Pick<PingCounts, 'add'>
  readonly recorder: { isWell(): boolean; recovered(): void; drain(work: () => Promise<void>): Promise<void> }
  /** The database's clock, for times that are stored. */
  readonly now: () => Instant
  /** This process's clock, for limits of time. */
  readonly processNow: () => number
  /** `pings` of the spool cannot be recorded. */
  readonly onDropped: (reason: DropReason, pings: number, error?: unknown) => void
  /** Another session has locked the rows of so many pings; they are tried again. */
  readonly onLocked?: (pings: number) => void
  /** All of the spool is recorded: `pings` since it began. */
  readonly onEnd: (pings: number) => void
}

/** `check_removed`: it was deleted meanwhile. `rejected`: PostgreSQL rejects the ping, or what is stored of its check cannot be read. */
export const DROP_REASONS = ['check_removed', 'rejected'] as const
export type DropReason = (typeof DROP_REASONS)[number]

export type ReadBack = ReturnType<typeof createReadBack>

const BUDGET_MS = 4_000
/** So few are recorded in a moment, for which new pings may queue. */
const FEW = 1_000
/** New pings wait for it, and half a second longer at most (record.ts). */
const DRAIN_MS = 1_000

type Wait = 'wait' | 'skip locked'

export function createReadBack(options: ReadBackOptions) {
  const { database, spool, counts, recorder, now, processNow, onDropped, onLocked, onEnd } = options
  /** Null: not known yet. */
  let position: number | null = null
  let recorded = 0

  /** Returns whether more waits. */
  async function readBack(): Promise<boolean> {
    // Nothing is left to record: this only ends the spooling.
    if (spool.isCaughtUp() && recorder.isWell()) await recorder.drain(async () => {})
    if (spool.isEmpty()) return false
    if (position === null) {
      position = await lockSpoolPosition(database, spool.id)
      await spool.forget(position, [])
    }
    const before = position
    if (spool.isCaughtUp() || spool.waiting() > FEW) await recordNext(BUDGET_MS)
    else await recorder.drain(recordRest)
    if (!spool.isEmpty()) return position > before
    onEnd(recorded)
    recorded = 0
    return false
  }

  /** Those that were being written when it began, too. */
  async function recordRest(): Promise<void> {
    const giveUpAt = processNow() + DRAIN_MS
    while (!spool.isCaughtUp() && processNow() < giveUpAt) {
      await spool.flushed()
      await recordNext(DRAIN_MS)
    }
  }

  async function recordNext(budgetMs: number): Promise<void> {
    const pings = await spool.read(position!)
    const last = pings.at(-1)
    if (last === undefined) return
    const locked = await database.session((session) => commitParts(session, pings, budgetMs, 'wait'))
    if (locked.length > 0) onLocked?.(locked.length)
    // The database has stored nothing of them; it works all the same.
    recorder.recovered()
    if (locked.length === pings.length && isRest(pings)) {
      spool.noteLocked(locked)
      return
    }
    // From here on they count as recorded, also if their file cannot be deleted.
    position = last.position
    recorded += pings.length - locked.length
    await spool.forget(position, pings)
  }

  /** Whether nothing waits but these: they stay where they are while their rows are locked. */
  const isRest = (pings: readonly ReadPing[]) => spool.isCaughtUp() || spool.pings() === pings.length

  /** Halves a group that PostgreSQL rejects. Returns pings of rows that another session has locked. */
  async function commitParts(
    session: Session,
    pings: readonly ReadPing[],
    budgetMs: number,
    wait: Wait,
  ): Promise<readonly LockedPing[]> {
    try {
      return await commit(session, pings, budgetMs, wait)
    } catch (error) {
      if (wait === 'wait' && sqlStateOf(error) === LOCK_NOT_AVAILABLE)
        return commitParts(session, pings, budgetMs, 'skip locked')
      if (isConnectionError(error) || (isOutage(error) && !isRetriable(error))) throw error
      // Of a locked row, for whose pings the spool has no room at its end: all of them stay until the row is free.
      if (error instanceof SpoolFull || error instanceof SpoolBroken) throw error
      if (pings.length > 1) {
        const middle = pings.length >> 1
        const head = await commitParts(session, pings.slice(0, middle), budgetMs, wait)
        return [...head, ...(await commitParts(session, pings.slice(middle), budgetMs, wait))]
      }
      if (!isOfPing(error)) throw error
      await session.within(budgetMs, (db) => moveSpoolPosition(db, spool.id, pings[0]!.position))
      onDropped('rejected', 1, error)
      return []
    }
  }

  async function commit(
    session: Session,
    pings: readonly ReadPing[],
    budgetMs: number,
    wait: Wait,
  ): Promise<readonly LockedPing[]> {
    const publicIds = [...new Set(pings.map(({ ping }) => ping.publicId))]
    const keys = await session.within(budgetMs, (db) => findKeys(db, publicIds))
    const group = pings.map((read) => {
      const key = keys.get(read.ping.publicId)
      return { read, change: key === undefined ? null : toLateChange(toChange(read.ping, key), idOf(read), now()) }
    })
    const known = group.flatMap(({ change }) => change ?? [])
    const runPings = known.filter(hasRunId).map(({ key, ping }) => ({ key, ...ping }))
    const doubtful = group.flatMap(({ read: { pingId }, change }) =>
      pingId === null || change === null ? [] : { key: change.key, id: pingId },
    )
    const result = await session.groupTransaction(
      budgetMs,
      async (tx) => {
        const [readTo, states, storedRuns, storedIds] = await inOrder([
          lockSpoolPosition(tx, spool.id),
          lockStates(tx, [...new Set(known.map(({ key }) => key))], wait),
          runPings.length === 0 ? new Set<string>() : findRunPings(tx, runPings),
          doubtful.length === 0 ? new Set<string>() : findStoredPings(tx, doubtful),
        ])
        // Another commit of the same pings may have been stored although its response was lost.
        const unstored = group.filter(
          ({ read: { position: at, pingId } }) =>
            at > readTo && (pingId === null || !storedIds.has(pingId.toString('hex'))),
        )
        const mine = new Set(states.map(({ key }) => key))
        const locked: LockedPing[] = []
        const changes: PingChange[] = []
        let removed = 0
        for (const { read, change } of unstored) {
          if (change === null) removed += 1
          else if (wait === 'wait' || mine.has(change.key)) changes.push(change)
          else locked.push({ ...read, pingId: idOf(read), key: change.key })
        }
        const isLeft = locked.length === pings.length && isRest(pings)
        // Before the position moves past them: a process that is killed in between finds both, and their ids.
        if (!isLeft) await spool.postpone(locked)
        const judged = withWarnings(changes, states)
        const repeats = findRepeats(judged, storedRuns)
        const fresh = judged.filter((_, index) => !repeats.has(index))
        const decided = await inCircumstances(tx, states, now(), (around) =>
          decideChanges(states, fresh, 'earlier', around),
        )
        return { ...decided, removed, locked, isLeft }
      },
      async (tx, { decisions, changeSet, removed, locked, isLeft }) => {
        const moved = isLeft ? undefined : moveSpoolPosition(tx, spool.id, pings.at(-1)!.position)
        await inOrder([saveChanges(tx, changeSet), moved])
        return { decisions, removed, locked }
      },
    )
    for (const { key } of known) counts?.add(key)
    const gone = result.removed + result.decisions.filter(({ kind }) => kind === 'unknown').length
    if (gone > 0) onDropped('check_removed', gone)
    for (const decision of result.decisions) if (decision.kind === 'failed') onDropped('rejected', 1, decision.error)
    return result.locked
  }

  /** Which id the ping has once it is recorded. Of a copy of a postponed ping it is that of the ping. */
  function idOf({ position: at, ping, pingId }: ReadPing): Buffer {
    return pingId ?? idBytesOf(`${spool.id}/${at}`, ping.at)
  }

  return {
    /** The run of a loop: some hundreds of pings. Does nothing while the database is unavailable. */
    async run(): Promise<'again' | 'done'> {
      try {
        return (await readBack()) ? 'again' : 'done'
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
        return 'done'
      }
    },
    /** Records all of it, or as much until `signal` aborts. Throws AppError `unavailable`. */
    async drain(signal?: AbortSignal): Promise<void> {
      while (signal?.aborted !== true && (await readBack()));
    },
  }
}

/** It counts from its arrival, and is recorded now. */
function toLateChange(change: PingChange, id: Buffer, now: Instant): PingChange {
  return {
    ...change,
    event: { ...change.event, arrivedAt: change.at } as PingChange['event'],
    at: Math.max(now, change.at),
    ping: { ...change.ping, id },
  }
}

/**
 * Whether the ping itself is at fault, so that it would never be recorded: its data (22, 23), a trigger (P0), or what is stored of its check (XX, or
 * an error of ours). Races, missing rights and missing tables pass: a client has its 200, and the ping waits.
 */
function isOfPing(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === undefined || /^(22|23|P0|XX)/.test(state)
}
