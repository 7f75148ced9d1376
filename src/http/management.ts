/** The management port: the API below /api/, the badges below /badge/, and the dashboard everywhere else. */

import type { RequestListener } from 'node:http'
import { belowSite } from '../domain/site.ts'
import { BADGE_PREFIX } from './badges/path.ts'

/** A request to a proxy names the server in its first line. Servers accept that form too (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** That of the API's credentials. A proxy that asks for a password itself may forward its own header, with another scheme. */
const CREDENTIAL = /^bearer( |$)/i

/**
 * `dashboard` null: it is off, and the API responds to its paths with 404. `sitePath`: what a proxy has before our own paths (domain/site.ts).
 */
export function routeManagement({
  api,
  badges,
  dashboard,
  sitePath = () => '',
}: {
  api: RequestListener
  badges: RequestListener
  dashboard: RequestListener | null
  sitePath?: () => string
}): RequestListener {
  return (request, response) => {
    const site = sitePath()
    const path = belowSite(site, (request.url ?? '/').replace(ORIGIN, ''))
    if (site !== '') request.url = path
    if (path.startsWith(BADGE_PREFIX)) return badges(request, response)
    if (dashboard === null) return api(request, response)
    const isApi =
      path.startsWith('/api/') || /^\/api(\?|$)/.test(path) || CREDENTIAL.test(request.headers.authorization ?? '')
    return isApi ? api(request, response) : dashboard(request, response)
  }
}
