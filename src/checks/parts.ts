import type { Clock } from '../runtime/clock.ts'
import type { Database } from '../store/postgres/database.ts'

/** What every verb of this folder works with. */
export interface Parts {
  readonly database: Database
  /** The database's time: replicas with wrong clocks agree (design, section 9). */
  readonly clock: Pick<Clock, 'now'>
}
