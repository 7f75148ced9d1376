/** Counts the 401 responses of each address in this process. A valid credential passes from any address. */

import type { Middleware } from 'koa'
import { AppError } from '../../domain/errors.ts'
import { addressGroup } from '../../runtime/addresses.ts'
import type { Clock } from '../../runtime/clock.ts'
import { REJECTIONS } from '../limits.ts'
import { createWindows } from './windows.ts'

/** The returned function counts a wrong credential. It throws AppError `too_many_requests` for one too many. */
export function createRejectionCount(clock: Pick<Clock, 'now'>) {
  const describe = (seconds: number) =>
    `more than ${REJECTIONS} requests with a wrong credential in a minute from this address; try again in ${seconds} s with a valid one`
  const take = createWindows(clock, REJECTIONS, describe)
  return (address: string): void => take(addressGroup(address))
}

/** Goes inside `renderErrors`. `addressOf`: the client's address of a request. */
export function limitRejections(
  clock: Pick<Clock, 'now'>,
  addressOf: (ctx: Parameters<Middleware>[0]) => string,
): Middleware {
  const count = createRejectionCount(clock)
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthenticated') count(addressOf(ctx))
      throw error
    }
  }
}
