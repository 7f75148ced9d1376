/** Checks credential, rate and scope in this order, so that a rejected call also says how many calls are left. */

import type { Context } from 'koa'
import type { Authenticate } from '../../auth/authenticate.ts'
import { type Caller, includesScope, type Scope } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import type { CallTaken } from '../../tenancy/rate-limit.ts'

export type Admit = (ctx: Context, scope: Scope, address: string) => Promise<Caller>

/**
 * The returned function throws AppError `unauthenticated`, `too_many_requests` or `forbidden`. The headers are those of
 * the IETF draft "RateLimit header fields", version 06 (design, section 3.2).
 */
export function createAdmit(authenticate: Authenticate, takeCall: (caller: Caller) => Promise<CallTaken>): Admit {
  return async (ctx, scope, address) => {
    const caller = await authenticate(ctx.req.headers.authorization, address)
    const { isAllowed, limit, remaining, resetSeconds } = await takeCall(caller)
    const reset = Math.max(1, Math.ceil(resetSeconds))
    ctx.set({ 'RateLimit-Limit': `${limit}`, 'RateLimit-Remaining': `${remaining}`, 'RateLimit-Reset': `${reset}` })
    if (!isAllowed) {
      const rest = includesScope(caller.scope, 'admin') ? '' : ' (the last tenth is for callers with the scope admin)'
      const message = `more than ${limit} calls in a minute for this organization${rest}; try again in ${reset} s`
      throw new AppError('too_many_requests', message, { retryAfterSeconds: reset })
    }
    if (!includesScope(caller.scope, scope)) {
      throw new AppError('forbidden', `this call needs the scope ${scope}; the given credential has ${caller.scope}`)
    }
    return caller
  }
}
