/** A process with a spool, whose read-back a test runs. */

import { type CommitGroup, type GroupLimits, PING_LIMITS, ROW_LOCK_MS } from '../../../src/checks/ping/commit.ts'
import type { Ping } from '../../../src/checks/ping/ping.ts'
import { createPingSpool, type PingSpool } from '../../../src/checks/ping/ping-spool.ts'
import { createReadBack, type DropReason } from '../../../src/checks/ping/read-back.ts'
import { createPingRecorder } from '../../../src/checks/ping/record.ts'
import { openSpool } from '../../../src/spool/open-spool.ts'
import { createDatabase, type Session } from '../../../src/store/postgres/database.ts'
import { CommitUnknown } from '../../../src/store/postgres/sqlstate.ts'
import { clock } from './fixture.ts'

export interface SpoolReplicaOptions {
  readonly url: string
  readonly folder: string
  readonly maxBytes?: number
  /** The session of the recorder, not that of the read-back. */
  readonly wrap?: (session: Session) => Session
  readonly commit?: CommitGroup
  /** Default: short ones, so that a ping hears `spooled` soon. */
  readonly limits?: GroupLimits
  /** As the read-back sees it. */
  readonly spoolOf?: (spool: PingSpool) => PingSpool
}

const LIMITS = { budgetMs: 300, minBudgetMs: 200, retryMs: 0 }

export async function openSpoolReplica(options: SpoolReplicaOptions) {
  const { url, folder, maxBytes = 2 ** 26, wrap = (session) => session, commit, spoolOf = (spool) => spool } = options
  const { limits = LIMITS } = options
  const database = createDatabase({
    url,
    name: 'spooling',
    connections: 4,
    genericPlans: true,
    looksUp: true,
    lockMs: ROW_LOCK_MS,
  })
  const spool = await openSpool({ folder, maxBytes, onProblem: () => {} })
  const pings = createPingSpool(spool, clock.now)
  const dropped: DropReason[] = []
  const errors: unknown[] = []
  const recorder = createPingRecorder(
    {
      database: { ...database, session: (use) => database.session((session) => use(wrap(session))) },
      now: clock.now,
      onGroup: () => {},
      onError: (error) => errors.push(error),
      limits: { alone: PING_LIMITS, spool: limits },
      spool: { pings: () => pings, isKnown: () => true, onBegin: () => {} },
    },
    ...(commit === undefined ? [] : [commit]),
  )
  const readBack = createReadBack({
    database,
    spool: spoolOf(pings),
    recorder,
    now: clock.now,
    processNow: clock.now,
    onDropped: (reason, count) => dropped.push(...Array.from({ length: count }, () => reason)),
    onEnd: () => {},
  })
  return {
    database,
    recorder,
    pings,
    readBack,
    dropped,
    errors,
    /** As if the database had been away when they arrived. */
    spool: (...given: Ping[]) => pings.append(given.map((ping) => ({ ping, pingId: null }))),
    async [Symbol.asyncDispose]() {
      await recorder.stop()
      await spool.close()
      await database.close()
    },
  }
}

const BROKEN = new Error('Connection terminated: by the test')

/** Whatever it commits is committed, and nothing says so. */
export const withUnknownCommits = (session: Session): Session => ({
  async within(budgetMs, work) {
    const result = await session.within(budgetMs, work)
    // The response to what was only read came.
    if (result instanceof Map || result === null) return result
    throw BROKEN
  },
  async groupTransaction(budgetMs, read, write) {
    await session.groupTransaction(budgetMs, read, write)
    throw new CommitUnknown(BROKEN)
  },
})
