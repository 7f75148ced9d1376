/**
 * The outcome of a delivery by HTTP: which responses and failures are retried, which are final, and how they are described. The texts
 * contain nothing of a URL but its host: path, query and credentials may be secrets of the channel.
 */

import type { OpenChannel } from '../domain/channel.ts'
import { PATIENCE_MS } from '../domain/retry.ts'
import type { Clock } from '../runtime/clock.ts'
import { decodePercent } from '../runtime/percent.ts'
import { explainFailure, joinLines, toQuote } from './failures.ts'
import type { HttpClient, HttpRequest, HttpResponse } from './http.ts'
import type { Outcome } from './outcome.ts'
import { TargetRejected } from './targets.ts'

/**
 * Reads what a service says beyond the status of its response. `outcome`: by the status alone; its `error` quotes the
 * response without secrets, `response.text` may repeat them. Returns `outcome` where the service says no more.
 */
export type Judge = (response: HttpResponse, outcome: Outcome) => Outcome

/** A request whose outcome is asked for. `secrets`: besides those of its URL, what the receiver may repeat. */
type Asked = HttpRequest & { readonly secrets?: readonly string[]; readonly judge?: Judge }

type Retry = Extract<Outcome, { kind: 'retry' }>

/** Client errors that may pass (Too Early and the like). Every 5xx is retried, too. */
const RETRIED = new Set([408, 425, 429])

/** Final, unless a proxy gives them while the receiver behind it restarts or its route is not there yet. */
const REFUSALS = new Set([403, 404, 410, 421])

/** The request itself is refused. The other client errors are about the address or the credentials, and would meet every message. */
const OF_MESSAGE = new Set([400, 413])

/** Sends the request and returns the outcome. Never throws. `error` contains no secret of the URL. */
export async function sendForOutcome(
  client: HttpClient,
  { secrets = [], judge = (_, outcome) => outcome, ...request }: Asked,
  signal: AbortSignal,
  clock: Pick<Clock, 'now'>,
): Promise<Outcome> {
  const from = clock.now()
  try {
    const response = await client.send(request, signal)
    return judge(response, judgeResponse(response, request.url, secrets, clock.now()))
  } catch (error) {
    if (error instanceof TargetRejected) return { kind: 'rejected', status: null, error: error.message }
    const { host } = new URL(request.url)
    const seconds = Math.round((clock.now() - from) / 100) / 10
    const text = signal.aborted ? `no response from ${host} within ${seconds} s` : `${host} ${explain(error)}`
    return { kind: 'retry', status: null, error: text }
  }
}

/** Sends JSON to an address of the channel, by the same rules; by POST unless the request says otherwise. */
export function postJson(
  { client, clock }: { readonly client: HttpClient; readonly clock: Pick<Clock, 'now'> },
  { isTrusted, tenant }: Pick<OpenChannel, 'isTrusted' | 'tenant'>,
  request: Required<Pick<Asked, 'url' | 'body'>> & Partial<Pick<Asked, 'method' | 'headers' | 'secrets' | 'judge'>>,
  signal: AbortSignal,
): Promise<Outcome> {
  const headers = { 'content-type': 'application/json', ...request.headers }
  return sendForOutcome(client, { method: 'POST', ...request, headers, isTrusted, tenant }, signal, clock)
}

/** The outcome with the time at which the service takes more, in milliseconds from now. */
export function retryIn(outcome: Outcome, ms: number): Outcome {
  if (outcome.kind !== 'retry' || !Number.isFinite(ms)) return outcome
  return { ...outcome, retryAfterMs: Math.min(Math.max(Math.ceil(ms), 0), PATIENCE_MS) }
}

/**
 * The outcome that no later attempt can change. `why`: what it means and what to do, without a secret and a full stop.
 */
export function rejectFor(outcome: Outcome, why: string): Outcome {
  const { status } = outcome
  return { kind: 'rejected', status, error: 'error' in outcome ? `${outcome.error}; ${why}` : why }
}

/** The fields of a response in JSON; none where it is something else, or longer than what is kept of it. */
export function fieldsOf({ text }: HttpResponse): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** A predicate to the host. Never the error's own text, which may quote anything. */
function explain(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown }
  const id = typeof code === 'string' ? code : String(name ?? 'unknown')
  return explainFailure(id, 'the URL') ?? `could not be reached (${id})`
}

function judgeResponse(response: HttpResponse, url: string, secrets: readonly string[], now: number): Outcome {
  const { status, headers } = response
  if (status >= 200 && status < 300) return { kind: 'delivered', status }
  const { host } = new URL(url)
  if (status >= 300 && status < 400) {
    const advice = adviseOnRedirect(headers.location, url)
    return { kind: 'rejected', status, error: `${host} responded ${status}: redirects are not followed; ${advice}` }
  }
  const quote = quoteResponse(response, [...secrets, ...listSecrets(new URL(url))])
  const error = `${host} responded ${status}${quote === '' ? '' : `: ${quote}`}`
  if (status < 500 && !RETRIED.has(status) && !REFUSALS.has(status))
    return { kind: 'rejected', status, error, ...(OF_MESSAGE.has(status) ? { isOfMessage: true } : {}) }
  if (REFUSALS.has(status)) return { kind: 'retry', status, error, isRefusal: true }
  const retry: Retry = { kind: 'retry', status, error }
  const retryAfterMs = readRetryAfter(headers['retry-after'], now)
  return retryAfterMs === null ? retry : { ...retry, retryAfterMs }
}

/** Names the origin only: path and query may be secrets, as in the URL that we have. */
function adviseOnRedirect(location: string | undefined, from: string): string {
  const target = location === undefined ? null : URL.parse(location, from)
  if (target === null || !/^https?:$/.test(target.protocol)) return 'use an address that does not redirect'
  return target.origin === new URL(from).origin
    ? 'use the new address, on the same host'
    : `use the new address, at ${target.origin}`
}

/** Milliseconds from `now`: seconds, or a date in one of three forms (RFC 9110, section 10.2.3). Else null: Date.parse accepts too much. */
function readRetryAfter(text: string | undefined, now: number): number | null {
  const given = text?.trim() ?? ''
  if (/^\d+$/.test(given)) return Math.min(Number(given) * 1_000, PATIENCE_MS)
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? [\w: -]+$/.test(given)) return null
  const at = Date.parse(given.endsWith('GMT') ? given : `${given} GMT`)
  return Number.isNaN(at) ? null : Math.min(Math.max(at - now, 0), PATIENCE_MS)
}

/** What the receiver said, on one line. Empty for an HTML page: it says no more than the status. */
function quoteResponse({ headers, text }: HttpResponse, secrets: readonly string[]): string {
  if (/html/i.test(headers['content-type'] ?? '') || /^\s*</.test(text)) return ''
  let line = joinLines(text)
  for (const secret of secrets) line = line.replaceAll(secret, '…')
  // The credential of a message, which its receiver may repeat (auth/incident-tokens.ts).
  line = line.replace(/\/ack\/[\w-]+/g, '/ack/…')
  return toQuote(line)
}

/** Parts of the URL that a receiver may repeat (`Cannot POST /services/T0/B0/...`). Longest first: a part may be in a longer one. */
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
  // A shorter part cannot be a secret, and would be replaced within ordinary words.
  const secrets = [...parts, ...parts.map(decodePercent)].filter((part) => part.length >= 4)
  return [...whole, ...secrets].sort((a, b) => b.length - a.length)
}
