import type { Tenant } from '../domain/access.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { turnCheck } from './turn-check.ts'

/** From here on nothing is expected of the check and nobody is alerted; pings are still stored. Paused already: nothing happens. */
export function pauseCheck(context: Context, tenant: Tenant, id: string): Promise<CheckRecord> {
  return turnCheck(context, tenant, id, 'pause')
}
