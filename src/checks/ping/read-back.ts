/**
 * Records the pings of the spool once the database is available again, in their order, each once (design, section 10). The transaction that records pings also
 * moves the position of the spool, so that one that is killed, or whose commit is not known, repeats nothing.
 */

import type { Instant } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { saveChanges } from '../../store/checks/change-sets.ts'
import { findKeys, findRunPings, lockStates } from '../../store/checks/states.ts'
import { findSpoolPosition, findStoredPings, lockSpoolPosition, moveSpoolPosition } from '../../store/history/spools.ts'
import type { Database, Session } from '../../store/postgres/database.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { isConnectionError, isOutage, isRetriable, sqlStateOf } from '../../store/postgres/sqlstate.ts'
import { decideChanges } from '../change.ts'
import type { CheckCache } from './cache.ts'
import type { PingCounts } from './counts.ts'
import { findRepeats, hasRunId } from './locked.ts'
import { type PingChange, toChange } from './ping.ts'
import type { PingSpool, ReadPing } from './ping-spool.ts'

export interface ReadBackOptions {
  /** The pool of pings. */
  readonly database: Database
  readonly spool: PingSpool
  readonly cache: CheckCache
  readonly counts?: Pick<PingCounts, 'add'>
  readonly recorder: { recovered(): void; holdBack(work: () => Promise<void>): Promise<void> }
  /** By the database's clock. */
  readonly now: () => Instant
  /** `pings` of the spool cannot be recorded. */
  readonly onDropped: (reason: DropReason, pings: number, error?: unknown) => void
  /** The database did not record them now; it is tried again. */
  readonly onWait?: (error: AppError) => void
  /** All of the spool is recorded: `pings` since it began. */
  readonly onEnd: (pings: number) => void
}

/** `check_removed`: it was deleted meanwhile. `rejected`: PostgreSQL rejects the ping, or what is stored of its check cannot be read. */
export const DROP_REASONS = ['check_removed', 'rejected'] as const
export type DropReason = (typeof DROP_REASONS)[number]

export interface ReadBack {
  /** The run of a loop: some hundreds of pings. Does nothing while the database is unavailable. */
  run(): Promise<'again' | 'done'>
  /** Records all of it, or as much until `signal` aborts. Throws AppError `unavailable`. */
  drain(signal?: AbortSignal): Promise<void>
}

const BUDGET_MS = 4_000
/** So few are recorded in a moment, for which newer pings of their checks may wait. */
const FEW = 1_000
/** A ping waits for two seconds at most. */
const HOLD_MS = 1_000

