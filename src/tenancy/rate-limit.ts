import { includesScope, type Scope } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import type { Context } from '../store/context.ts'
import { takeFromSlidingWindow } from '../store/tenancy/rate-windows.ts'

export interface CallTaken {
  readonly isAllowed: boolean
  /** Of the organization. */
  readonly limit: number
  /** Calls that this caller may still make now. */
  readonly remaining: number
  /** Until a call is allowed again, when none remains; otherwise until the present window ends. At least 1. */
  readonly resetSeconds: number
}

const WINDOW_SECONDS = 60

/** The last tenth of the limit is for admins, who can so revoke a key that uses up the rest. */
export function shareOf(scope: Scope, limitPerMinute: number): number {
  return includesScope(scope, 'admin') ? limitPerMinute : Math.max(1, Math.floor((limitPerMinute * 9) / 10))
}

/** Counts a call of an organization, over all replicas (design, section 3.2). A rejected call does not count. */
export async function takeCall(
  { database }: Pick<Context, 'database'>,
  organizationId: string,
  scope: Scope,
  limitPerMinute: number,
): Promise<CallTaken> {
  const limit = shareOf(scope, limitPerMinute)
  const window = { bucket: `calls:${organizationId}`, limit, seconds: WINDOW_SECONDS }
  const { isAllowed, counted, resetSeconds } = await takeFromSlidingWindow(database, window)
  return { isAllowed, limit: limitPerMinute, remaining: Math.max(0, limit - counted), resetSeconds }
}

/** Counts a check that a ping creates. Throws AppError `too_many_requests` for one too many. */
export async function takeCreation(
  { database }: Pick<Context, 'database'>,
  projectId: string,
  limitPerMinute: number,
): Promise<void> {
  const window = { bucket: `creations:${projectId}`, limit: limitPerMinute, seconds: WINDOW_SECONDS }
  const { isAllowed, resetSeconds: retryAfterSeconds } = await takeFromSlidingWindow(database, window)
  if (isAllowed) return
  const reason = { why: 'many_creations', most: limitPerMinute, seconds: retryAfterSeconds } as const
  throw new AppError('too_many_requests', reason, { retryAfterSeconds })
}
