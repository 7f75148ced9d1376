/** The management port: the API below /api/, and the dashboard everywhere else. */

import type { RequestListener } from 'node:http'

/** A request to a proxy names the server in its first line. Servers accept that form too (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** That of the API's credentials. A proxy that asks for a password itself may forward its own header, with another scheme. */
const CREDENTIAL = /^bearer( |$)/i

/** `dashboard` null: it is off, and the API responds to its paths with 404. */
export function routeManagement({
  api,
  dashboard,
}: {
  api: RequestListener
  dashboard: RequestListener | null
}): RequestListener {
  if (dashboard === null) return api
  return (request, response) => {
    const path = (request.url ?? '/').replace(ORIGIN, '')
    const isApi =
      path.startsWith('/api/') || /^\/api(\?|$)/.test(path) || CREDENTIAL.test(request.headers.authorization ?? '')
    return isApi ? api(request, response) : dashboard(request, response)
  }
}
