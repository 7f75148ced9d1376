import type { Clock } from '../runtime/clock.ts'
import type { Database } from './postgres/database.ts'

/** What every verb works with. */
export interface Context {
  readonly database: Database
  /** The database's time, so that replicas with wrong clocks agree (design, section 9). */
  readonly clock: Pick<Clock, 'now'>
}
