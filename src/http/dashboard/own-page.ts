/** Whether a request that changes something comes from a page of our own. */

import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { AppError } from '../../domain/errors.ts'
import { siteUrlOf } from '../../domain/site.ts'
import type { Log } from '../../runtime/log.ts'
import { createSteadyLog } from '../../runtime/steady-log.ts'

const SHOWN_LENGTH = 100
const OPEN_HERE = 'open the page here and try again'

/** Why the request comes from no page of ours; null: it does. The browser may know us by a forwarded port, too. */
export function whyForeign({ headers }: IncomingMessage, baseUrl: string): string | null {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' ? null : OPEN_HERE
  const [from, host] = [headers.origin, headers.host ?? '']
  if (from === undefined) return `it has no header Origin, which browsers send and a proxy must pass on; ${OPEN_HERE}`
  const [page, own] = [URL.parse(from), URL.parse(baseUrl)]
  if (page !== null && page.origin === own?.origin) return null
  // Without the standard port, which some proxies add.
  const isSent = page !== null && page.host === URL.parse(`${page.protocol}//${host}`)?.host
  // Below the public name a page that came without TLS may be of someone on the way.
  if (isSent && own?.protocol === 'https:' && page.host === own.host)
    return `its page was opened by http, and BASE_URL is https: open ${siteUrlOf(baseUrl)}`
  if (isSent) return null
  const [shown, asked] = [page?.host ?? from, host].map((name) => name.slice(0, SHOWN_LENGTH))
  return `its page is of ${shown} (Origin), and the request came to ${asked} (Host), while BASE_URL has ${own?.host}. \
If that page is this dashboard, let the proxy pass on the name that the browser asks for (nginx: proxy_set_header Host $http_host), or set \
BASE_URL to the address in the browser; otherwise ${OPEN_HERE}`
}

/** The returned function throws AppError `forbidden` for a request that comes from no page of ours. */
export function createRejectForeignPage(log: Pick<Log, 'warn'>, baseUrl: () => string) {
  const logRejected = createSteadyLog<string>((_, why, count) =>
    log.warn({ why, count }, 'a form was rejected: it comes from no page of this dashboard'),
  )
  return (request: IncomingMessage): void => {
    const why = whyForeign(request, baseUrl())
    if (why === null) return
    logRejected('', why)
    throw new AppError('forbidden', `this request does not come from a page of this dashboard: ${why}`)
  }
}

/**
 * Whether the browser has opened a page by http, as far as its request shows. Browsers send Sec-Fetch-Site with https
 * and to their own machine only: there they keep a cookie that is for https.
 */
export function isOpenedInClear({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['sec-fetch-site'] === undefined && !/^https\b/i.test(`${headers['x-forwarded-proto'] ?? ''}`)
}

/** The path and query of `next` if it leads to a page of our own, encoded as browsers do it; null otherwise. */
export function ownPath(next: string | null): string | null {
  // `//host` and `/\host` are other hosts to a browser, and it drops tabs and line breaks before it looks.
  if (next === null || next.length > 2_000 || !/^\/(?![/\\])[^\\\p{Cc}]*$/u.test(next)) return null
  // Below a path of the host: `/../other` leads to what else the host serves. `/.//host` has become `//host`.
  const url = URL.parse(`http://own.invalid/site${next}`)
  if (url === null || !/^\/site\/(?!\/)/.test(url.pathname)) return null
  const [pathAndQuery] = next.toWellFormed().split('#', 1)
  return pathAndQuery!.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent)
}

/** The path and query of the page of our own from which the request comes; null otherwise. */
export function pathOfReferrer(ctx: Context): string | null {
  const referrer = URL.parse(ctx.get('Referer'))
  return referrer?.host === ctx.host ? ownPath(`${referrer.pathname}${referrer.search}`) : null
}
