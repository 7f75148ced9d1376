/** Serves all below `/badge/` (design, section 3.7). The key in the path is the only credential. */

import type { Middleware } from 'koa'
import type { FindBadge } from '../../checks/find-badge.ts'
import { AppError, notFound } from '../../domain/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import { BADGES } from '../limits.ts'
import { createWindows } from '../middleware/windows.ts'
import { readParameters } from '../parameters.ts'
import { BADGE_PREFIX, parseBadgePath } from './path.ts'
import { renderBadge } from './render.ts'

const METHODS = ['GET', 'HEAD', 'OPTIONS']

const ROUTES = {
  check: '/badge/{badge_key}/{slug}',
  tag: '/badge/{badge_key}/tag/{tag}',
  project: '/badge/{badge_key}',
}

/** Goes inside `renderErrors`. `most`: badges of a key in a minute. */
export function serveBadges(find: FindBadge, clock: Pick<Clock, 'now'>, most = BADGES): Middleware {
  const take = createWindows(
    clock,
    most,
    (seconds) => `more than ${most} badges of this key in a minute; try again in ${seconds} s`,
  )
  return async (ctx, next) => {
    if (!ctx.path.startsWith(BADGE_PREFIX)) return next()
    ctx.state.hasPlainErrors = true
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
