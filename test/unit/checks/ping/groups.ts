/** Groups of the recorder that a test commits, breaks and rejects as it likes: there is no database. */

import type { CommitGroup, GroupLimits } from '../../../../src/checks/ping/commit.ts'
import type { Ping, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import type { PingRecorder, PingResult } from '../../../../src/checks/ping/record.ts'
import type { Database, Session } from '../../../../src/store/postgres/database.ts'
import { settle } from '../../../support/until.ts'

export interface Group {
  /** The public ids of its pings. */
  readonly pings: string[]
  readonly connection: number
  readonly wait: 'wait' | 'skip locked'
  /** How long the database had for it. */
  readonly limits: GroupLimits
  /** Ends it; the same outcome for all pings when it is one. */
  end(outcome: PingOutcome | PingOutcome[]): Promise<void>
  /** Its commit throws, which is a fault of the service. */
  fail(error: Error): Promise<void>
}

export const BROKEN = new Error('Connection terminated unexpectedly')
export const unsent: PingOutcome = { kind: 'unsent', error: BROKEN }
export const lost: PingOutcome = { kind: 'lost', error: BROKEN }
export const locked: PingOutcome = { kind: 'locked elsewhere', error: null }

export function createGroups({ isConnectable }: { isConnectable: () => boolean }) {
  const groups: Group[] = []
  /** Pings in the order of their results. */
  const settled: [string, PingResult][] = []
  let connections = 0
  const database = {
    async session<T>(use: (session: Session) => Promise<T>): Promise<T> {
      await settle()
      if (!isConnectable()) throw BROKEN
      connections += 1
      return use({ number: connections } as unknown as Session)
    },
  } as Database
  const commit: CommitGroup = async (session, group, { wait, limits }) => {
    // As the real one, which sends its statement a microtask later.
    await undefined
    const { promise, resolve, reject } = Promise.withResolvers<readonly PingOutcome[]>()
    groups.push({
      pings: group.map(({ ping }) => ping.publicId),
      connection: (session as unknown as { number: number }).number,
      wait,
      limits,
      async end(outcome) {
        resolve(Array.isArray(outcome) ? outcome : group.map(() => outcome))
        await settle()
        await settle()
      },
      async fail(error) {
        reject(error)
        await settle()
        await settle()
      },
    })
    return promise
  }
  return {
    groups,
    settled,
    database,
    commit,
    connections: () => connections,
    /** Records a ping of each id, and lets the group that they make go out. */
    async send(recorder: PingRecorder, ids: readonly string[]): Promise<void> {
      for (const id of ids) void recorder.record({ publicId: id } as Ping).then((value) => settled.push([id, value]))
      await settle()
      await settle()
    },
    resultOf: (id: string) => settled.find(([of]) => of === id)?.[1],
  }
}
