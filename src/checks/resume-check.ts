import type { Tenant } from '../domain/access.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { turnCheck } from './turn-check.ts'

/** The check is new again and armed from now: a job that died in the pause is noticed. Not paused: nothing happens. */
export function resumeCheck(context: Context, tenant: Tenant, id: string): Promise<CheckRecord> {
  return turnCheck(context, tenant, id, 'resume')
}
