/** What tests of two installations on one cluster ask of each. */

import type { TestDatabase } from '../support/database.ts'
import { readMetric, type TestOperator } from '../support/operator.ts'
import type { Workplace } from '../support/workplace.ts'

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
