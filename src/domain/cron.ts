/** Cron schedules: an expression in its dialect, and the slots that it names. */

import { type Cron, type Dialect, parseCron } from './cron-expression.ts'
import { nextCronSlot } from './cron-slots.ts'
import { nextKubernetesSlot } from './kubernetes-slots.ts'
import { findTimeZone } from './time-zone.ts'

export {
  type Cron,
  DIALECTS,
  type Dialect,
  InvalidSchedule,
  isEitherDay,
  matchesDay,
  parseCron,
} from './cron-expression.ts'

/** The first slot strictly after an instant, both in milliseconds since the epoch; null when none comes. */
export function nextSlot(cron: Cron, afterMs: number): number | null {
  return cron.dialect === 'cron' ? nextCronSlot(cron, afterMs) : nextKubernetesSlot(cron, afterMs)
}

/** Whether a schedule names a time of a date that exists; a zone that always skips this hour is not looked at. */
export function comes(cron: Cron): boolean {
  return nextSlot({ ...cron, zone: findTimeZone('UTC')! }, 0) !== null
}

/** Who reads the line of a check that was a HeartbeatCheck's: Kubernetes where cron would never run the line. */
export function readerOf(line: string): Dialect {
  try {
    return comes(parseCron(line, 'UTC', 'cron')) ? 'cron' : 'kubernetes'
  } catch {
    return 'kubernetes'
  }
}
