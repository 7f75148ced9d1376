/** Errors as responses: turns a code into a status, a message and headers. */

import type { Context, Middleware } from 'koa'
import { AppError, describeError, type ErrorCode, type FieldFault } from '../../domain/errors.ts'
import { toSnakeCase } from '../../domain/field-names.ts'
import type { Log } from '../../runtime/log.ts'
import { createSteadyLog } from '../../runtime/steady-log.ts'
import { hasBody, isNearlyRead, RequestAborted, respondAndDrain } from '../body.ts'
import { codeOfStatus, STATUS } from '../error-codes.ts'
import type { FaultText } from '../server.ts'
import { UNMATCHED } from './observe.ts'

/** For logs and metrics only: other web servers use it too for a request whose client left. */
export const CLIENT_LEFT = 499

/**
 * Gives `respond` each error as an AppError, with status and Retry-After set. Logs unexpected errors, as `internal`.
 */
export function catchErrors(log: Log, respond: (ctx: Context, failure: AppError) => void | Promise<void>): Middleware {
  // A line a second for each route: strangers can cause any number of these. A limit is no fault, and has no stack.
  const logUnavailable = createSteadyLog<AppError>((route, { cause, message }, count) => {
    const why = cause === undefined ? { reason: message } : { error: cause }
    log.warn({ ...why, route, count }, 'requests rejected: unavailable')
  })
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (error instanceof RequestAborted) {
        ctx.respond = false
        ctx.res.statusCode = CLIENT_LEFT
        ctx.res.destroy()
        return
      }
      const failure = toAppError(error)
      const { requestId, route } = ctx.state
      if (failure.code === 'internal') log.error({ error, requestId, route }, 'request failed')
      if (failure.code === 'unavailable') logUnavailable(route ?? UNMATCHED, failure)
      ctx.status = STATUS[failure.code]
      if (failure.retryAfterSeconds !== undefined)
        ctx.set('Retry-After', String(Math.max(1, Math.ceil(failure.retryAfterSeconds))))
      await respond(ctx, failure)
      if (!hasBody(ctx.req) || (failure.code !== 'too_large' && isNearlyRead(ctx.req))) return
      // The rest of the body is still being sent.
      ctx.respond = false
      await respondAndDrain(ctx.req, ctx.res, ctx.body as string | Buffer)
    }
  }
}

/**
 * Responds with `{"error": message, "code": ...}`, and with `details` for an error that concerns fields (design,
 * section 3.2). Where `ctx.state.hasPlainErrors` is set, with the message alone. Unexpected errors get a fixed text.
 */
export const renderErrors = (log: Log): Middleware =>
  catchErrors(log, (ctx, failure) => {
    if (failure.code === 'unauthenticated') ctx.set('WWW-Authenticate', 'Bearer')
    ctx.type = 'json'
    ctx.body = JSON.stringify(present(failure, ctx.state.hasPlainErrors === true))
  })

function present(failure: AppError, isPlain: boolean) {
  const { code, field } = failure
  const { rule, text } = describeError(failure, toSnakeCase)
  if (isPlain) return { error: text }
  if (field !== undefined) return withDetails(code, text, [{ path: `body.${toSnakeCase(field)}`, message: rule }])
  return withDetails(code, text, failure.details)
}

/** The body of the response to a request that no handler sees. `isPlain`: the message alone. */
export function presentFault(message: string, status: number, isPlain: boolean): FaultText {
  const text = JSON.stringify(isPlain ? { error: message } : withDetails(codeOfStatus(status), message))
  return { type: 'application/json; charset=utf-8', text }
}

/** Each request that is not valid has a detail, at least of the request as a whole. */
function withDetails(code: ErrorCode, error: string, details?: readonly FieldFault[]) {
  const given = details ?? (code === 'invalid_request' ? [{ path: 'request', message: error }] : undefined)
  return { error, code, ...(given === undefined ? {} : { details: given }) }
}

function toAppError(error: unknown): AppError {
  if (error instanceof AppError && error.code !== 'internal') return error
  return new AppError('internal', 'internal error', { cause: error })
}
