/**
 * The page behind the link of a message: `/ack/<token>` (design, section 4, "Acknowledgement"). The token in the path
 * is the only credential, so no cookie and no Origin counts. A GET changes nothing: mail scanners and previews follow
 * links.
 */

import Koa, { type Context as Call, type Middleware } from 'koa'
import type { IncidentTokens } from '../../auth/incident-tokens.ts'
import { ACKNOWLEDGE_PREFIX } from '../../channels/kinds/kind.ts'
import { acknowledgeByLink, findIncident } from '../../checks/acknowledge-by-link.ts'
import type { Incident } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { isVisible, toOneLine, toStoredText } from '../../domain/plain-text.ts'
import { addressGroup, networkGroup } from '../../runtime/addresses.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { ApiParts } from '../api/app.ts'
import { readForm } from '../form.ts'
import { FORGED_LINKS, LINK_REQUESTS } from '../limits.ts'
import { catchErrors } from '../middleware/errors.ts'
import { observe } from '../middleware/observe.ts'
import { createWindows } from '../middleware/windows.ts'
import { CHOICES, renderEnded, renderFailure, renderForged, renderIncident, STYLE_HASH } from './page.ts'

export interface AckParts extends Pick<ApiParts, 'context' | 'findClientAddress' | 'log' | 'isStopping' | 'onRequest'> {
  readonly incidentTokens: Pick<IncidentTokens, 'read'>
}

const METHODS = ['GET', 'HEAD', 'POST']
/** Never the path: who has it may acknowledge. */
const ROUTE = `${ACKNOWLEDGE_PREFIX}{token}`

const HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src '${STYLE_HASH}'`,
    'img-src data:',
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
}

/** Mount its `callback()` for all paths below ACKNOWLEDGE_PREFIX. */
export function createAckApp({
  context,
  incidentTokens,
  findClientAddress,
  log,
  isStopping,
  onRequest,
}: AckParts): Koa {
  const countForged = createForgedCount(context.clock)
  const take = createWindows(context.clock, LINK_REQUESTS, (seconds) => `too many requests: try again in ${seconds} s`)

  /** Null: the link is not one of ours. */
  const readIncident = ({ path }: Call): Incident | null => incidentTokens.read(path.slice(ACKNOWLEDGE_PREFIX.length))

  const respond: Middleware = async (ctx) => {
    if (!METHODS.includes(ctx.method)) {
      ctx.set('Allow', METHODS.join(', '))
      throw new AppError('method_not_allowed', `${ctx.method} is not allowed here`)
    }
    const address = findClientAddress(ctx.req)
    const incident = readIncident(ctx)
    if (incident === null) {
      countForged(address)
      return send(ctx, 404, renderForged())
    }
    // Of each incident: the link of one that has ended uses up nothing of the next.
    take(`${incident.checkId} ${incident.since}`)
    const found =
      ctx.method === 'POST'
        ? await acknowledgeByLink(context, incident, { address, ...readChoice(await readForm(ctx)) })
        : await findIncident(context, incident)
    if (found === null) send(ctx, 410, renderEnded())
    else send(ctx, 200, renderIncident(found, context.clock.now()))
  }

  const app = new Koa({ env: 'production' })
  // An error after the response has begun: a client that left. Koa would print it.
  app.on('error', (error) => log.debug({ error }, 'response not delivered'))
  app.use(observe({ log, clock: context.clock, isStopping, onRequest }))
  app.use((ctx, next) => {
    ctx.state.route = ROUTE
    ctx.set(HEADERS)
    return next()
  })
  app.use(catchErrors(log, (ctx, failure) => send(ctx, ctx.status, renderFailure(failure))))
  app.use(respond)
  return app
}

/**
 * The returned function counts a forged link, and throws AppError `too_many_requests` for one too many. Links of ours
 * work all the same: none is found by guessing, and a guess costs no more than its signature.
 */
function createForgedCount(clock: Pick<Clock, 'now'>) {
  const describe = (seconds: number) => `too many links that are not valid: try again in ${seconds} s`
  const ofAddress = createWindows(clock, FORGED_LINKS.address, describe)
  const ofNetwork = createWindows(clock, FORGED_LINKS.network, describe)
  return (address: string): void => {
    ofAddress(addressGroup(address))
    ofNetwork(networkGroup(address))
  }
}

function send(ctx: Call, status: number, page: string): void {
  ctx.status = status
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = page
}

/** Without a form: until the incident ends, and by a person who gives no name. */
function readChoice(form: URLSearchParams) {
  const name = toStoredText(toOneLine(form.get('name') ?? ''), LIMITS.nameLength)
  const choice = CHOICES.find(({ value }) => value === (form.get('for_seconds') ?? ''))
  if (choice === undefined) throw new AppError('invalid_request', 'there is no such choice: use a button of the page')
  return { name: isVisible(name) ? name : null, forSeconds: choice.seconds }
}
