/**
 * Up to which flip the history of a declared check is recorded as Events in its cluster. The status of the resource cannot hold it: its
 * times are whole seconds, as in all of Kubernetes, and it is gone with the resource.
 */

import { FIRST_ID } from '../../domain/ids.ts'
import type { Queryable } from '../postgres/database.ts'
import { FLIP_COLUMNS, type FlipRecord, type FlipRow, toFlip } from './flips.ts'

/** Of more flips between two reports only the newest are reported. */
const MAX_FLIPS = 100

/** Flips and outages of a check after the reported one, oldest first. A miss that changed no status is none. */
export async function listUnreportedFlips(tx: Queryable, key: number): Promise<FlipRecord[]> {
  const { rows } = await tx.query<FlipRow>({
    name: 'list_unreported_flips',
    text: `select ${FLIP_COLUMNS} from flips f
      where f.check_key = $1 and f.id > coalesce((select r.flip_id from reported_flips r where r.check_key = $1), '${FIRST_ID}')
        and (f.from_status is distinct from f.to_status or f.reason = 'outage')
      order by f.id desc limit $2`,
    values: [key, MAX_FLIPS],
  })
  return rows.map(toFlip).reverse()
}

/** Never goes back: two leaders may save one after the other. Saves nothing of a check that is gone. */
export async function saveReportedFlip(tx: Queryable, key: number, flipId: string): Promise<void> {
  await tx.query({
    name: 'save_reported_flip',
    text: `insert into reported_flips as r (check_key, flip_id) select key, $2 from checks where key = $1
      on conflict (check_key) do update set flip_id = excluded.flip_id where r.flip_id < excluded.flip_id`,
    values: [key, flipId],
  })
}

/** SQL: the history so far of checks that become a resource's is not reported. `source`: rows with a column `key`. */
export const skipHistoryOf = (source: string): string =>
  `insert into reported_flips (check_key, flip_id)
    select key, coalesce((select f.id from flips f where f.check_key = key order by f.id desc limit 1), '${FIRST_ID}') from ${source}
    on conflict (check_key) do update set flip_id = excluded.flip_id`

/** The history so far is not reported: the resource of the check was deleted and is there again. */
export async function skipHistory(tx: Queryable, key: number): Promise<void> {
  await tx.query(skipHistoryOf('(values ($1::int8)) c (key)'), [key])
}
