/** The dashboard as a Koa application: sessions, the check of the sender's page, headers, errors as pages. */

import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { createFindDashboardCaller, type DashboardCaller, isSessionToken } from '../../auth/sessions.ts'
import { includesScope } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { sitePathOf } from '../../domain/site.ts'
import { addressGroup } from '../../runtime/addresses.ts'
import type { Log } from '../../runtime/log.ts'
import { RequestAborted } from '../body.ts'
import type { FindClientAddress } from '../client-address.ts'
import { encodingOf } from '../compress.ts'
import { readForm } from '../form.ts'
import { DASHBOARD_REQUESTS } from '../limits.ts'
import { createRejectionCount } from '../middleware/limit-rejections.ts'
import { type OnRequest, observe } from '../middleware/observe.ts'
import { createWindows } from '../middleware/windows.ts'
import { cutParameters, readParameters } from '../parameters.ts'
import { ASSETS_PATH, readAssets } from './assets.ts'
import { renderErrorPages } from './errors.ts'
import type { Around } from './layout.ts'
import { LIVE_PATH, type Live } from './live.ts'
import { createRejectForeignPage, isOpenedInClear, ownPath, pathOfReferrer } from './own-page.ts'
import type { Dashboard, Page, PageRoute, Redirect, Request } from './page.ts'
import { PAGES } from './routes.ts'
import {
  cookieName,
  type Document,
  isSecure,
  sendAsset,
  sendDocument,
  sendRedirect,
  sendResponse,
  toDocument,
} from './send.ts'
import { createSharedReads } from './shared-reads.ts'
import { createTurns, type Turns } from './turns.ts'

export interface DashboardParts extends Dashboard {
  readonly log: Log
  /** When true, responses ask clients to close their connections. */
  readonly isStopping: () => boolean
  readonly findClientAddress: FindClientAddress
  readonly onRequest?: OnRequest
  readonly live: Live
  /** For tests. */
  readonly turns?: Turns
  /** Requests of one user in a minute. For tests. */
  readonly mostRequests?: number
}

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** The script sends it with requests that no user asked for: the page must be read at this time or later. */
const REFRESH_HEADER = 'X-Refresh'
const LONG_ADDRESS = 700
const LOG_IN_PATH = '/login'
/** Parameters in which the word of a notice is looked for, also for a page that says what is wrong with them. */
const MOST_LOOKED_AT = 50

