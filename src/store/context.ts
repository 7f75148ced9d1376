import type { AuditEntry } from '../domain/audit.ts'
import type { PasswordCost } from '../domain/password.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Database } from './postgres/database.ts'

/** What every verb works with. */
export interface Context {
  readonly database: Database
  /** The database's time, so that replicas with wrong clocks agree (design, section 9). */
  readonly clock: Pick<Clock, 'now'>
  /** Called with each audit entry after its commit: it writes the log. */
  readonly onAudit?: (entry: AuditEntry) => void
  /** Of new hashes, and of the computation for an unknown account. Default: `COST` (auth/passwords.ts); tests have a lower one. */
  readonly passwordCost?: PasswordCost | undefined
}
