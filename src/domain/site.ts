/** The address of the management port as browsers see it: BASE_URL without `/api/v1`. A proxy may serve it below a path of its host. */

/** Without a slash at its end: `https://example.com/heartbeat`. */
export function siteUrlOf(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/api\/v1$/, '')
}

/** The path of the site: `/heartbeat`, or '' for the root of the host. */
export function sitePathOf(baseUrl: string): string {
  return URL.parse(siteUrlOf(baseUrl))?.pathname.replace(/\/+$/, '') ?? ''
}

/** The path of a request without the path of the site. Some proxies have removed that path, and some of those leave two slashes. */
export function belowSite(sitePath: string, path: string): string {
  if (sitePath === '') return path
  const rest = isBelow(sitePath, path) ? path.slice(sitePath.length) : path
  return `/${rest.replace(/^\/+/, '')}`
}

/** The path that a browser asks for. */
export function onSite(sitePath: string, path: string): string {
  return isBelow(sitePath, path) ? path : sitePath + path
}

const isBelow = (sitePath: string, path: string) =>
  path.startsWith(sitePath) && /^(?:$|[/?#])/.test(path.slice(sitePath.length, sitePath.length + 1))

/** What the service serves at the root of the site. A path that begins with one of these can be a path of the site or one of ours. */
const OWN_PATHS = [
  'ack',
  'api',
  'assets',
  'badge',
  'channels',
  'checks',
  'deliveries',
  'live',
  'login',
  'logout',
  'service',
  'settings',
  'silences',
]

/** Null when the service can be served below the path. */
export function findSitePathFault(baseUrl: string): string | null {
  const path = sitePathOf(baseUrl)
  if (!/^(?:\/[\w.~%-]+)*$/.test(path))
    return `must have only letters, digits, -, ., _, ~ and % in the path before /api/v1, without empty parts`
  const [, first = ''] = path.split('/')
  return OWN_PATHS.includes(first)
    ? `must not begin its path with /${first} before /api/v1: the dashboard has pages there`
    : null
}
