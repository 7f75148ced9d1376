/** What the history of a check has of its Jobs. */

import { PING_TYPES } from '../../src/domain/check.ts'
import type { Scene } from './operator.ts'

export interface JobPing {
  readonly type: string
  readonly runId: string | null
  readonly at: number
  readonly duration: number | null
  readonly exitCode: number | null
}

/** All of the check with this id, oldest first. Read past the API, which limits the rate of calls. */
export async function readJobPings({ sql }: Pick<Scene, 'sql'>, checkId: string): Promise<JobPing[]> {
  const { rows } = await sql(
    `select p.type, run_id as "runId", p.created_at as at, duration_ms as duration, exit_code as "exitCode"
       from pings p join checks c on c.key = p.check_key where c.id = $1 order by p.id`,
    checkId,
  )
  return (rows as (JobPing & { type: number })[]).map((row) => ({ ...row, type: PING_TYPES[row.type]! }))
}
