import type { Clock } from '../runtime/clock.ts'
import type { Database } from '../store/database.ts'

/** What the verbs of identity and tenancy work with. */
export interface Parts {
  readonly database: Database
  /** The database's time: replicas with wrong clocks agree on what has expired (design, section 9). */
  readonly clock: Pick<Clock, 'now'>
}
