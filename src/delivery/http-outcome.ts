/**
 * What becomes of a delivery by HTTP: which answers and failures are tried again, which are refusals, and how people are told.
 * The texts name the host and nothing else of a URL: its path, query and credentials may be the secret of the channel.
 */

import { PATIENCE_MS } from '../domain/retry.ts'
import type { Clock } from '../runtime/clock.ts'
import { decodePercent } from '../runtime/percent.ts'
import { type HttpAnswer, type HttpClient, type HttpRequest, InvalidUrl } from './http.ts'
import type { Outcome } from './outcome.ts'
import { TargetRefused } from './targets.ts'

type Retry = Extract<Outcome, { kind: 'retry' }>

/** Too Early and the like: the same request may be welcome later. So it is after every 5xx. */
const RETRIED = new Set([408, 425, 429])
const QUOTED_CHARACTERS = 200

/** Sends, and says what became of it, whatever happened. `error` holds no secret of the URL. */
export async function sendForOutcome(
  client: HttpClient,
  request: HttpRequest,
  signal: AbortSignal,
  clock: Pick<Clock, 'now'>,
): Promise<Outcome> {
  const from = clock.now()
  try {
    return judgeAnswer(await client.send(request, signal), request.url, clock.now())
  } catch (error) {
    if (error instanceof TargetRefused || error instanceof InvalidUrl)
      return { kind: 'refused', status: null, error: error.message }
    const host = URL.parse(request.url)?.host ?? 'the channel'
    const seconds = Math.round((clock.now() - from) / 100) / 10
    const text = signal.aborted ? `no answer from ${host} within ${seconds} s` : `${host} ${explainFailure(error)}`
    return { kind: 'retry', status: null, error: text }
  }
}

function judgeAnswer(answer: HttpAnswer, url: string, now: number): Outcome {
  const { status, headers } = answer
  if (status >= 200 && status < 300) return { kind: 'delivered', status }
  const { host } = new URL(url)
  if (status >= 300 && status < 400) {
    const error = `${host} answered ${status}: redirects are not followed; ${explainRedirect(headers.location, url)}`
    return { kind: 'refused', status, error }
  }
  const quote = quoteAnswer(answer, url)
  const error = `${host} answered ${status}${quote === '' ? '' : `: ${quote}`}`
  if (status < 500 && !RETRIED.has(status)) return { kind: 'refused', status, error }
  const retry: Retry = { kind: 'retry', status, error }
  const retryAfterMs = readRetryAfter(headers['retry-after'], now)
  return retryAfterMs === null ? retry : { ...retry, retryAfterMs }
}

/** Only the origin: what follows it may be a secret, as in the URL that we have. */
function explainRedirect(location: string | undefined, from: string): string {
  const target = location === undefined ? null : URL.parse(location, from)
  if (target === null || !/^https?:$/.test(target.protocol)) return 'use an address that answers itself'
  return target.origin === new URL(from).origin
    ? 'use the new address, on the same host'
    : `use the new address, at ${target.origin}`
}

/**
 * Retry-After (RFC 9110, section 10.2.3) in milliseconds from `now`: seconds or a date, of which all three forms are in use.
 * Null for nonsense, which Date.parse would gladly take for a date.
 */
function readRetryAfter(text: string | undefined, now: number): number | null {
  const given = text?.trim() ?? ''
  if (/^\d+$/.test(given)) return Math.min(Number(given) * 1_000, PATIENCE_MS)
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [\w: -]+$/.test(given)) return null
  const at = Date.parse(given.endsWith('GMT') ? given : `${given} GMT`)
  return Number.isNaN(at) ? null : Math.min(Math.max(at - now, 0), PATIENCE_MS)
}

/** What the receiver says about its refusal, on one line. Pages for browsers say no more than the status. */
function quoteAnswer({ headers, text }: HttpAnswer, url: string): string {
  if (/html/i.test(headers['content-type'] ?? '') || /^\s*</.test(text)) return ''
  let line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()
  for (const secret of listSecrets(new URL(url))) line = line.replaceAll(secret, '…')
  const characters = [...line]
  return characters.length <= QUOTED_CHARACTERS ? line : `${characters.slice(0, QUOTED_CHARACTERS - 1).join('')}…`
}

/** Receivers like to say what they were asked for (`Cannot POST /services/T0/B0/...`). Longest first: parts are in the whole. */
function listSecrets({ href, pathname, search, searchParams, username, password }: URL): string[] {
  const user = decodePercent(username)
  const word = decodePercent(password)
  const parts = [
    href,
    pathname + search,
    search,
    ...(search === '' ? [] : search.slice(1).split('&')),
    ...searchParams.values(),
    ...pathname.split('/'),
    user,
    word,
    username,
    password,
    Buffer.from(`${user}:${word}`).toString('base64'),
  ]
  const whole = pathname === '/' ? [] : [pathname, decodePercent(pathname)]
  // A shorter part is no secret, and would take single letters out of every word.
  const secrets = [...parts, ...parts.map(decodePercent)].filter((part) => part.length >= 4)
  return [...whole, ...secrets].sort((a, b) => b.length - a.length)
}

const BROKEN_OFF = 'broke the connection off before it answered'
const NO_CONNECTION = 'did not accept a connection in time: a firewall may drop it'
const NO_ROUTE = 'cannot be reached from here: there is no way to its network'

/** By the code of the error: Node's, OpenSSL's, undici's. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections: does it run, and is the port right?',
  ECONNRESET: BROKEN_OFF,
  ECONNABORTED: BROKEN_OFF,
  EPIPE: BROKEN_OFF,
  UND_ERR_SOCKET: BROKEN_OFF,
  ETIMEDOUT: NO_CONNECTION,
  UND_ERR_CONNECT_TIMEOUT: NO_CONNECTION,
  EHOSTUNREACH: NO_ROUTE,
  ENETUNREACH: NO_ROUTE,
  ENOTFOUND: 'has no address: is the name right?',
  CERT_HAS_EXPIRED: 'shows a certificate that has expired',
  CERT_NOT_YET_VALID: 'shows a certificate that is not valid yet: are both clocks right?',
  CERT_REVOKED: 'shows a certificate that was revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'shows a certificate for another name: is the address right?',
  UND_ERR_HEADERS_OVERFLOW: 'answered with too many headers',
  UND_ERR_DESTROYED: 'was not asked to the end: the service is stopping',
  UND_ERR_CLOSED: 'was not asked to the end: the service is stopping',
}

/** A predicate to the host. Never the error's own text, which may quote anything. */
function explainFailure(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown }
  const id = typeof code === 'string' ? code : String(name ?? 'unknown')
  return `${FAILURES[id] ?? explainFamily(id)} (${id})`
}

/** The first that fits. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [
    /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|CERT_UNTRUSTED)/,
    'shows a certificate that no known authority vouches for: NODE_EXTRA_CA_CERTS adds an authority',
  ],
  [/^(CERT_|CRL_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_|ERROR_IN_)/, 'shows a certificate that does not hold'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'does not speak TLS as expected: does it serve https: on this port?'],
  [/^EAI_/, 'could not be looked up: the name servers gave no answer'],
  // undici's parser says so by its name.
  [/^(HTTPParserError$|HPE_)/, 'gave an answer that is not HTTP'],
]

function explainFamily(id: string): string {
  return FAMILIES.find(([pattern]) => pattern.test(id))?.[1] ?? 'could not be asked'
}
