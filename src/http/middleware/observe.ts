/** The outermost middleware: the request's id, the headers of every response, the log line, and the metrics. */

import type { Middleware } from 'koa'
import type { Clock } from '../../runtime/clock.ts'
import { newId } from '../../runtime/ids.ts'
import type { Log } from '../../runtime/log.ts'

/** `route` is the route's pattern or `unmatched`, never the path of the request. */
export type OnRequest = (route: string, method: string, status: number, ms: number) => void

export interface ObserveOptions {
  readonly log: Log
  readonly clock: Pick<Clock, 'now'>
  readonly isStopping: () => boolean
  readonly onRequest?: OnRequest | undefined
}

export const UNMATCHED = 'unmatched'

export function observe({ log, clock, isStopping, onRequest }: ObserveOptions): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now()
    // Never the caller's own id: its text would be in our log.
    const requestId = newId(clock.now())
    ctx.state.requestId = requestId
    ctx.set({ 'X-Request-Id': requestId, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' })
    // Kept connections must close, or the stop would wait for them.
    if (isStopping()) ctx.set('Connection', 'close')
    await next()
    if (isStopping() && !ctx.headerSent) ctx.set('Connection', 'close')
    const ms = performance.now() - startedAt
    const { method, status } = ctx
    const route: string = ctx.state.route ?? UNMATCHED
    log.debug({ requestId, method, route, status, ms: Math.round(ms) }, 'request')
    onRequest?.(route, method, status, ms)
  }
}
