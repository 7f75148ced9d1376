/** Sends what a page responds: documents, files, redirects with their cookies. */

import type { Context } from 'koa'
import { DASHBOARD_SESSION_MS } from '../../auth/sessions.ts'
import { SIGN_IN_SECONDS } from '../../auth/sign-in.ts'
import { AppError } from '../../domain/errors.ts'
import { onSite, sitePathOf } from '../../domain/site.ts'
import { compressPage, type Encoded, type Encoding, encodingOf, sendEncoded } from '../compress.ts'
import { ASSETS_PATH, type Assets } from './assets.ts'
import { type Around, isTimeless, renderDocument } from './layout.ts'
import type { Page, Redirect, Response } from './page.ts'

const HTML = 'text/html; charset=utf-8'
const YEAR_SECONDS = 31_536_000

export async function sendResponse(ctx: Context, response: Response, around: Around, baseUrl: string): Promise<void> {
  if (response.kind === 'redirect') return sendRedirect(ctx, response, baseUrl)
  if (response.kind === 'page') {
    if (response.waitSeconds !== undefined) ctx.set('Retry-After', String(Math.ceil(response.waitSeconds)))
    return sendDocument(ctx, await toDocument(response, around, encodingOf(ctx)))
  }
  ctx.type = response.kind === 'plain' ? 'text/plain; charset=utf-8' : HTML
  const bytes = response.kind === 'plain' ? response.bytes : Buffer.from(response.body.toString())
  sendEncoded(ctx, await compressPage(bytes, encodingOf(ctx)))
}

/** A page as it is sent. */
export interface Document extends Encoded {
  /** Left out: the response has its status already, or 200. */
  readonly status: number | undefined
}

export async function toDocument(page: Page, around: Around, encoding: Encoding): Promise<Document> {
  const text = renderDocument(page, around)
  const compress = isTimeless(page, around) ? compressOpen : compressPage
  return { status: page.status, ...(await compress(Buffer.from(text), encoding)) }
}

export function sendDocument(ctx: Context, document: Document): void {
  if (document.status !== undefined) ctx.status = document.status
  ctx.type = HTML
  sendEncoded(ctx, document)
}

/** By their encoding and text: most are the log-in, or say that there is no such page. */
const openPages = new Map<string, Promise<Encoded>>()
const MOST_OPEN_PAGES = 64

function compressOpen(bytes: Buffer, encoding: Encoding): Promise<Encoded> {
  const key = `${encoding} ${bytes}`
  const known = openPages.get(key)
  if (known !== undefined) return known
  const made = compressPage(bytes, encoding)
  openPages.set(key, made)
  if (openPages.size > MOST_OPEN_PAGES) openPages.delete(openPages.keys().next().value!)
  // A page that found no place to be compressed, or could not be, is made again.
  const forget = () => openPages.delete(key)
  made.then((page) => page.encoding === encoding || forget(), forget)
  return made
}

export async function sendAsset(ctx: Context, assets: Assets): Promise<void> {
  ctx.state.route = `${ASSETS_PATH}{name}`
  const found = assets.find(ctx.params.name)
  if (found === null) throw new AppError('not_found', 'there is no such file: load the page again')
  const { asset, isOther } = found
  const encoding = encodingOf(ctx)
  ctx.set('Cache-Control', isOther ? 'no-store' : `public, max-age=${YEAR_SECONDS}, immutable`)
  ctx.type = asset.type
  sendEncoded(ctx, { encoding, bytes: await asset.bytes(encoding) })
}

export function sendRedirect(ctx: Context, { to, session, signIn }: Redirect, baseUrl: string): void {
  ctx.status = 303
  ctx.set('Location', to.startsWith('/') ? onSite(sitePathOf(baseUrl), to) : to)
  if (session !== undefined) setCookie(ctx, 'session', session, DASHBOARD_SESSION_MS, baseUrl)
  if (signIn !== undefined) setCookie(ctx, 'sign_in', signIn, SIGN_IN_SECONDS * 1_000, baseUrl)
}

function setCookie(
  ctx: Context,
  name: 'session' | 'sign_in',
  value: { readonly token: string } | 'end',
  maxAge: number,
  baseUrl: string,
): void {
  // Koa would reject a secure cookie without TLS, which ends at a proxy before us.
  ctx.cookies.secure = true
  ctx.cookies.set(cookieName(name, baseUrl), value === 'end' ? null : value.token, {
    httpOnly: true,
    sameSite: 'lax',
    secure: isSecure(baseUrl),
    path: sitePathOf(baseUrl) || '/',
    overwrite: true,
    ...(value === 'end' ? {} : { maxAge }),
  })
}

/** Browsers reject both prefixes without TLS, and `__Host-` for a cookie with a path. */
export function cookieName(name: 'session' | 'sign_in', baseUrl: string): string {
  const prefix = sitePathOf(baseUrl) === '' ? '__Host-' : '__Secure-'
  return `${isSecure(baseUrl) ? prefix : ''}heartbeat_${name}`
}

export function isSecure(baseUrl: string): boolean {
  return baseUrl.startsWith('https:')
}
