/**
 * The HTTP client of channels. It owns two pools of sockets, for channels whose address the operator chose and for all others,
 * so that none of the latter ever travels on a socket that the rule of targets did not judge. It follows no redirect and no
 * proxy setting: both would connect to an address that nobody has judged.
 */

import { type LookupAddress, lookup as lookUpName } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import { startTimer, systemClock } from '../runtime/clock.ts'
import { decodePercent } from '../runtime/percent.ts'
import { createLookups, type FindAddresses } from './lookups.ts'
import { createTargetRule, TargetRefused, type TargetRule } from './targets.ts'

export interface HttpRequest {
  readonly method: 'POST' | 'GET'
  /** Credentials in it (`https://user:password@host/`) are sent as Basic authentication. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Whoever runs the installation chose the address: it may be a private one. */
  readonly isTrusted: boolean
}

export interface HttpAnswer {
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The first 4 KB of the body, as far as it came. */
  readonly text: string
}

export interface HttpClient {
  /**
   * The answer, whatever its status. Throws InvalidUrl, TargetRefused, the signal's reason, or what the socket, TLS or undici
   * say when there is no answer.
   */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer>
  /** Ends what is on its way. */
  close(): Promise<void>
}

export interface HttpClientOptions {
  /** Addresses and CIDRs, see createTargetRule. */
  readonly allowedTargets: readonly string[]
  readonly lookup?: LookupFunction
  /** In PEM: the authority to trust instead of Node's. */
  readonly ca?: string
}

/** Not an http: or https: URL. `message` does not quote it: it may hold credentials. */
export class InvalidUrl extends Error {
  override readonly name = 'InvalidUrl'
}

/** Attempts end sooner: by their signal, which counts the answer as well. */
const CONNECT_MS = 10_000
/** A family that leads nowhere is given up after so long, and other addresses of the name are tried. Node's 250 ms are less than some paths take. */
const NEXT_ADDRESS_MS = 1_000
/** Enough for a burst of events, and less than any server waits: a socket that it closes under a request costs an attempt. */
const KEEP_ALIVE_MS = 2_000
/** The status says all that counts: whoever trickles the rest does not hold the delivery for it. */
const BODY_MS = 2_000
const BODY_BYTES = 65_536
const KEPT_BYTES = 4_096

export function createHttpClient({ allowedTargets, lookup = lookUpName, ca }: HttpClientOptions): HttpClient {
  const rule = createTargetRule(allowedTargets)
  let agents: Promise<Record<'trusted' | 'judged', Dispatcher>> | null = null
  let isClosed = false

  async function makeAgents(): Promise<Record<'trusted' | 'judged', Dispatcher>> {
    // Imported where it is needed: 80 ms and 7 MB that a process without channels does not pay.
    const { Agent, buildConnector } = await import('undici')
    const make = (judge: TargetRule | null): Dispatcher => {
      const connect = buildConnector({
        allowH2: false,
        timeout: CONNECT_MS,
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
        // Two of them: names that tenants choose do not hold up those of the installation.
        lookup: createLookup(createLookups(lookup, systemClock.now), judge),
        ...(ca === undefined ? {} : { ca }),
      })
      return new Agent({
        connect: judge === null ? connect : judgeLiterals(connect, judge),
        // Limits are ours.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: KEEP_ALIVE_MS,
        keepAliveMaxTimeout: KEEP_ALIVE_MS,
      })
    }
    return { trusted: make(null), judged: make(rule) }
  }

  return {
    async send(request, signal) {
      const { origin, path, headers } = readUrl(request.url)
      agents ??= makeAgents()
      const { trusted, judged } = await agents
      if (isClosed) throw new Error('the HTTP client is closed')
      const asking = (request.isTrusted ? trusted : judged).request({
        origin,
        path,
        method: request.method,
        headers: { 'user-agent': 'heartbeat-operator', ...headers, ...request.headers },
        body: request.body ?? null,
        signal,
      })
      const answer = await unlessAborted(asking, signal)
      return {
        status: answer.statusCode,
        headers: joinHeaders(answer.headers),
        text: await readText(answer.body),
      }
    },
    async close() {
      isClosed = true
      if (agents === null) return
      const { trusted, judged } = await agents
      await Promise.all([trusted.destroy(), judged.destroy()])
    },
  }
}

/** While it connects, undici takes note of the signal and goes on to wait; the request is not sent afterwards. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const give = () => reject(signal.reason)
    if (signal.aborted) give()
    signal.addEventListener('abort', give, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', give))
  })
}

/** The parts of a URL as they are sent: credentials move to a header. */
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

/**
 * What a socket asks at the moment it connects: nothing can change between the judgement and the use of an address. Of several,
 * those that are allowed remain.
 */
function createLookup(findAddresses: FindAddresses, judge: TargetRule | null): LookupFunction {
  return (hostname, options, callback) => {
    const give = (all: readonly LookupAddress[]) => {
      const verdicts = all.map(({ address }) => judge?.refuses(address) ?? null)
      const [first, ...others] = all.filter((_, index) => verdicts[index] === null)
      const why = verdicts.find((verdict) => verdict !== null)
      if (first === undefined && why) callback(new TargetRefused(hostname, why), [])
      else if (first === undefined) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), [])
      else if (options.all === true) callback(null, [first, ...others])
      else callback(null, first.address, first.family)
    }
    findAddresses(hostname, options).then(give, (error) => callback(error, []))
  }
}

/** Sockets look no address up. */
function judgeLiterals(connect: buildConnector.connector, judge: TargetRule): buildConnector.connector {
  return (options, callback) => {
    const why = isIP(options.hostname) === 0 ? null : judge.refuses(options.hostname)
    if (why === null) connect(options, callback)
    else queueMicrotask(() => callback(new TargetRefused(options.hostname, why), null))
  }
}

/** The beginning of the body, as far as it comes in time; what comes after it is not waited for, and takes its socket with it. */
async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const stopTimer = startTimer(BODY_MS, () => body.destroy())
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < KEPT_BYTES) chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= BODY_BYTES) break
    }
  } catch {
    // Cut off, too slow, or the attempt's time is up: the head was there, and the answer counts.
  } finally {
    stopTimer()
  }
  // `stream`: a character that the cut has split is left out.
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, KEPT_BYTES), { stream: true })
}

function joinHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  const joined: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return joined
}
