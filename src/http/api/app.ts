/** The management API as a Koa application. */

import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import type { Authenticate } from '../../auth/authenticate.ts'
import type { Tokens } from '../../auth/tokens.ts'
import type { ChannelContext } from '../../channels/context.ts'
import { createFindBadge } from '../../checks/find-badge.ts'
import type { Caller } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import { siteUrlOf } from '../../domain/site.ts'
import { createPacer } from '../../runtime/limiter.ts'
import type { Log } from '../../runtime/log.ts'
import { takeCall } from '../../tenancy/rate-limit.ts'
import { serveBadges } from '../badges/app.ts'
import type { FindClientAddress } from '../client-address.ts'
import { encodingOf, sendEncoded } from '../compress.ts'
import { serveHealthchecks } from '../healthchecks/app.ts'
import { createAdmit } from '../middleware/admit.ts'
import { renderErrors } from '../middleware/errors.ts'
import { limitRejections } from '../middleware/limit-rejections.ts'
import { type OnRequest, observe } from '../middleware/observe.ts'
import { PIECE_BYTES, writeBytes } from '../write.ts'
import { parsePart } from './faults.ts'
import { readJsonObject } from './json.ts'
import { createLists } from './lists.ts'
import { describeRoutes, withServers } from './openapi.ts'
import { present } from './present.ts'
import { isList, readQuery } from './query.ts'
import { type Api, PlainText, type Route, SharedText, statusOf } from './route.ts'
import { ROUTES } from './routes.ts'

export interface ApiParts {
  readonly context: ChannelContext
  readonly authenticate: Authenticate
  readonly tokens: Tokens
  readonly rateLimitPerMinute: number
  readonly findClientAddress: FindClientAddress
  readonly isPasswordLoginOn: boolean
  /** The public address of this API, with /api/v1. A function, because the port may be known only after listening. */
  readonly baseUrl: () => string
  /** That of the ping API, without a slash at its end. */
  readonly pingUrl: () => string
  readonly log: Log
  /** When true, responses ask clients to close their connections. */
  readonly isStopping: () => boolean
  readonly onRequest?: OnRequest
}

export const API_PREFIX = '/api/v1'

/** Mount its `callback()` on a node server, and call `deferContinue` (http/body.ts) for that server. */
export function createApiApp(parts: ApiParts): Koa {
  const { context, authenticate, tokens, isPasswordLoginOn, baseUrl, pingUrl, log, findClientAddress } = parts
  const api: Api = { context, tokens, isPasswordLoginOn, pingUrl, describe: createDescribe(baseUrl, pingUrl) }
  const pace = createPacer()
  const lists = createLists()
  const onBroken = (error: unknown) => log.error({ error }, 'a list broke off in the middle')
  const take = ({ organizationId, scope }: Caller) => takeCall(context, organizationId, scope, parts.rateLimitPerMinute)
  const admit = createAdmit(authenticate, take)

  const router = new Router({ prefix: API_PREFIX, sensitive: true })
  for (const route of ROUTES) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
    router.register(path, [route.method], serve(route))
  }
  const app = new Koa({ env: 'production' })
  // An error after the response has begun: a client that left. Koa would print it.
  app.on('error', (error) => log.debug({ error }, 'response not delivered'))
  app.use(observe({ ...parts, clock: context.clock }))
  app.use(renderErrors(log))
  app.use(limitRejections(context.clock, (ctx) => findClientAddress(ctx.req)))
  const siteUrl = () => siteUrlOf(baseUrl())
  app.use(serveBadges(createFindBadge(context), context.clock))
  app.use(serveHealthchecks({ ...parts, lists, pace, onBroken, takeCall: take, siteUrl }))
  app.use(router.routes())
  app.use(rejectUnmatched)
  return app

  /** The steps of a request. Each step can reject it by throwing an AppError. */
  function serve({ path, scope, endpoint }: Route): Middleware {
    return async (ctx) => {
      ctx.state.route = API_PREFIX + path
      const address = findClientAddress(ctx.req)
      const caller = scope === null ? null : await admit(ctx, scope, address)
      const params = readParams(endpoint, ctx)
      const { query: asked, body: sent, response } = endpoint
      const query = asked === undefined ? {} : parsePart('query', asked, readQuery(asked, ctx.querystring))
      const body =
        sent === undefined
          ? undefined
          : parsePart('body', sent, await readJsonObject(ctx.req, pace, endpoint.isBodyOptional ? {} : undefined))

      const handle = async () => endpoint.handle({ ...api, caller, params, query, body, address })
      const ofList = asked !== undefined && isList(asked) ? (caller?.organizationId ?? null) : null
      if (ofList !== null) await lists.hold(ctx.res, ofList)
      const result = await (ofList === null ? handle() : lists.inTurn(ofList, handle))
      ctx.status = statusOf(endpoint)
      if (response === undefined) return
      if (result === null) ctx.status = 204
      else if (result instanceof SharedText) await sendShared(ctx, result)
      else if (result instanceof Buffer) await sendBytes(ctx, result, response === PlainText ? TEXT_TYPE : 'json')
      else await sendBytes(ctx, Buffer.from(JSON.stringify(present(response, result))), 'json')
    }
  }
}

/** The document is made once: it is open to all, and large. Its addresses are known by the first request. */
function createDescribe(baseUrl: () => string, pingUrl: () => string): Api['describe'] {
  const document = describeRoutes(ROUTES)
  let made: SharedText | undefined
  return () => {
    const urls = { baseUrl: baseUrl(), pingUrl: pingUrl() }
    made ??= new SharedText(Buffer.from(JSON.stringify(withServers(document, urls))))
    return made
  }
}

const TEXT_TYPE = 'text/plain; charset=utf-8'

async function sendShared(ctx: Context, { bytes, etag, encoded }: SharedText): Promise<void> {
  ctx.set({ ETag: etag, 'Cache-Control': 'no-cache' })
  const encoding = encodingOf(ctx)
  ctx.vary('Accept-Encoding')
  if (ctx.fresh) ctx.status = 304
  else if (encoding === 'identity') await sendBytes(ctx, bytes, 'json')
  else {
    ctx.type = 'json'
    sendEncoded(ctx, { encoding, bytes: await encoded(encoding) })
  }
}

async function sendBytes(ctx: Context, bytes: Buffer, type: string): Promise<void> {
  ctx.type = type
  if (bytes.length <= PIECE_BYTES || ctx.method === 'HEAD') {
    ctx.body = bytes
    return
  }
  ctx.respond = false
  ctx.length = bytes.length
  const { res } = ctx
  res.on('error', () => {})
  try {
    await writeBytes(res, bytes)
    res.end()
  } catch {
    res.destroy()
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
  if (methods.length === 0) throw new AppError('not_found', describeUnknown(ctx.path))
  const allowed = methods.join(', ')
  ctx.set('Allow', allowed)
  const message = `${ctx.method} is not allowed here; ${allowed} ${methods.length === 1 ? 'is' : 'are'}`
  throw new AppError('method_not_allowed', message)
}

/** Never quotes the path: it can contain a secret. */
function describeUnknown(path: string): string {
  const document = `GET ${API_PREFIX}/openapi.json`
  if (path.startsWith(`${API_PREFIX}/`)) return `not found; ${document} lists the paths`
  return `not found: the paths of this API begin with ${API_PREFIX}/; ${document} lists them`
}