/** Mount its `callback()` on a node server for all paths that are not the API's. */
export function createDashboardApp(parts: DashboardParts): Koa {
  const { context, log, isStopping, baseUrl, onRequest, findClientAddress, live } = parts
  const { pingUrl, signIn, isPasswordLoginOn, kept } = parts
  const dashboard: Dashboard = { context, baseUrl, pingUrl, isPasswordLoginOn, signIn, kept }
  const assets = readAssets()
  const findCaller = createFindDashboardCaller(context, isPasswordLoginOn)
  const countRejection = createRejectionCount(context.clock)
  const { turns = createTurns(), mostRequests = DASHBOARD_REQUESTS } = parts
  const takeRequest = createWindows(
    context.clock,
    mostRequests,
    (seconds) => `your account has made more than ${mostRequests} requests in a minute: try again in ${seconds} s`,
  )
  const shareRead = createSharedReads<Document>(context.clock)
  const rejectForeignPage = createRejectForeignPage(log, baseUrl)

  const aroundOf = (ctx: Context): Around => {
    const { first } = cutParameters(ctx.querystring, MOST_LOOKED_AT)
    const done = new URLSearchParams(first).get('done')
    const sitePath = sitePathOf(baseUrl())
    return { caller: ctx.state.caller ?? null, path: ctx.path, done, assets, sitePath, now: context.clock.now() }
  }

  const serve =
    ({ path, method, scope, isSame, respond }: PageRoute): Middleware =>
    async (ctx) => {
      ctx.state.route = path
      const caller: DashboardCaller | null = ctx.state.caller ?? null
      if (scope !== null) {
        if (caller === null) return sendRedirect(ctx, toLogIn(ctx), baseUrl())
        if (!includesScope(caller.scope, scope)) {
          const message = `this page needs the scope ${scope}, and your account has ${caller.scope}: an admin of this service can change that`
          throw new AppError('forbidden', message)
        }
      }
      const query = readParameters(ctx.querystring, 'parameters')
      const form = method === 'GET' ? new URLSearchParams() : await readForm(ctx)
      ctx.state.isRead = true
      assertNoNul(query)
      assertNoNul(form)
      const request: Request<DashboardCaller | null> = {
        ...dashboard,
        caller,
        params: ctx.params,
        query,
        form,
        signInCookie: ctx.cookies.get(cookieName('sign_in', baseUrl())),
        address: findClientAddress(ctx.req),
        path: ctx.url,
        isOpenedInClear: isSecure(baseUrl()) && isOpenedInClear(ctx.req),
        now: context.clock.now(),
      }
      const around = { ...aroundOf(ctx), now: request.now }
      const notBefore = Date.parse(ctx.get(REFRESH_HEADER))
      if (isSame === true && caller !== null && !Number.isNaN(notBefore)) {
        const encoding = encodingOf(ctx)
        const key = `${caller.organizationId} ${caller.scope} ${encoding} ${ctx.url}`
        const read = async (now: Instant) => {
          const page = await turns.read(caller, () => respond({ ...request, now }))
          // Without the name of the user.
          return toDocument(page as Page, { ...around, caller: null, done: null, now }, encoding)
        }
        return sendDocument(ctx, await shareRead(key, notBefore, read))
      }
      const answer = () => {
        if (ctx.res.destroyed) throw new RequestAborted()
        return respond(request)
      }
      // What an attempt to log in does has limits of its own.
      const takeTurn = () => {
        if (caller !== null) return turns[method === 'GET' ? 'read' : 'change'](caller, answer)
        return method === 'GET' && path === LOG_IN_PATH ? turns.open(addressGroup(request.address), answer) : answer()
      }
      await sendResponse(ctx, await takeTurn(), around, baseUrl())
    }

  const router = new Router({ sensitive: true })
  router.get(`${ASSETS_PATH}:name`, (ctx) => sendAsset(ctx, assets))
  router.get(LIVE_PATH, (ctx) => {
    ctx.state.route = LIVE_PATH
    const caller: DashboardCaller | null = ctx.state.caller ?? null
    if (caller === null) sendRedirect(ctx, toLogIn(ctx), baseUrl())
    else live.open(ctx, caller)
  })
  for (const route of PAGES) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router.register(path, [route.method], serve(route))
  }

  const app = new Koa({ env: 'production' })
  // An error after the response has begun: a client that left. Koa would print it.
  app.on('error', (error) => log.debug({ error }, 'response not delivered'))
  app.use(observe({ log, clock: context.clock, isStopping, onRequest }))
  app.use(setHeaders)
  app.use(
    renderErrorPages(log, async (ctx, page) =>
      sendDocument(ctx, await toDocument(page, aroundOf(ctx), encodingOf(ctx))),
    ),
  )
  app.use(async (ctx, next) => {
    if (!['GET', 'HEAD'].includes(ctx.method)) rejectForeignPage(ctx.req)
    if (!ctx.path.startsWith(ASSETS_PATH)) {
      const token = ctx.cookies.get(cookieName('session', baseUrl()))
      const isUse = ctx.path !== LIVE_PATH && ctx.get(REFRESH_HEADER) === ''
      const address = findClientAddress(ctx.req)
      const caller = await findCaller(token, address, isUse)
      // Those whose session has ended can always log in.
      if (caller === null && isSessionToken(token) && !isLogIn(ctx.path)) countRejection(address)
      if (caller !== null) takeRequest(caller.id)
      ctx.state.caller = caller
    }
    await next()
  })
  app.use(router.routes())
  app.use(() => {
    throw new AppError('not_found', 'there is no such page')
  })
  return app
}

const setHeaders: Middleware = (ctx, next) => {
  // As the Referer of the next request, a long address would be more than a header may have (http/head.ts).
  const referrer = ctx.url.length > LONG_ADDRESS ? 'origin' : 'same-origin'
  ctx.set({ 'Content-Security-Policy': CONTENT_SECURITY_POLICY, 'Referrer-Policy': referrer })
  return next()
}

/** The log-in leads back to the page, or to the page whose form was posted. */
function toLogIn(ctx: Context): Redirect {
  const next = ['GET', 'HEAD'].includes(ctx.method) ? ownPath(ctx.url) : pathOfReferrer(ctx)
  return { kind: 'redirect', to: next === null ? '/login' : `/login?next=${encodeURIComponent(next)}` }
}

/** PostgreSQL stores no NUL. */
function assertNoNul(fields: URLSearchParams): void {
  for (const [name, value] of fields)
    if (`${name}${value}`.includes('\0'))
      throw new AppError('invalid_request', 'a text must not contain the NUL character')
}

const isLogIn = (path: string) => path === LOG_IN_PATH || path.startsWith(`${LOG_IN_PATH}/`)
