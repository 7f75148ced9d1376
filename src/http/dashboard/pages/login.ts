/** `/login`, sign-in with an identity provider, and `/logout`. */

import { logInToDashboard } from '../../../auth/log-in.ts'
import { logOutOfDashboard } from '../../../auth/sessions.ts'
import { AppError } from '../../../domain/errors.ts'
import { siteUrlOf } from '../../../domain/site.ts'
import { STATUS } from '../../error-codes.ts'
import { type Html, html } from '../html.ts'
import { ownPath } from '../own-page.ts'
import { open, type Page, type Redirect, type Request, redirect } from '../page.ts'
import { sentence } from '../words/words.ts'

type Visit = Request<Request['caller'] | null>

export const logInRoutes = [
  open('GET', '/login', (request) => {
    const next = ownPath(request.query.get('next'))
    return request.caller === null ? showLogIn(request, { next }) : redirect(next ?? '/checks')
  }),
  open('POST', '/login', logIn),
  open('GET', '/login/{name}', beginSignIn),
  open('GET', '/login/{name}/callback', finishSignIn),
  open('POST', '/logout', async ({ context, caller }) => {
    if (caller !== null) await logOutOfDashboard(context, caller)
    return { ...redirect('/login', 'logged-out'), session: 'end' }
  }),
]

async function logIn(request: Visit): Promise<Page | Redirect> {
  const { context, caller, form, address, isPasswordLoginOn } = request
  const next = ownPath(form.get('next'))
  if (!isPasswordLoginOn)
    throw new AppError('forbidden', 'log-in by password is off: sign in with your identity provider')
  const email = form.get('email') ?? ''
  try {
    const attempt = { email, password: form.get('password') ?? '', address }
    const token = await logInToDashboard(context, attempt, caller)
    return { ...redirect(next ?? '/checks'), session: { token } }
  } catch (error) {
    if (
      !(error instanceof AppError) ||
      !['unauthenticated', 'invalid_request', 'too_many_requests'].includes(error.code)
    )
      throw error
    const { code, message, retryAfterSeconds: waitSeconds } = error
    const fault = code === 'unauthenticated' ? 'The e-mail address or the password is wrong.' : sentence(message)
    const status = code === 'invalid_request' ? 422 : STATUS[code]
    return { ...showLogIn(request, { next, email, fault }), status, waitSeconds }
  }
}

async function beginSignIn(request: Visit): Promise<Page | Redirect> {
  const { params, query, signIn, caller } = request
  const next = ownPath(query.get('next'))
  if (caller !== null) return redirect(next ?? '/checks')
  try {
    const { location, cookie } = await signIn.begin(params.name!, next ?? '/checks', siteUrlOf(request.baseUrl()))
    return { ...redirect(location), signIn: { token: cookie } }
  } catch (error) {
    return showFailure(request, error, next)
  }
}

async function finishSignIn(request: Visit): Promise<Page | Redirect> {
  const { params, path, address, signIn, signInCookie, caller: former } = request
  const name = params.name!
  const attempt = await signIn.open(name, signInCookie)
  const next = attempt === null ? null : ownPath(attempt.next)
  try {
    const query = path.includes('?') ? path.slice(path.indexOf('?')) : ''
    const token = await signIn.finish(name, attempt, { origin: siteUrlOf(request.baseUrl()), query, address, former })
    return { ...redirect(next ?? '/checks'), session: { token }, signIn: 'end' }
  } catch (error) {
    return showFailure(request, error, next)
  }
}

/** The log-in again, so that the user can try again or log in in another way. */
function showFailure(request: Visit, error: unknown, next: string | null): Page {
  if (!(error instanceof AppError) || !['unauthenticated', 'unavailable'].includes(error.code)) throw error
  const { code, message, retryAfterSeconds: waitSeconds } = error
  return { ...showLogIn(request, { next, fault: sentence(message) }), status: STATUS[code], waitSeconds }
}

interface LogInForm {
  readonly next: string | null
  readonly email?: string
  readonly fault?: string
}

function showLogIn(request: Visit, { next, email = '', fault }: LogInForm): Page {
  const { isPasswordLoginOn, signIn, baseUrl, isOpenedInClear } = request
  const { names } = signIn
  const hasEmail = email !== ''
  const form = html`<form method="post" action="/login">
<label>E-mail <input type="email" name="email" value="${email}" autocomplete="username" required${hasEmail ? '' : html` autofocus`}></label>
<label>Password <input type="password" name="password" autocomplete="current-password" required${hasEmail ? html` autofocus` : ''}></label>
${next === null ? '' : html`<input type="hidden" name="next" value="${next}">`}
<button type="submit">Log in</button>
</form>`
  const query = next === null ? '' : `?next=${encodeURIComponent(next)}`
  const main = html`<article class="narrow">
<h1>Log in</h1>
${isOpenedInClear ? renderInClear(siteUrlOf(baseUrl())) : ''}
${next === null || isStart(next) ? '' : html`<p>Log in to continue.<span class="script-only"> What you typed in a form is kept, except passwords and secrets.</span></p>`}
${fault === undefined ? '' : html`<p class="fault" role="alert">${fault}</p>`}
${isPasswordLoginOn ? form : ''}
${isPasswordLoginOn && names.length > 0 ? html`<p class="or muted">or</p>` : ''}
${names.map((name) => renderButton(name, query, isPasswordLoginOn))}
${isPasswordLoginOn || names.length > 0 ? '' : html`<p>Log-in by password is off, and there is no identity provider: ask the operator of this service to set SIGN_IN.</p>`}
</article>`
  return { kind: 'page', title: 'Log in', main }
}

/** Otherwise a log-in would lead to a log-in, without a word. */
function renderInClear(site: string): Html {
  return html`<p class="warning" role="status">This page seems to be opened by http, and the address of this service (BASE_URL) is https. A browser keeps a log-in with https only: open <a href="${site}/login">${site}</a>. If you did, let the proxy send <code>X-Forwarded-Proto: https</code>.</p>`
}

/** A page without a form, where most log-ins begin. */
function isStart(next: string): boolean {
  return next === '/' || /^\/checks(\?|$)/.test(next)
}

/** A link: the policy of the page would block the redirect of a form to another site. */
function renderButton(name: string, query: string, isSecondWay: boolean): Html {
  const kind = isSecondWay ? 'sign-in outline' : 'sign-in'
  return html`<a class="button ${kind}" href="/login/${name}${query}">Sign in with ${name}</a>`
}
