import { ALARMING, type AuditEntry } from '../domain/audit.ts'
import { toIso } from '../domain/instant.ts'
import type { Log } from '../runtime/log.ts'

/** Writes an entry as a line of the log, with the entry's fields as the API shows them. */
export function logEntry(log: Pick<Log, 'info' | 'warn'>, entry: AuditEntry): void {
  const { id, at, actor, action, target, address, detail } = entry
  const line = { id, at: toIso(at), actor, action, target, address, detail }
  if (ALARMING.includes(action)) log.warn(line, 'audit')
  else log.info(line, 'audit')
}
