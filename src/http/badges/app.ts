/** The app serves all below `/badge/` (design, section 3.7). The key in the path is the only credential. */

import Koa, { type Context } from 'koa'
import type { FindBadge } from '../../checks/find-badge.ts'
import { AppError, notFound } from '../../domain/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { BADGES } from '../limits.ts'
import { renderErrors } from '../middleware/errors.ts'
import { type OnRequest, observe } from '../middleware/observe.ts'
import { createWindows } from '../middleware/windows.ts'
import { readParameters } from '../parameters.ts'
import { parseBadgePath } from './path.ts'
import { renderBadge } from './render.ts'

export interface BadgeAppOptions {
  readonly find: FindBadge
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
  /** When true, responses ask clients to close their connections. */
  readonly isStopping: () => boolean
  readonly onRequest?: OnRequest
  /** Badges of a key in a minute. For tests. */
  readonly mostRequests?: number
}

const METHODS = ['GET', 'HEAD', 'OPTIONS']

const ROUTES = {
  check: '/badge/{badge_key}/{slug}',
  tag: '/badge/{badge_key}/tag/{tag}',
  project: '/badge/{badge_key}',
}

export function createBadgeApp(options: BadgeAppOptions): Koa {
  const { find, clock, log, isStopping, onRequest, mostRequests = BADGES } = options
  const take = createWindows(
    clock,
    mostRequests,
    (seconds) => `more than ${mostRequests} badges of this key in a minute; try again in ${seconds} s`,
  )
  const app = new Koa({ env: 'production' })
  // An error after the response has begun: a client that left. Koa would print it.
  app.on('error', (error) => log.debug({ error }, 'response not delivered'))
  app.use(observe({ log, clock, isStopping, onRequest }))
  app.use((ctx, next) => {
    ctx.state.hasPlainErrors = true
    return next()
  })
  app.use(renderErrors(log))
  app.use(serve)
  return app

  async function serve(ctx: Context): Promise<void> {
    // Pages of any origin may show it: the key is the capability.
    ctx.set('Access-Control-Allow-Origin', '*')
    const path = parseBadgePath(ctx.path)
    if (path === null) throw notFound('badge')
    const { badgeKey, subject, format } = path
    ctx.state.route = ROUTES[subject.kind]
    if (!METHODS.includes(ctx.method)) {
      ctx.set('Allow', METHODS.join(', '))
      throw new AppError('method_not_allowed', `${ctx.method} is not allowed here; GET, HEAD, OPTIONS are`)
    }
    if (ctx.method === 'OPTIONS') {
      ctx.set({ Allow: METHODS.join(', '), 'Access-Control-Allow-Methods': 'GET, HEAD' })
      ctx.status = 204
      return
    }
    take(badgeKey)
    const found = await find(badgeKey, subject)
    if (found === null) throw notFound('badge')
    const query = readParameters(ctx.querystring, 'parameters')
    const { type, text } = await renderBadge(format, found, query.get('states') === '2')
    ctx.set({
      'Cache-Control': 'public, max-age=60',
      'Content-Type': type,
      // An image that is opened as a page of its own runs and loads nothing.
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    })
    ctx.body = text
  }
}
