/**
 * The management API of healthchecks, for clients that were written for it, as a middleware of the management API
 * (docs/use/moving-in.md). The header X-Api-Key, or `api_key` in the JSON body of a POST, distinguishes its calls from
 * ours, which have the same addresses in version 1. Versions 2 and 3 of these addresses are its own.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { Authenticate } from '../../auth/authenticate.ts'
import type { ChannelContext } from '../../channels/context.ts'
import type { Caller } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { sitePathOf } from '../../domain/site.ts'
import { createDatabaseCheck } from '../../service/check-database.ts'
import type { CallTaken } from '../../tenancy/rate-limit.ts'
import type { Lists } from '../api/lists.ts'
import { readBody } from '../body.ts'
import type { FindClientAddress } from '../client-address.ts'
import { createAdmit } from '../middleware/admit.ts'
import { readParameters } from '../parameters.ts'
import type { BoundCaller, Call, Reply } from './call.ts'
import { type Found, findPath, type Operation } from './routes.ts'
import { sendList } from './send-list.ts'

export interface HealthchecksParts {
  readonly context: ChannelContext
  readonly authenticate: Authenticate
  readonly takeCall: (caller: Caller) => Promise<CallTaken>
  readonly findClientAddress: FindClientAddress
  readonly lists: Lists
  readonly pace: () => Promise<void>
  readonly onBroken: (error: unknown) => void
  /** The public addresses of the management port and of the ping API, without a slash at their ends. */
  readonly siteUrl: () => string
  readonly pingUrl: () => string
}

type Body = Readonly<Record<string, unknown>>

export function serveHealthchecks(parts: HealthchecksParts): Middleware {
  const checkDatabase = createDatabaseCheck(parts.context)
  return async (ctx, next) => {
    const found = findPath(ctx.path)
    ctx.state.hasPlainErrors = isOfHealthchecks(ctx.path, ctx.req.headers)
    if (found === null) return redirect(ctx, parts.siteUrl()) ? undefined : next()
    const operation = Object.hasOwn(found.methods, ctx.method) ? found.methods[ctx.method] : undefined
    const selected = operation === undefined && found.version === 1 ? null : await select(ctx, found, parts.pace)
    if (selected === null) return next()
    ctx.state.hasPlainErrors = true
    ctx.state.route = found.route
    if (operation === undefined) throw rejectMethod(ctx, found)
    if (operation === 'open') {
      await checkDatabase()
      return reply(ctx, { status: 200, text: 'OK' })
    }
    await serve(ctx, found, operation, selected, parts)
  }
}

/** As far as the head says. With a key of theirs, each path of versions 2 and 3 is theirs, also where an id is none. */
export function isOfHealthchecks(path: string, headers: IncomingHttpHeaders): boolean {
  const found = findPath(path)
  const hasKey = headers['x-api-key'] !== undefined
  if (found !== null) return hasKey || found.version !== 1
  return hasKey && (/^\/api\/v[23]\//.test(path) || (!isBearer(headers) && findPath(`${path}/`) !== null))
}

/** Some clients leave out the slash at the end, with any method. In version 1 these addresses are also ours. */
function redirect(ctx: Context, siteUrl: string): boolean {
  const found = ctx.req.headers['x-api-key'] === undefined ? null : findPath(`${ctx.path}/`)
  if (found === null || (found.version === 1 && isBearer(ctx.req.headers))) return false
  ctx.state.route = found.route
  ctx.status = 301
  ctx.set('Location', `${sitePathOf(siteUrl)}${ctx.path}/${ctx.search}`)
  return true
}

interface Selected {
  readonly key: string
  /** Null: not read yet. */
  readonly body: Body | null
}

/** Null: the request is one of our own API. */
async function select(ctx: Context, { version }: Found, pace: () => Promise<void>): Promise<Selected | null> {
  const header = ctx.req.headers['x-api-key']
  if (header !== undefined) return { key: String(header), body: null }
  const isOurs = version === 1
  if (isOurs && isBearer(ctx.req.headers)) return null
  if (ctx.method !== 'POST') return isOurs ? null : { key: '', body: null }
  // Our API rejects such a request without a look at its body: what was read is of no concern to it.
  const body = await readJson(ctx.req, pace).catch((error: unknown) => {
    if (isOurs && error instanceof AppError) return null
    throw error
  })
  if (body !== null && Object.hasOwn(body, 'api_key')) return { key: String(body.api_key), body }
  return isOurs ? null : { key: '', body }
}

const isBearer = ({ authorization = '' }: IncomingHttpHeaders) => /^bearer( |$)/i.test(authorization)

/** Throws AppError `invalid_request` in the words of healthchecks, or `too_large`. */
async function readJson(request: IncomingMessage, pace: () => Promise<void>): Promise<Body> {
  const bytes = await readBody(request, LIMITS.apiBodyBytes)
  if (bytes.length === 0) return {}
  await pace()
  const value = parse(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('invalid_request', 'json validation error: value is not an object')
  return value as Body
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(UTF_8.decode(bytes))
  } catch {
    throw new AppError('invalid_request', 'could not parse request body')
  }
}

async function serve(
  ctx: Context,
  { version, params }: Found,
  { scope, handle }: Operation,
  { key, body }: Selected,
  { context, authenticate, takeCall, findClientAddress, lists, pace, onBroken, siteUrl, pingUrl }: HealthchecksParts,
): Promise<void> {
  const admit = createAdmit((_, address) => authenticateKey(authenticate, key, address), takeCall)
  const caller = await admit(ctx, scope, findClientAddress(ctx.req))
  assertBound(caller)
  const given = body ?? (ctx.method === 'POST' ? await readJson(ctx.req, pace) : {})
  const urls = { siteUrl: siteUrl(), pingUrl: pingUrl() }
  const query = readParameters(ctx.querystring, 'parameters')
  const call: Call = { context, caller, version, params, query, body: given, ...urls }
  const made = await handle(call)
  if (!('list' in made)) return reply(ctx, made)
  await sendList(ctx, made.list, { lists, organizationId: caller.organizationId, onBroken })
}

/** Takes API keys only, not the tokens of people. Throws AppError `unauthenticated` in the words of healthchecks. */
async function authenticateKey(authenticate: Authenticate, key: string, address: string): Promise<Caller> {
  if (key === '') throw new AppError('unauthenticated', 'missing api key')
  const wrong = new AppError('unauthenticated', 'wrong api key')
  if (!/^hbk_\S+$/.test(key)) throw wrong
  return authenticate(`Bearer ${key}`, address).catch((error: unknown) => {
    throw error instanceof AppError && error.code === 'unauthenticated' ? wrong : error
  })
}

function assertBound(caller: Caller): asserts caller is BoundCaller {
  if (caller.projectId !== null) return
  const message =
    'this API needs a key that is bound to a project, and this one is not: create one with project_id (POST /api/v1/api-keys)'
  throw new AppError('forbidden', message)
}

function rejectMethod(ctx: Context, { methods }: Found): AppError {
  const allowed = Object.keys(methods).sort().join(', ')
  ctx.set('Allow', allowed)
  return new AppError('method_not_allowed', `${ctx.method} is not allowed here; ${allowed}`)
}

function reply(ctx: Context, made: Exclude<Reply, { list: unknown }>): void {
  ctx.status = made.status
  ctx.type = 'text' in made ? 'text/plain; charset=utf-8' : 'json'
  ctx.body = 'text' in made ? made.text : JSON.stringify(made.json)
}
