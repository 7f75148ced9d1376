/**
 * The HTTP client of channels. It owns two pools of sockets: one for addresses that the operator chose, one for all others. So a
 * request to another address never uses a socket that the rule of targets did not check. The client follows no redirects and no
 * proxy settings: both would connect to an unchecked address.
 */

import { type LookupAddress, lookup as lookUpName } from 'node:dns'
import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Tenant } from '../domain/access.ts'
import { readBounded } from '../runtime/bounded-body.ts'
import { startTimer, systemClock } from '../runtime/clock.ts'
import { sendRequest } from '../runtime/http-request.ts'
import { decodePercent } from '../runtime/percent.ts'
import { createLookups, type FindAddresses } from './lookups.ts'
import { createTargetRule, TargetRejected, type TargetRule } from './targets.ts'

export interface HttpRequest {
  readonly method: 'POST' | 'PUT' | 'GET'
  /**
   * An http or https URL, as those who configure it have to give. Credentials in it (`https://user:password@host/`) are
   * sent as Basic authentication.
   */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The operator of the installation chose the address, so it may be a private one. */
  readonly isTrusted: boolean
  /** Whose address it is: one tenant's slow names do not delay others. Undefined: the operator's. */
  readonly tenant: Tenant | undefined
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The first 4 KB of the body, as far as it arrived. */
  readonly text: string
}

export interface HttpClient {
  /**
   * Resolves for any status. Throws TargetRejected, the signal's reason, or the error of the socket, of TLS or of the
   * parser.
   */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>
  /** Closes all sockets, those in use too. Call it after the last request. */
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
  const trusted = makeRoutes(null)
  const checked = makeRoutes(rule)

  function makeRoutes(applied: TargetRule | null) {
    const sockets = {
      keepAlive: true,
      timeout: KEEP_ALIVE_MS,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    }
    const agents = {
      http: new HttpAgent(sockets),
      https: new HttpsAgent({ ...sockets, ...(ca === undefined ? {} : { ca }) }),
    }
    // One set of limits for each: slow names of tenants do not delay those of the operator.
    const findAddresses = createLookups(lookup, systemClock.now)
    return { rule: applied, agents, findAddresses }
  }

  return {
    async send(request, signal) {
      const { url, headers } = readUrl(request.url)
      const { rule: applied, agents, findAddresses } = request.isTrusted ? trusted : checked
      const address = url.hostname.replace(/^\[(.*)\]$/, '$1')
      // Sockets do not look up an address.
      const why = isIP(address) === 0 ? null : (applied?.findObjection(address) ?? null)
      if (why !== null) throw new TargetRejected(address, why)
      const response = await sendRequest(
        url,
        { method: request.method, headers: { ...headers, ...request.headers }, body: request.body, signal },
        {
          agent: url.protocol === 'https:' ? agents.https : agents.http,
          lookup: createLookup(
            (hostname, options) => findAddresses(hostname, options, { tenant: request.tenant, signal }),
            applied,
          ),
        },
      )
      return { status: response.statusCode!, headers: response.headers, text: await readText(response, bodyMs) }
    },
    async close() {
      for (const { agents } of [trusted, checked]) for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** A URL for a request. Credentials move to a header. */
function readUrl(text: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(text)
  const { username, password } = url
  if (username === '' && password === '') return { url, headers: {} }
  const credentials = Buffer.from(`${decodePercent(username)}:${decodePercent(password)}`).toString('base64')
  url.username = ''
  url.password = ''
  return { url, headers: { authorization: `Basic ${credentials}` } }
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

/** The beginning of the body, as far as it arrives within `ms`. When the body is longer or slower, its socket is closed. Never throws. */
async function readText(body: IncomingMessage, ms: number): Promise<string> {
  const stopTimer = startTimer(ms, () => body.destroy())
  // Broken off, too slow, or the attempt was aborted: the head of the response has arrived, and that counts.
  const { bytes } = await readBounded(body, { maxBytes: BODY_BYTES, keptBytes: KEPT_BYTES })
  stopTimer()
  // `stream` drops a character that was cut in two.
  return new TextDecoder().decode(bytes, { stream: true })
}
