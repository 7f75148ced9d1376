/**
 * The management port: the API below /api/, with the badges below /badge/, the links of messages below /ack/, and the
 * dashboard everywhere else.
 */

import type { IncomingMessage, RequestListener } from 'node:http'
import { ACKNOWLEDGE_PREFIX } from '../channels/kinds/kind.ts'
import { LIMITS } from '../domain/limits.ts'
import { belowSite, sitePathOf } from '../domain/site.ts'
import { type AckParts, createAckApp } from './ack/app.ts'
import { type ApiParts, createApiApp } from './api/app.ts'
import { BADGE_PREFIX } from './badges/path.ts'
import { createDashboardApp, type DashboardParts } from './dashboard/app.ts'
import { isOfHealthchecks } from './healthchecks/app.ts'
import { presentFault } from './middleware/errors.ts'
import type { FaultText, HttpServerOptions } from './server.ts'

export interface ManagementParts extends ApiParts, DashboardParts, AckParts {
  readonly isDashboardOn: boolean
}

/** Of the API and of the forms of the dashboard. */
const BODY = { keepBytes: LIMITS.apiBodyBytes, mostBytes: LIMITS.apiBodyBytes }

/** What the server of the port has to know of the apps behind it. */
export function serveManagement(parts: ManagementParts) {
  const sitePath = () => sitePathOf(parts.baseUrl())
  const dashboard = parts.isDashboardOn ? createDashboardApp(parts).callback() : null
  return {
    name: 'api',
    handler: routeManagement(
      { api: createApiApp(parts).callback(), dashboard, links: createAckApp(parts).callback() },
      sitePath,
    ),
    body: BODY,
    errorText: createFaultText(sitePath),
  } satisfies Partial<HttpServerOptions>
}

interface Apps {
  readonly api: RequestListener
  readonly dashboard: RequestListener | null
  readonly links: RequestListener
}

/**
 * `dashboard` null: it is off, and the API responds to its paths with 404. `sitePath`: what a proxy has before our own
 * paths (domain/site.ts). A proxy may forward a credential of its own, so `Authorization` does not decide.
 */
export function routeManagement({ api, dashboard, links }: Apps, sitePath = () => ''): RequestListener {
  return (request, response) => {
    const site = sitePath()
    const path = belowSite(site, request.url ?? '/')
    if (site !== '') request.url = path
    const isOfApi = path.startsWith('/api/') || /^\/api(\?|$)/.test(path) || path.startsWith(BADGE_PREFIX)
    if (path.startsWith(ACKNOWLEDGE_PREFIX)) return links(request, response)
    return dashboard === null || isOfApi ? api(request, response) : dashboard(request, response)
  }
}

/** The body of an error before any handler: badges and healthchecks' API know no codes (design, section 3.2). */
function createFaultText(sitePath: () => string) {
  return (message: string, status: number, request?: IncomingMessage): FaultText => {
    if (request === undefined) return presentFault(message, status, false)
    const [path = ''] = belowSite(sitePath(), request.url!).split('?', 1)
    return presentFault(message, status, path.startsWith(BADGE_PREFIX) || isOfHealthchecks(path, request.headers))
  }
}
