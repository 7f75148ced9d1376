/** Errors as pages: what was wrong, and what to do. */

import type { Context, Middleware } from 'koa'
import { type AppError, type ConflictCode, type ErrorCode, isConflict, unavailable } from '../../domain/errors.ts'
import type { Log } from '../../runtime/log.ts'
import { catchErrors } from '../middleware/errors.ts'
import { type Html, html } from './html.ts'
import { pathOfReferrer } from './own-page.ts'
import type { Page } from './page.ts'
import { sentence } from './words/words.ts'

export const renderErrorPages = (log: Log, render: (ctx: Context, page: Page) => Promise<void>): Middleware =>
  catchErrors(log, async (ctx, failure) => {
    // 422: the request could be read, and what it says is wrong.
    if (failure.code === 'invalid_request' && ctx.state.isRead === true) ctx.status = 422
    await render(ctx, describe(failure, ctx))
  })

const CONFLICT = 'This conflicts with the present state'
const TITLES: Readonly<Record<Exclude<ErrorCode, ConflictCode>, string>> = {
  invalid_request: 'This does not work',
  unauthenticated: 'Log in',
  forbidden: 'Not allowed',
  not_found: 'Not found',
  method_not_allowed: 'Not found',
  too_large: 'Too large',
  unsupported_media_type: 'This does not work',
  too_many_requests: 'Too many requests',
  internal: 'Internal error',
  unavailable: 'The database does not respond',
}

/** Browsers without scripts load the page again after a time between these, so that not all come at once. */
const RELOAD_SECONDS = 5
const RELOAD_SPREAD_SECONDS = 5

function describe(failure: AppError, ctx: Context): Page {
  const { code, message } = failure
  if (code === 'unavailable') return describeUnavailable(failure, ctx)
  const isOurs = code === 'internal'
  const text = isOurs
    ? `The log of the service has the details, under the request id ${ctx.state.requestId}.`
    : sentence(message)
  return errorPage(
    isConflict(code) ? CONFLICT : TITLES[code],
    text,
    html`<a class="button" href="/checks">Go to the checks</a>`,
  )
}

function describeUnavailable({ message }: AppError, ctx: Context): Page {
  const isDatabase = message === unavailable().message
  const title = isDatabase ? TITLES.unavailable : 'Please wait a moment'
  const text = isDatabase ? 'The service cannot reach its database at the moment.' : sentence(message)
  if (['GET', 'HEAD'].includes(ctx.method)) {
    const again = 'This page loads again by itself, and shows what you asked for as soon as it can.'
    const retryAfterSeconds = RELOAD_SECONDS + Math.round(RELOAD_SPREAD_SECONDS * Math.random())
    const page = errorPage(title, `${text} ${again}`, html`<a class="button" href="">Try now</a>`)
    return { ...page, live: 'retry', retryAfterSeconds }
  }
  // The address belongs to an action: a GET there would show another page, or none. A commit may be lost on its way
  // back, so that the words about the database promise nothing.
  const next = isDatabase
    ? 'Your change was not confirmed: go back, look whether it was made, and make it again if not.'
    : 'Nothing was changed: go back and try again.'
  const back = pathOfReferrer(ctx) ?? '/checks'
  return errorPage(title, `${text} ${next}`, html`<a class="button" href="${back}">Go back</a>`)
}

function errorPage(title: string, text: string, next: Html): Page {
  const main = html`<h1>${title}</h1>
<p role="alert">${text}</p>
<p>${next}</p>`
  return { kind: 'page', title, main, isError: true }
}
