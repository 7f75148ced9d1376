/**
 * The pings of a group that one statement may store: nothing is locked and read before (store/checks/plain-pings.ts).
 */

import { toMicrosecond } from '../../domain/instant.ts'
import { expectAfterCompletion } from '../../domain/schedule.ts'
import { newIdBytes } from '../../runtime/ids.ts'
import { type PlainPing, savePlainPings } from '../../store/checks/plain-pings.ts'
import type { KnownSpec } from '../../store/checks/states.ts'
import type { Session } from '../../store/postgres/database.ts'
import { isConnectionError } from '../../store/postgres/sqlstate.ts'
import { GroupUnknown, type Ping } from './ping.ts'

export interface Candidate {
  readonly ping: Ping
  readonly key: number
  /** Undefined: its next success is not plain, as far as is known. */
  readonly spec: KnownSpec | undefined
}

/** Returns which of the pings are stored, in their order. Throws the error of PostgreSQL, or GroupUnknown. */
export async function commitPlain(
  session: Session,
  budgetMs: number,
  group: readonly Candidate[],
): Promise<readonly boolean[]> {
  const counts = new Map<number, number>()
  for (const { key } of group) counts.set(key, (counts.get(key) ?? 0) + 1)
  // The second ping of a check follows from the first one.
  const plain = group.map((one) => (counts.get(one.key) === 1 ? toPlainPing(one) : null))
  const sent = plain.filter((ping) => ping !== null).sort((a, b) => a.key - b.key)
  if (sent.length === 0) return group.map(() => false)
  try {
    const saved = await session.within(budgetMs, (db) => savePlainPings(db, sent))
    return plain.map((ping) => ping !== null && saved.has(ping.key))
  } catch (error) {
    if (!isConnectionError(error)) throw error
    const ids = plain.map((ping) => ping?.id)
    throw new GroupUnknown(error, ids)
  }
}

function toPlainPing({ ping, key, spec: known }: Candidate): PlainPing | null {
  const { type, runId, exitCode, durationMs, body, isBodyTruncated = false } = ping
  if (known === undefined || type !== 'success' || runId !== null) return null
  const at = toMicrosecond(ping.at)
  const { expectedAt, dueAt } = expectAfterCompletion(known.spec, Math.floor(at))
  if (expectedAt === null || dueAt === null) return null
  const id = newIdBytes(at)
  return { ...known.stored, key, at, expectedAt, dueAt, id, exitCode, durationMs, body, isBodyTruncated }
}
