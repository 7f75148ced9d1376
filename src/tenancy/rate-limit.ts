import type { Context } from '../store/context.ts'
import { takeFromWindow } from '../store/tenancy/rate-windows.ts'

export interface CallTaken {
  readonly isAllowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Until the window ends and all calls are free again; at least 1. */
  readonly resetSeconds: number
}

const WINDOW_SECONDS = 60

/**
 * Counts one management call of an organization (design, section 3.2), over all its keys, tokens and replicas. A window of one
 * minute starts with its first call, by the database's clock. A rejected call neither counts nor extends the window.
 */
export async function takeCall(
  { database }: Pick<Context, 'database'>,
  organizationId: string,
  limitPerMinute: number,
): Promise<CallTaken> {
  const window = { bucket: `calls:${organizationId}`, limit: limitPerMinute, seconds: WINDOW_SECONDS }
  const { isAllowed, used, resetSeconds } = await takeFromWindow(database, window)
  return { isAllowed, limit: limitPerMinute, remaining: limitPerMinute - used, resetSeconds }
}
