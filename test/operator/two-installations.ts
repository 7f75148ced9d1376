/** Two installations, that is two databases, on one cluster, and what tests ask of each. */

import type { OperatorOptions } from '../../src/operator/operator.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import {
  fasterClock,
  readMetric,
  startTestOperator,
  type TestOperator,
  type TestOperatorOptions,
} from '../support/operator.ts'
import { use, useEach } from '../support/use.ts'
import { openWorkplace, type Workplace } from '../support/workplace.ts'
import { FASTER } from './scene.ts'

/** Each publishes URLs of its own, and has its own Lease. Both have one clock, which is `FASTER`. */
export function useTwoInstallations() {
  const cluster = use(() => startFakeCluster({ secondMs: 1_000 / FASTER }))
  const clock = fasterClock(FASTER)
  const one = use(createTestDatabase)
  const two = use(createTestDatabase)
  const place = useEach(() => openWorkplace(cluster))
  return {
    cluster,
    one,
    two,
    place,
    start(
      testDatabase: TestDatabase,
      changes: Partial<OperatorOptions> = {},
      options: Partial<TestOperatorOptions> = {},
    ): Promise<TestOperator> {
      const name = testDatabase === one ? 'one' : 'two'
      return startTestOperator({
        connection: cluster.connection,
        testDatabase,
        leaseNamespace: changes.leaseNamespace ?? `${place.name}-${name}`,
        changes: {
          namespaces: [place.name],
          pingUrl: () => `http://${name}`,
          clock,
          pollMs: 300,
          resyncMs: 900,
          ...changes,
        },
        ...options,
      })
    },
    checkOf: (testDatabase: TestDatabase, name: string) => checksIn(place, testDatabase, name),
  }
}

export async function idOf({ database }: TestDatabase): Promise<string> {
  return (await database.query<{ id: string }>('select id from installation')).rows[0]!.id
}

/** Checks before tombstones: `check <id>`, `tombstone <id>`. */
export async function checksIn(place: Workplace, { database }: TestDatabase, name: string) {
  const { rows } = await database.query<{ id: string; tombstones: number }>(
    `select id, 0 as tombstones from checks where kubernetes_namespace = $1 and kubernetes_name = $2
     union all select id, 1 from tombstones where kubernetes_namespace = $1 and kubernetes_name = $2`,
    [place.name, name],
  )
  return rows.map(({ id, tombstones }) => `${tombstones === 1 ? 'tombstone' : 'check'} ${id}`)
}

export const conflicts = (operator: TestOperator) => readMetric(operator, 'heartbeat_installation_conflicts')
