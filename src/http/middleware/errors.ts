/** The outermost middleware but one, and the only renderer of errors: a code becomes a status, a message, and a few headers. */

import type { Context, Middleware } from 'koa'
import { AppError, describeError, type ErrorCode } from '../../domain/errors.ts'
import type { Log } from '../../runtime/log.ts'
import { hasBody, isNearlyRead, RequestAborted, respondAndDrain } from '../body.ts'

export const STATUS = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  internal: 500,
  unavailable: 503,
} as const satisfies Record<ErrorCode, number>

/** What other web servers log for a request whose client left; nobody ever receives it. */
export const CLIENT_LEFT = 499

/** Answers `{"error": message}`, with `details` when the request was invalid (design, section 3.2). A fault of ours is logged, once, and told by a fixed text. */
export function renderErrors(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      await render(ctx, error, log)
    }
  }
}

async function render(ctx: Context, error: unknown, log: Log): Promise<void> {
  if (error instanceof RequestAborted) {
    ctx.respond = false
    ctx.res.statusCode = CLIENT_LEFT
    ctx.res.destroy()
    return
  }
  const told = toTold(error)
  const { requestId, route } = ctx.state
  if (told.code === 'internal') log.error({ error, requestId, route }, 'request failed')
  if (told.code === 'unavailable')
    log.warn({ error: told.cause ?? told, requestId, route }, 'request refused: unavailable')

  ctx.status = STATUS[told.code]
  ctx.type = 'json'
  if (told.code === 'unauthenticated') ctx.set('WWW-Authenticate', 'Bearer')
  if (told.retryAfterSeconds !== undefined) ctx.set('Retry-After', toWholeSeconds(told.retryAfterSeconds))
  const text = JSON.stringify(present(told))
  if (!hasBody(ctx.req) || (told.code !== 'too_large' && isNearlyRead(ctx.req))) {
    ctx.body = text
    return
  }
  ctx.respond = false
  await respondAndDrain(ctx.req, ctx.res, text)
}

function present(told: AppError) {
  const { field, details } = told
  const { rule, text } = describeError(told, toSnakeCase)
  if (field !== undefined) return { error: text, details: [{ path: `body.${toSnakeCase(field)}`, message: rule }] }
  return { error: text, ...(details === undefined ? {} : { details }) }
}

/** The name of a field in the API. */
function toSnakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function toTold(error: unknown): AppError {
  if (error instanceof AppError && error.code !== 'internal') return error
  return new AppError('internal', 'internal error', { cause: error })
}

function toWholeSeconds(seconds: number): string {
  return String(Math.max(1, Math.ceil(seconds)))
}
