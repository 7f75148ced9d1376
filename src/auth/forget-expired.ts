import { deleteOldWindows } from '../store/rate-windows.ts'
import { deleteExpiredRefreshTokens } from '../store/refresh-tokens.ts'
import type { Parts } from './parts.ts'
import { LOGIN_WINDOW_SECONDS } from './throttle.ts'

const BATCH = 1_000

/**
 * Deletes refresh tokens past their thirty days, and counters whose window is over, a batch of each. Spent tokens are kept
 * until then: only what is remembered can be recognised when it comes back. `isMore`: another batch is waiting.
 */
export async function forgetExpired(
  parts: Parts,
): Promise<{ refreshTokens: number; rateWindows: number; isMore: boolean }> {
  const refreshTokens = await deleteExpiredRefreshTokens(parts.database, parts.clock.now(), BATCH)
  const rateWindows = await deleteOldWindows(parts.database, LOGIN_WINDOW_SECONDS, BATCH)
  return { refreshTokens, rateWindows, isMore: refreshTokens === BATCH || rateWindows === BATCH }
}