export function createReadBack(options: ReadBackOptions): ReadBack {
  const { database, spool, cache, counts, recorder, now, onDropped, onWait, onEnd } = options
  /** Null: not known yet. */
  let position: number | null = null
  let recorded = 0

  /** Returns whether more waits. */
  async function readBack(): Promise<boolean> {
    if (spool.isEmpty()) return false
    if (position === null) {
      position = await findSpoolPosition(database, spool.id)
      await spool.forget(position, [])
    }
    const before = position
    if (spool.pings() > FEW) position = await recordNext(position, BUDGET_MS)
    else await recorder.holdBack(recordRest)
    if (!spool.isEmpty()) return position > before
    onEnd(recorded)
    recorded = 0
    return false
  }

  /** Those that were being written when it began, too. */
  async function recordRest(): Promise<void> {
    const giveUpAt = now() + HOLD_MS
    while (!spool.isEmpty() && now() < giveUpAt) {
      await spool.flushed()
      position = await recordNext(position!, HOLD_MS)
    }
  }

  /** Returns the new position; the same one when nothing is on disk. */
  async function recordNext(after: number, budgetMs: number): Promise<number> {
    const pings = await spool.read(after)
    const last = pings.at(-1)
    if (last === undefined) return after
    await database.session((session) => commitParts(session, pings, budgetMs))
    // From here on they count as recorded, also if their file cannot be deleted.
    position = last.position
    recorded += pings.length
    recorder.recovered()
    await spool.forget(position, pings)
    return position
  }

  /** A group that PostgreSQL rejects is halved until each rejected ping stands alone. */
  async function commitParts(session: Session, pings: readonly ReadPing[], budgetMs: number): Promise<void> {
    try {
      await commit(session, pings, budgetMs)
    } catch (error) {
      if (isConnectionError(error) || (isOutage(error) && !isRetriable(error))) throw error
      if (pings.length > 1) {
        const middle = pings.length >> 1
        await commitParts(session, pings.slice(0, middle), budgetMs)
        await commitParts(session, pings.slice(middle), budgetMs)
      } else if (!isOfPing(error)) {
        throw error
      } else {
        await session.within(budgetMs, (db) => moveSpoolPosition(db, spool.id, pings[0]!.position))
        onDropped('rejected', 1, error)
      }
    }
  }

  async function commit(session: Session, pings: readonly ReadPing[], budgetMs: number): Promise<void> {
    const publicIds = [...new Set(pings.map(({ ping }) => ping.publicId))]
    const keys = await session.within(budgetMs, (db) => findKeys(db, publicIds))
    const changes = pings.map(({ ping }) => {
      const key = keys.get(ping.publicId)
      return key === undefined ? null : toLateChange(toChange(ping, key), now())
    })
    const known = changes.filter((change) => change !== null)
    const runPings = known.filter(hasRunId).map(({ key, ping }) => ({ key, ...ping }))
    const doubtful = pings.flatMap(({ pingId }, index) => {
      const change = changes[index]
      return pingId === null || !change ? [] : [{ key: change.key, id: pingId }]
    })
    const done = await session.groupTransaction(
      budgetMs,
      (tx) =>
        inOrder([
          lockSpoolPosition(tx, spool.id),
          lockStates(tx, [...new Set(known.map(({ key }) => key))]),
          runPings.length === 0 ? new Set<string>() : findRunPings(tx, runPings),
          doubtful.length === 0 ? new Set<string>() : findStoredPings(tx, doubtful),
        ]),
      async (tx, [readTo, locked, storedRuns, storedIds]) => {
        // Another commit of the same pings was not known to be one.
        const isNew = ({ position: at, pingId }: ReadPing) =>
          at > readTo && (pingId === null || !storedIds.has(pingId.toString('hex')))
        const group = changes.map((change, index) => (isNew(pings[index]!) ? change : null))
        const repeats = findRepeats(group, storedRuns)
        const fresh = group.filter((change, index) => change !== null && !repeats.has(index)) as PingChange[]
        const { decisions, changeSet, after } = decideChanges(locked, fresh, 'earlier')
        const saving = saveChanges(tx, changeSet)
        const [version] = await inOrder([saving, moveSpoolPosition(tx, spool.id, pings.at(-1)!.position)])
        const removed = changes.filter((change, index) => change === null && pings[index]!.position > readTo)
        return { decisions, after, version, removed: removed.length }
      },
    )
    for (const { key } of known) counts?.add(key)
    if (done.version !== null) cache.refresh({ checks: done.after, version: done.version })
    report(done)
  }

  function report({
    decisions,
    removed,
  }: {
    decisions: ReturnType<typeof decideChanges>['decisions']
    removed: number
  }) {
    const unknown = decisions.filter(({ kind }) => kind === 'unknown').length
    if (removed + unknown > 0) onDropped('check_removed', removed + unknown)
    for (const decision of decisions) if (decision.kind === 'failed') onDropped('rejected', 1, decision.error)
  }

  return {
    async run() {
      try {
        return (await readBack()) ? 'again' : 'done'
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
        onWait?.(error)
        return 'done'
      }
    },
    async drain(signal) {
      while (signal?.aborted !== true && (await readBack()));
    },
  }
}

/** It counts from its arrival, and is recorded now. */
function toLateChange(change: PingChange, now: Instant): PingChange {
  return {
    ...change,
    event: { ...change.event, arrivedAt: change.at } as PingChange['event'],
    at: Math.max(now, change.at),
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
