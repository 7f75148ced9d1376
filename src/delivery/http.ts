/**
 * The HTTP client of channels. It owns two pools of sockets: one for addresses that the operator chose, one for all others. So a
 * request to another address never uses a socket that the rule of targets did not check. The client follows no redirects and no
 * proxy settings: both would connect to an unchecked address.
 */

import { type LookupAddress, lookup as lookUpName } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import { unlessAborted } from '../runtime/abort.ts'
import { startTimer, systemClock } from '../runtime/clock.ts'
import { decodePercent } from '../runtime/percent.ts'
import { createLookups, type FindAddresses } from './lookups.ts'
import { createTargetRule, TargetRejected, type TargetRule } from './targets.ts'

export interface HttpRequest {
  readonly method: 'POST' | 'GET'
  /** Credentials in it (`https://user:password@host/`) are sent as Basic authentication. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The operator of the installation chose the address, so it may be a private one. */
  readonly isTrusted: boolean
}

export interface HttpResponse {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The first 4 KB of the body, as far as it arrived. */
  readonly text: string
}

export interface HttpClient {
  /** Resolves for any status. Throws InvalidUrl, TargetRejected, the signal's reason, or the error of the socket, of TLS or of undici. */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>
  /** Aborts running requests. */
  close(): Promise<void>
}

export interface HttpClientOptions {
  /** Addresses and CIDRs, see createTargetRule. */
  readonly allowedTargets: readonly string[]
  readonly lookup?: LookupFunction
  /** A certificate authority in PEM, instead of Node's. */
  readonly ca?: string
  /** How long to wait for the body of a response. */
  readonly bodyMs?: number
}

/** Not an http: or https: URL. `message` does not quote it: it may contain credentials. */
export class InvalidUrl extends Error {
  override readonly name = 'InvalidUrl'
}

/** An upper bound. The signal of an attempt aborts earlier, and covers the response too. */
const CONNECT_MS = 10_000
/** When the next address of a name is tried. Node's 250 ms are less than the round trip of some paths. */
const NEXT_ADDRESS_MS = 1_000
/** Long enough for a burst of events, shorter than any server's: a socket that the server closes under a request costs an attempt. */
const KEEP_ALIVE_MS = 2_000
/** The status decides the outcome, so a slow body must not delay the delivery. */
const BODY_MS = 2_000
const BODY_BYTES = 65_536
const KEPT_BYTES = 4_096

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { allowedTargets, lookup = lookUpName, ca, bodyMs = BODY_MS } = options
  const rule = createTargetRule(allowedTargets)
  let agents: Promise<Record<'trusted' | 'checked', Dispatcher>> | null = null
  let isClosed = false

  async function makeAgents(): Promise<Record<'trusted' | 'checked', Dispatcher>> {
    // Imported on first use: a process without channels saves 80 ms and 7 MB.
    const { Agent, buildConnector } = await import('undici')
    const make = (applied: TargetRule | null): Dispatcher => {
      const connect = buildConnector({
        allowH2: false,
        timeout: CONNECT_MS,
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
        // One set of limits for each agent: slow names of tenants do not delay those of the operator.
        lookup: createLookup(createLookups(lookup, systemClock.now), applied),
        ...(ca === undefined ? {} : { ca }),
      })
      return new Agent({
        connect: applied === null ? connect : checkLiterals(connect, applied),
        // The signal and bodyMs limit the time.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MS,
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
      })
    }
    return { trusted: make(null), checked: make(rule) }
  }

  return {
    async send(request, signal) {
      const { origin, path, headers } = readUrl(request.url)
      agents ??= makeAgents()
      const { trusted, checked } = await agents
      if (isClosed) throw new Error('the HTTP client is closed')
      const sending = (request.isTrusted ? trusted : checked).request({
        origin,
        path,
        method: request.method,
        headers: { 'user-agent': 'heartbeat-operator', ...headers, ...request.headers },
        body: request.body ?? null,
        signal,
      })
      // While undici connects, an aborted request still waits for the connection. It is not sent afterwards.
      const response = await unlessAborted(sending, signal)
      return {
        status: response.statusCode,
        headers: joinHeaders(response.headers),
        text: await readText(response.body, bodyMs),
      }
    },
    async close() {
      isClosed = true
      if (agents === null) return
      const { trusted, checked } = await agents
      await Promise.all([trusted.destroy(), checked.destroy()])
    },
  }
}

/** The parts of a URL for a request. Credentials move to a header. Throws InvalidUrl. */
function readUrl(text: string): { origin: string; path: string; headers: Record<string, string> } {
  const url = URL.parse(text)
  if (url === null) throw new InvalidUrl('the address is not a URL')
  const { protocol, origin, pathname, search, username, password } = url
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new InvalidUrl(`the address begins with ${protocol}, not with https: or http:`)
  const credentials = Buffer.from(`${decodePercent(username)}:${decodePercent(password)}`).toString('base64')
  const headers: Record<string, string> = {}
  if (username !== '' || password !== '') headers.authorization = `Basic ${credentials}`
  return { origin, path: pathname + search, headers }
}

/** The lookup of a connecting socket. It returns only addresses that the rule allows: no address can change between check and use. */
function createLookup(findAddresses: FindAddresses, rule: TargetRule | null): LookupFunction {
  return (hostname, options, callback) => {
    const give = (all: readonly LookupAddress[]) => {
      const reasons = all.map(({ address }) => rule?.findObjection(address) ?? null)
      const [first, ...others] = all.filter((_, index) => reasons[index] === null)
      const why = reasons.find((reason) => reason !== null)
      if (first === undefined && why) callback(new TargetRejected(hostname, why), [])
      else if (first === undefined) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), [])
      else if (options.all === true) callback(null, [first, ...others])
      else callback(null, first.address, first.family)
    }
    findAddresses(hostname, options).then(give, (error) => callback(error, []))
  }
}

/** Applies the rule to URLs with an address instead of a name: sockets do not look it up. */
function checkLiterals(connect: buildConnector.connector, rule: TargetRule): buildConnector.connector {
  return (options, callback) => {
    const why = isIP(options.hostname) === 0 ? null : rule.findObjection(options.hostname)
    if (why === null) connect(options, callback)
    else queueMicrotask(() => callback(new TargetRejected(options.hostname, why), null))
  }
}

/** The beginning of the body, as far as it arrives within `ms`. When the body is longer or slower, its socket is closed. Never throws. */
async function readText(body: Dispatcher.ResponseData['body'], ms: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const stopTimer = startTimer(ms, () => body.destroy())
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < KEPT_BYTES) chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= BODY_BYTES) break
    }
  } catch {
    // Broken off, too slow, or the attempt was aborted. The head of the response has arrived, and that counts.
  } finally {
    stopTimer()
  }
  // `stream` drops a character that was cut in two.
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, KEPT_BYTES), { stream: true })
}

function joinHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const joined: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return joined
}
