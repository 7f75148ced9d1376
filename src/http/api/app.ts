/** The management API as a Koa application. */

import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import type { Authenticate } from '../../auth/authenticate.ts'
import type { Tokens } from '../../auth/tokens.ts'
import type { ChannelContext } from '../../channels/context.ts'
import { AppError } from '../../domain/errors.ts'
import type { Log } from '../../runtime/log.ts'
import { takeCall } from '../../tenancy/rate-limit.ts'
import { type Admit, createAdmit } from '../middleware/admit.ts'
import { renderErrors } from '../middleware/errors.ts'
import { type OnRequest, observe } from '../middleware/observe.ts'
import { parsePart } from './faults.ts'
import { readJsonObject } from './json.ts'
import { describeRoutes } from './openapi.ts'
import { readQuery } from './query.ts'
import type { Api, Route } from './route.ts'
import { ROUTES } from './routes.ts'

export interface ApiParts {
  readonly context: ChannelContext
  readonly authenticate: Authenticate
  readonly tokens: Tokens
  /** Calls of an organization. */
  readonly rateLimitPerMinute: number
  /** The public address of this API, with /api/v1. A function, because the port may be known only after listening. */
  readonly baseUrl: () => string
  readonly log: Log
  /** When true, responses ask clients to close their connections. */
  readonly isStopping: () => boolean
  readonly onRequest?: OnRequest
}

export const API_PREFIX = '/api/v1'

/** Mount its `callback()` on a node server, and call `deferContinue` (http/body.ts) for that server. */
export function createApiApp(given: ApiParts): Koa {
  const { context, authenticate, tokens, rateLimitPerMinute, baseUrl, log, isStopping, onRequest } = given
  const document = describeRoutes(ROUTES)
  const api: Api = { context, tokens, describe: () => ({ ...document, servers: [{ url: baseUrl() }] }) }
  const admit = createAdmit(authenticate, (organizationId) => takeCall(context, organizationId, rateLimitPerMinute))

  const router = new Router({ prefix: API_PREFIX, sensitive: true })
  for (const route of ROUTES) {
    router.register(route.path.replaceAll(/\{(\w+)\}/g, ':$1'), [route.method], serve(route, api, admit))
  }
  const app = new Koa({ env: 'production' })
  // An error after the response has begun: a client that left. Koa would print it.
  app.on('error', (error) => log.debug({ error }, 'response not delivered'))
  app.use(observe({ log, clock: context.clock, isStopping, onRequest }))
  app.use(renderErrors(log))
  app.use(router.routes())
  app.use(rejectUnmatched)
  return app
}

/** The steps of a request. Each step can reject it by throwing an AppError. */
function serve({ path, scope, endpoint }: Route, api: Api, admit: Admit): Middleware {
  return async (ctx) => {
    ctx.state.route = API_PREFIX + path
    const caller = scope === null ? null : await admit(ctx, scope)
    const params = readParams(endpoint, ctx)
    const { query: asked, body: sent } = endpoint
    const query = asked === undefined ? {} : parsePart('query', asked, readQuery(asked, ctx.querystring))
    const body = sent === undefined ? undefined : parsePart('body', sent, await readJsonObject(ctx.req))
    const address = ctx.req.socket.remoteAddress ?? 'unknown'

    const result = await endpoint.handle({ ...api, caller, params, query, body, address })

    ctx.status = endpoint.status
    if (endpoint.response === null) return
    ctx.type = 'json'
    ctx.body = JSON.stringify(endpoint.response.parse(result))
  }
}

function readParams({ params }: Route['endpoint'], ctx: Context): unknown {
  const result = params?.safeParse(ctx.params)
  if (result?.success === false) throw new AppError('not_found', result.error.issues[0]!.message)
  return result?.data
}

/** There is no route for this path and method. Throws `method_not_allowed` when the path has other methods (RFC 9110, section 15.5.6). */
function rejectUnmatched(ctx: Context): never {
  const layers: readonly { methods: readonly string[] }[] = ctx.matched ?? []
  const methods = [...new Set(layers.flatMap((layer) => layer.methods))].sort()
  if (methods.length === 0) throw new AppError('not_found', 'not found')
  const allowed = methods.join(', ')
  ctx.set('Allow', allowed)
  const message = `${ctx.method} is not allowed here; ${allowed} ${methods.length === 1 ? 'is' : 'are'}`
  throw new AppError('method_not_allowed', message)
}
