/** Whether a request that changes something comes from a page of our own (dashboard design, sections 3 and 7). */

import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'

/** `origin`: that of the public address. The browser may also know us by another name, such as that of a forwarded port. */
export function isFromOwnPage({ headers }: IncomingMessage, origin: string): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  const from = headers.origin
  if (from === undefined) return false
  if (from === origin) return true
  const [page, own] = [URL.parse(from), URL.parse(origin)]
  if (page === null || page.host !== headers.host) return false
  // Below the public name a page that came without TLS may be of someone on the way.
  return own?.protocol !== 'https:' || page.host !== own.host
}

/**
 * The path and query of `next`, as they are written, if it leads to a page of our own; null otherwise. What a header does not take is encoded as a
 * browser does it.
 */
export function ownPath(next: string | null): string | null {
  // `//host` and `/\host` are other hosts to a browser, and it drops tabs and line breaks before it looks.
  if (next === null || next.length > 2_000 || !/^\/(?![/\\])[^\\\p{Cc}]*$/u.test(next)) return null
  const url = URL.parse(next, 'http://own.invalid')
  if (url === null || url.origin !== 'http://own.invalid') return null
  // `/.//host` has become `//host`.
  if (url.pathname.startsWith('//')) return null
  const [pathAndQuery] = next.toWellFormed().split('#', 1)
  return pathAndQuery!.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent)
}

/** The path and query of the page of our own from which the request comes; null otherwise. */
export function pathOfReferrer(ctx: Context): string | null {
  const referrer = URL.parse(ctx.get('Referer'))
  return referrer?.host === ctx.host ? ownPath(`${referrer.pathname}${referrer.search}`) : null
}
