/** Commits a group with row locks, in two round trips: lock and read its checks, then save. */

import { saveChanges } from '../../store/checks/change-sets.ts'
import { findRunPings, type LockedCheck, lockStates, runPingKey } from '../../store/checks/states.ts'
import type { Session } from '../../store/postgres/database.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { CommitUnknown } from '../../store/postgres/sqlstate.ts'
import { decideChanges, inCircumstances, withWarnings } from '../change.ts'
import { GroupUnknown, type PingChange, type PingOutcome, pingIdsOf, toOutcome } from './ping.ts'

export interface LockedCommit {
  /** In the order of the group. */
  readonly outcomes: readonly PingOutcome[]
  /** The rows that were saved, as they are now. */
  readonly after: readonly LockedCheck[]
}

/** `skip locked`: rows that are gone count as `locked elsewhere`. Throws the error of PostgreSQL, or GroupUnknown. */
export async function commitLocked(
  session: Session,
  budgetMs: number,
  group: readonly PingChange[],
  wait: 'wait' | 'skip locked',
): Promise<LockedCommit> {
  const runPings = group.filter(hasRunId).map(({ key, ping }) => ({ key, ...ping }))
  let pingIds: readonly (Buffer | null)[] = []
  const committed = session.groupTransaction(
    budgetMs,
    async (tx) => {
      const [locked, stored] = await inOrder([
        lockStates(tx, [...new Set(group.map(({ key }) => key))], wait),
        runPings.length === 0 ? new Set<string>() : findRunPings(tx, runPings),
      ])
      const judged = withWarnings(group, locked)
      const repeats = findRepeats(judged, stored)
      const isFresh = judged.map((_, index) => !repeats.has(index))
      const fresh = judged.filter((_, index) => isFresh[index])
      const now = fresh.at(-1)?.at ?? 0
      const decided = await inCircumstances(tx, locked, now, (around) =>
        decideChanges(locked, fresh, 'earlier', around),
      )
      return { ...decided, repeats, isFresh }
    },
    async (tx, { decisions, changeSet, after, repeats, isFresh }) => {
      pingIds = pingIdsOf(isFresh, decisions, changeSet.pings)
      const outcomes: PingOutcome[] = []
      let decided = 0
      group.forEach((_, index) => {
        if (repeats.has(index)) outcomes.push(outcomeOfRepeat(outcomes[repeats.get(index)!]))
        else {
          const outcome = toOutcome(decisions[decided++]!)
          outcomes.push(outcome === 'unknown' && wait === 'skip locked' ? LOCKED_ELSEWHERE : outcome)
        }
      })
      await saveChanges(tx, changeSet)
      return { outcomes, after }
    },
  )
  return committed.catch((error) => {
    throw error instanceof CommitUnknown ? new GroupUnknown(error.cause, pingIds) : error
  })
}

const LOCKED_ELSEWHERE: PingOutcome = { kind: 'locked elsewhere', error: null }
const STORED_BEFORE = -1

type RunPing = PingChange & { readonly ping: { readonly runId: string } }
export const hasRunId = (change: PingChange): change is RunPing => change.ping.runId !== null

/** Pings that repeat a ping of the same run and type, by their index. The value is the index of the first one, or STORED_BEFORE. */
export function findRepeats(group: readonly PingChange[], stored: ReadonlySet<string>): Map<number, number> {
  const repeats = new Map<number, number>()
  const firsts = new Map<string, number>()
  group.forEach((change, index) => {
    if (!hasRunId(change)) return
    const runPing = runPingKey(change.key, change.ping.runId, change.ping.type)
    const first = stored.has(runPing) ? STORED_BEFORE : firsts.get(runPing)
    if (first === undefined) firsts.set(runPing, index)
    else repeats.set(index, first)
  })
  return repeats
}

/** A repeat is a duplicate only if the first one is stored; otherwise it has the outcome of the first one. `first`: undefined if stored before. */
function outcomeOfRepeat(first: PingOutcome | undefined): PingOutcome {
  return first === undefined || first === 'stored' || first === 'run_refused' ? 'duplicate' : first
}
