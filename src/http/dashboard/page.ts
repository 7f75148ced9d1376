/** A page as data: a route, the scope that it needs, and a function from a request to a page or a redirect. */

import type { DashboardCaller } from '../../auth/sessions.ts'
import type { SignIn } from '../../auth/sign-in.ts'
import type { ChannelContext } from '../../channels/context.ts'
import type { Kept } from '../../checks/review-check.ts'
import type { Scope } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import type { Html } from './html.ts'

/** What all pages work with. */
export interface Dashboard {
  readonly context: ChannelContext
  /** The public address of the management API, with /api/v1. */
  readonly baseUrl: () => string
  /** The public address of the ping API, without a slash at its end. */
  readonly pingUrl: () => string
  readonly isPasswordLoginOn: boolean
  /** The identity providers. */
  readonly signIn: SignIn
  /** What pruning keeps of each check; null: not known. */
  readonly kept: Kept | null
}

export interface Request<Who extends DashboardCaller | null = DashboardCaller> extends Dashboard {
  readonly caller: Who
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a form that was posted. */
  readonly form: URLSearchParams
  /** The cookie of a sign-in that has begun (auth/sign-in.ts). */
  readonly signInCookie: string | undefined
  /** The client's network address (http/client-address.ts). */
  readonly address: string
  /** The path and query of this request. */
  readonly path: string
  /** BASE_URL is https, and the browser has opened this page by http: it does not keep our cookies. */
  readonly isOpenedInClear: boolean
  readonly now: Instant
}

export interface Page {
  readonly kind: 'page'
  /** Default: 200. */
  readonly status?: number
  /** Of the document; the layout adds the name of the product. */
  readonly title: string
  /** The content of `<main>`. */
  readonly main: Html
  /** The colour of the icon in the tab. Default: `none`. */
  readonly mood?: 'down' | 'late' | 'calm' | 'none'
  /** What the script fetches again when something happens; with `retry` until the page is there. Default: `none`. */
  readonly live?: 'list' | 'check' | 'retry' | 'none'
  /** When the next check of the page becomes late: the script reads the page again then. Default: none does. */
  readonly nextLateAt?: Instant | null
  /** After which a request that was rejected may succeed, in seconds: the header Retry-After. */
  readonly waitSeconds?: number | undefined
  /** Seconds after which a browser without scripts loads the page again. */
  readonly retryAfterSeconds?: number
  /** Instead of the page that was asked for: the script keeps what was typed before. */
  readonly isError?: true
}

/** A part of a page, for the script. */
export interface Fragment {
  readonly kind: 'fragment'
  readonly body: Html
}

/** 303: the browser goes to `to`, a path of our own or an identity provider. */
export interface Redirect {
  readonly kind: 'redirect'
  readonly to: string
  /** Sets the cookie of a session, or deletes it. */
  readonly session?: { readonly token: string } | 'end'
  /** The same for the cookie of a sign-in. */
  readonly signIn?: { readonly token: string } | 'end'
}

/** A text as it is, for example the whole body of a ping. Never HTML. */
export interface Plain {
  readonly kind: 'plain'
  readonly bytes: Buffer
}

export type Response = Page | Fragment | Redirect | Plain

export interface PageRoute {
  readonly method: 'GET' | 'POST'
  /** `/checks/{id}`. */
  readonly path: `/${string}`
  /** Null: also without a session. */
  readonly scope: Scope | null
  /** The same for all users of an organization with the same scope: open pages share what is read again. */
  readonly isSame?: true
  // A method, not a property: then routes with and without a session fit into one list.
  respond(request: Request<DashboardCaller | null>): Promise<Response> | Response
}

/** Throws AppError: `not_found`, `forbidden`, `unavailable` and others become pages (app.ts). */
type Respond<Who extends DashboardCaller | null> = (request: Request<Who>) => Promise<Response> | Response

/** A page to look at. */
export function page(path: PageRoute['path'], scope: Scope, respond: Respond<DashboardCaller>): PageRoute {
  return { method: 'GET', path, scope, respond: respond as PageRoute['respond'] }
}

/** What a form posts to. */
export function action(path: PageRoute['path'], scope: Scope, respond: Respond<DashboardCaller>): PageRoute {
  return { method: 'POST', path, scope, respond: respond as PageRoute['respond'] }
}

/** What a form without fields does to one object, and where that leads. `done`: a word of NOTICES (layout.ts). */
export function act(
  path: PageRoute['path'],
  scope: Scope,
  run: (context: ChannelContext, caller: DashboardCaller, id: string) => Promise<unknown>,
  to: string | ((id: string) => string),
  done: string,
): PageRoute {
  return action(path, scope, async ({ context, caller, params }) => {
    const id = params.id!
    await run(context, caller, id)
    return redirect(typeof to === 'string' ? to : to(id), done)
  })
}

export function open(
  method: PageRoute['method'],
  path: PageRoute['path'],
  respond: Respond<DashboardCaller | null>,
): PageRoute {
  return { method, path, scope: null, respond }
}

/** `done`: a word of NOTICES (layout.ts), whose text the next page shows. */
export function redirect(to: string, done?: string): Redirect {
  if (done === undefined) return { kind: 'redirect', to }
  return { kind: 'redirect', to: `${to}${to.includes('?') ? '&' : '?'}done=${done}` }
}
