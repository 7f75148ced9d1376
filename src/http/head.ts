/** What is wrong with the head of a request that Node's parser accepts. No handler and no library sees such a head. */

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isLoopbackHost } from '../runtime/addresses.ts'
import { CREDENTIAL_BYTES, HEADER_BYTES } from './limits.ts'

export type Fault = readonly [status: number, message: string]

export const NOT_HTTP: Fault = [400, 'the request is not valid HTTP']

/**
 * Each header that this service or one of its libraries parses, except X-Service-Duration, over which no ping is lost:
 * only its first digits are read. Other headers may have any length that the head has room for.
 */
export const HEADER_LIMITS: ReadonlyMap<string, number> = new Map([
  ...[
    'Accept',
    'Accept-Encoding',
    'Cache-Control',
    'Content-Encoding',
    'Content-Length',
    'Content-Type',
    'Expect',
    'Host',
    'If-Modified-Since',
    'If-None-Match',
    'Origin',
    'Referer',
    // Koa reads this spelling too.
    'Referrer',
    'Sec-Fetch-Site',
    'Transfer-Encoding',
    'X-Api-Key',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Prometheus-Scrape-Timeout-Seconds',
    'X-Refresh',
  ].map((name) => [name, HEADER_BYTES] as const),
  ['Authorization', CREDENTIAL_BYTES],
  ['Cookie', CREDENTIAL_BYTES],
])

/** Decides by a host name in lower case. */
export type IsKnownHost = (name: string) => boolean

const SLASH = 47

/**
 * What is wrong with a head, or null. Replaces a target in absolute form (RFC 9112, section 3.2.2) by its path and
 * query: the URL parsers of apps throw for meaningless addresses.
 */
export function findFault(request: IncomingMessage, isKnownHost: IsKnownHost | null): Fault | null {
  const { hosts, bytes } = measure(request)
  // HTTP/0.9 has no heads, and HTTP/2 begins in another way.
  if (request.httpVersionMajor !== 1) return NOT_HTTP
  if (hosts === 0 && request.httpVersion === '1.1') return [400, 'the request has no Host header']
  // A proxy before us may have chosen another one than we would (RFC 9112, section 3.2).
  if (hosts > 1) return [400, 'the request has more than one Host header']
  const tooLong = bytes > HEADER_BYTES ? findTooLong(request) : null
  if (tooLong !== null) return tooLong
  if (isKnownHost !== null && !isKnownHost(hostName(request))) return UNKNOWN_HOST
  const target = request.url!
  if (target.charCodeAt(0) === SLASH || target === '*') return null
  const url = URL.parse(target)
  if (url === null) return [400, "the request's target is not a valid address"]
  request.url = `${url.pathname}${url.search}`
  return null
}

/** Node keeps the first Host only in `headers`. `bytes`: of all headers, and no less than of any that Node joins. */
function measure({ rawHeaders }: IncomingMessage): { hosts: number; bytes: number } {
  let hosts = 0
  let bytes = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    bytes += rawHeaders[i + 1]!.length + 2
  }
  return { hosts, bytes }
}

function findTooLong({ headers }: IncomingMessage): Fault | null {
  for (const [name, most] of HEADER_LIMITS) {
    const value = headers[name.toLowerCase()]
    if (value !== undefined && value.length > most) return [431, `the header ${name} has more than ${most} bytes`]
  }
  return null
}

const UNKNOWN_HOST: Fault = [
  421,
  'this service does not know the host name of the request: use localhost, or set BASE_URL to the address by which you reach it',
]

/** Empty without a name that a URL can have. */
function hostName({ headers }: IncomingMessage): string {
  return URL.parse(`http://${headers.host ?? ''}`)?.hostname ?? ''
}

/**
 * For a server that only this machine reaches: a web site whose name leads to the loopback address (DNS rebinding) must
 * not reach it through a browser. Such a name has a dot and is no address. Null: any name is known.
 */
export function createHostRule(bindAddress: string, urls: readonly (string | null)[]): IsKnownHost | null {
  if (!isLoopbackHost(bindAddress)) return null
  const own = new Set(urls.map((url) => URL.parse(url ?? '')?.hostname))
  return (given) => {
    const name = given.replace(/\.$/, '')
    return !name.includes('.') || name.endsWith('.localhost') || isIP(name) !== 0 || own.has(name)
  }
}
