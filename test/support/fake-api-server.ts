/**
 * An API server in this process, for what a real one does not do on request: break in the middle of a line, fall silent, be
 * busy, tear characters apart. That it is true otherwise is shown by the contract suite, which the real one passes as well.
 */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Connection, TlsMaterial } from '../../src/kubernetes/connection.ts'
import { type Disturbance, disturbAnswer, sendJson, statusOf } from './fake-api-answers.ts'
import type { Writer } from './fake-api-fields.ts'
import { findRoute, REVIEWS, type Route, requestOfReview, type SeenRequest } from './fake-api-route.ts'
import {
  createCollection,
  type FakeCollection,
  type FakeHistory,
  type FakeType,
  keyOf,
  Refused,
  type Select,
} from './fake-api-storage.ts'

export type { SeenRequest } from './fake-api-route.ts'
export type { FakeObject, FakeType } from './fake-api-storage.ts'

export interface FakeWatch {
  readonly query: URLSearchParams
  /** Bytes as they are, a piece of the answer for each argument. */
  send(...pieces: readonly (string | Uint8Array)[]): void
  sendEvent(type: string, object: object): void
  bookmark(resourceVersion?: string): void
  /** From now on nothing is sent, and the socket stays. */
  silence(): void
  /** Ends the answer as it ought to end. */
  end(): void
  reset(): void
}

export interface FakeApiServer extends AsyncDisposable {
  readonly url: string
  /** Who uses it is let in. */
  readonly connection: Connection
  readonly requests: readonly SeenRequest[]
  /** Open ones, the oldest first. */
  readonly watches: readonly FakeWatch[]
  connections(): { readonly accepted: number; readonly open: number }
  /** The next `times` requests for which `when` holds are disturbed; the result ends it. */
  disturb(when: (request: SeenRequest) => boolean, how: Disturbance, times?: number): () => void
  /** Requests to these paths are forbidden until the result is called. */
  forbid(isForbidden: (path: string) => boolean, message?: string): () => void
  /** The next request for which `when` holds waits for `release`, and is carried out then. */
  hold(when: (request: SeenRequest) => boolean): HeldRequest
  /** Writes as another client would, past all faults. */
  collection(type: Pick<FakeType, 'group' | 'plural'>): FakeCollection
  /** Lists and watches from before now are expired. */
  expire(): void
  /** As after etcd was emptied: no objects, and versions from the beginning. Watches end. */
  empty(): void
  remove(type: Pick<FakeType, 'group' | 'plural'>): void
  add(type: FakeType): void
  /** Only these bearer tokens are let in; null lets everyone in. */
  setTokens(tokens: readonly string[] | null): void
  /** For connections from now on. */
  setCertificate(certified: ServerCertificate): void
  /** Cuts every line of watches into pieces of so many bytes. */
  setPieceBytes(bytes: number | null): void
  /** Every answer carries it as a header. */
  setWarning(value: string | null): void
}

export interface HeldRequest {
  readonly arrived: Promise<void>
  /** Carries it out. */
  release(): void
}

export interface ServerCertificate {
  readonly certificate: string
  readonly key: string
  /** Asks for a client certificate of this authority. */
  readonly clientAuthority?: string
}

export interface FakeApiServerOptions {
  /** What the server takes for a second, for clients with a faster clock. */
  readonly secondMs?: number
  readonly types?: readonly FakeType[]
  /** Plain HTTP without it. */
  readonly certificate?: ServerCertificate
}

export const CONFIG_MAPS: FakeType = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' }

export const HEARTBEAT_CHECKS: FakeType = {
  group: 'heartbeat-operator.io',
  version: 'v1',
  plural: 'heartbeatchecks',
  kind: 'HeartbeatCheck',
  hasStatus: true,
}

export const HEARTBEAT_CHANNELS: FakeType = {
  ...HEARTBEAT_CHECKS,
  plural: 'heartbeatchannels',
  kind: 'HeartbeatChannel',
}

export const HEARTBEAT_SILENCES: FakeType = {
  ...HEARTBEAT_CHECKS,
  plural: 'heartbeatsilences',
  kind: 'HeartbeatSilence',
}

export const PODS: FakeType = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  selectableFields: ['status.phase', 'spec.nodeName'],
}

/** Watches get the version so long before their end, as the real ones are. */
const LAST_BOOKMARK_SECONDS = 2

export async function startFakeApiServer(options: FakeApiServerOptions = {}): Promise<FakeApiServer> {
  let isSweepDue = false
  const history: FakeHistory = {
    version: 100,
    oldest: 0,
    onOwnership() {
      if (isSweepDue) return
      isSweepDue = true
      setImmediate(() => {
        isSweepDue = false
        collectGarbage()
      })
    },
  }
  const collections = new Map<string, FakeCollection>()
  const requests: SeenRequest[] = []
  const watches = new Set<FakeWatch>()
  const sockets = new Set<Socket>()
  const disturbances = new Set<{ when: (request: SeenRequest) => boolean; how: Disturbance; left: number }>()
  const holds = new Set<{ when: (request: SeenRequest) => boolean; arrive: (carryOn: () => void) => void }>()
  let accepted = 0
  let tokens: readonly string[] | null = null
  let pieceBytes: number | null = null
  let warning: string | null = null

  const idOf = ({ group, plural }: Pick<FakeType, 'group' | 'plural'>) => `${group}/${plural}`
  const add = (type: FakeType) => collections.set(idOf(type), createCollection(type, history))
  for (const type of options.types ?? [CONFIG_MAPS]) add(type)

  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk) => chunks.push(chunk))
    incoming.on('end', () => answer(readRequest(incoming, Buffer.concat(chunks).toString()), response))
  }
  const { certificate } = options
  const server = certificate === undefined ? createServer(handle) : createTlsServer(tlsOptions(certificate), handle)
  server.keepAliveTimeout = 120_000
  server.on(certificate === undefined ? 'connection' : 'secureConnection', () => {
    accepted += 1
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the fake API server has no port')
  const url = `http${certificate === undefined ? '' : 's'}://127.0.0.1:${address.port}`

  function answer(request: SeenRequest, response: ServerResponse): void {
    requests.push(request)
    if (warning !== null) response.setHeader('warning', warning)
    const disturbed = [...disturbances].find(({ when }) => when(request))
    if (disturbed !== undefined) {
      disturbed.left -= 1
      if (disturbed.left <= 0) disturbances.delete(disturbed)
      disturbAnswer(response, disturbed.how)
      return
    }
    const held = [...holds].find(({ when }) => when(request))
    holds.delete(held!)
    if (held === undefined) admit(request, response)
    else held.arrive(() => admit(request, response))
  }

  function admit(request: SeenRequest, response: ServerResponse): void {
    try {
      if (tokens !== null && !tokens.includes(request.headers.authorization?.replace(/^Bearer /, '') ?? ''))
        throw new Refused(401, 'Unauthorized', 'Unauthorized')
      serve(request, response)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      sendJson(response, error.code, statusOf(error))
    }
  }

  /** A right is missing while a request that needs it would be forbidden. */
  function isGranted(review: SeenRequest): boolean {
    const request = requestOfReview(review)
    const disturbed = [...disturbances].find(({ when }) => when(request))?.how
    return !(typeof disturbed === 'object' && disturbed.status === 403)
  }

  function serve(request: SeenRequest, response: ServerResponse): void {
    if (request.path === REVIEWS) {
      sendJson(response, 201, { ...JSON.parse(request.body), status: { allowed: isGranted(request) } })
      return
    }
    const routed = findRoute(request, collections)
    if (request.isWatch) openWatch(request, routed, response)
    else sendJson(response, request.method === 'POST' ? 201 : 200, carryOut(request, routed))
  }

  function carryOut(request: SeenRequest, routed: Route): object {
    const result = changeOrRead(request, routed)
    return routed.key === null && request.method === 'GET' ? result : { ...result, apiVersion: routed.apiVersion }
  }

  function changeOrRead(
    request: SeenRequest,
    { collection, apiVersion, key, select, namespace, subresource }: Route,
  ): object {
    const body = () => {
      const object = JSON.parse(request.body)
      if (namespace !== undefined && object.metadata !== undefined) object.metadata.namespace ??= namespace
      return object
    }
    const manager = request.query.get('fieldManager') ?? request.headers['user-agent']?.split('/')[0] ?? 'unknown'
    const writer: Writer & { manager: string } = { manager, ...(subresource === 'status' && { subresource: 'status' }) }
    switch (request.method) {
      case 'GET':
        return key === null ? list(collection, apiVersion, select, request.query) : collection.get(key)
      case 'POST':
        return collection.create(body(), writer)
      case 'PUT':
        return collection.replace(key!, body(), writer)
      case 'PATCH':
        return request.headers['content-type'] === 'application/apply-patch+yaml'
          ? collection.apply(key!, body(), writer.manager, request.query.get('force') === 'true')
          : collection.mergePatch(key!, body(), writer)
      case 'DELETE':
        return collection.delete(key!, request.body === '' ? {} : body().preconditions)
      default:
        throw new Refused(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')
    }
  }

  /** The garbage collector: what has owners, none of which is there any more, goes. */
  function collectGarbage(): void {
    const objects = [...collections.values()].flatMap((collection) =>
      collection.list(() => true, 0, null).items.map((object) => ({ collection, object })),
    )
    const uids = new Set(objects.map(({ object }) => object.metadata.uid))
    for (const { collection, object } of objects) {
      const { ownerReferences = [] } = object.metadata
      if (ownerReferences.length === 0 || ownerReferences.some(({ uid }) => uids.has(uid))) continue
      collection.delete(keyOf(object.metadata))
    }
  }

  function list(collection: FakeCollection, apiVersion: string, select: Select, query: URLSearchParams) {
    const limit = Number(query.get('limit') ?? 0)
    const { items, version, token } = collection.list(select, limit, query.get('continue'))
    return {
      kind: `${collection.type.kind}List`,
      apiVersion,
      metadata: { resourceVersion: String(version), ...(token === '' ? {} : { continue: token }) },
      // Built-in resources are listed without their kind.
      items: items.map(({ kind: _, apiVersion: __, ...item }) => item),
    }
  }

  function openWatch(
    { query }: SeenRequest,
    { collection: { type, follow }, apiVersion, select }: Route,
    response: ServerResponse,
  ) {
    let isSilent = false
    const write = (bytes: Buffer) => {
      if (isSilent || response.destroyed) return
      for (let from = 0; from < bytes.length; from += pieceBytes ?? bytes.length)
        response.write(bytes.subarray(from, from + (pieceBytes ?? bytes.length)))
    }
    const sendEvent = (event: string, object: object) =>
      write(Buffer.from(`${JSON.stringify({ type: event, object })}\n`))
    const bookmark = (resourceVersion = String(history.version)) => {
      // From a version that is still to come, the real one withholds these as well.
      if (Number(resourceVersion) < Number(query.get('resourceVersion'))) return
      sendEvent('BOOKMARK', { kind: type.kind, apiVersion, metadata: { resourceVersion } })
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const timers: NodeJS.Timeout[] = []
    let unfollow = () => {}
    const watch: FakeWatch = {
      query,
      send: (...pieces) => {
        for (const piece of pieces) response.write(piece)
      },
      sendEvent,
      bookmark,
      silence() {
        isSilent = true
      },
      end: () => response.end(),
      // The client may have closed it.
      reset: () => void response.socket?.resetAndDestroy(),
    }
    watches.add(watch)
    response.on('close', () => {
      for (const timer of timers) clearTimeout(timer)
      unfollow()
      watches.delete(watch)
    })
    try {
      unfollow = follow(Number(query.get('resourceVersion')), select, ({ type, object }) =>
        sendEvent(type, { ...object, apiVersion }),
      )
    } catch (error) {
      // Inside an answer that has begun, as the real one does it.
      sendEvent('ERROR', statusOf(error as Refused))
      response.end()
      return
    }
    const { secondMs = 1_000 } = options
    const endMs = Number(query.get('timeoutSeconds') ?? 300) * secondMs
    // Nothing has happened since: then the real ones tell no bookmark.
    const began = history.version
    const bookmarkLast = () => {
      if (history.version > began) bookmark()
    }
    if (query.get('allowWatchBookmarks') === 'true' && endMs > LAST_BOOKMARK_SECONDS * secondMs)
      timers.push(setTimeout(bookmarkLast, endMs - LAST_BOOKMARK_SECONDS * secondMs))
    timers.push(setTimeout(watch.end, endMs))
  }

  const tls: TlsMaterial = {}
  const credentials = { headers: {}, tls }
  const disturb: FakeApiServer['disturb'] = (when, how, times = 1) => {
    const disturbance = { when, how, left: times }
    disturbances.add(disturbance)
    return () => disturbances.delete(disturbance)
  }

  return {
    url,
    connection: {
      server: url,
      namespace: 'default',
      source: 'the test',
      proxyUrl: null,
      readCredentials: async () => credentials,
      renewCredentials: async () => credentials,
    },
    requests,
    get watches() {
      return [...watches]
    },
    connections: () => ({ accepted, open: sockets.size }),
    disturb,
    forbid: (isForbidden, message = 'it is forbidden') =>
      disturb(({ path }) => isForbidden(path), { status: 403, reason: 'Forbidden', message }, Number.POSITIVE_INFINITY),
    hold(when) {
      const { promise, resolve } = Promise.withResolvers<() => void>()
      holds.add({ when, arrive: resolve })
      return { arrived: promise.then(() => {}), release: () => void promise.then((carryOn) => carryOn()) }
    },
    collection: (type) => collections.get(idOf(type))!,
    expire() {
      history.version += 1
      history.oldest = history.version
    },
    empty() {
      Object.assign(history, { version: 1, oldest: 0 })
      for (const { type } of collections.values()) add(type)
      for (const watch of watches) watch.end()
    },
    remove(type) {
      collections.delete(idOf(type))
      for (const watch of watches) watch.end()
    },
    add,
    setTokens(next) {
      tokens = next
    },
    setCertificate(next) {
      ;(server as TlsServer).setSecureContext(tlsOptions(next))
    },
    setPieceBytes(bytes) {
      pieceBytes = bytes
    },
    setWarning(value) {
      warning = value
    },
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}

function tlsOptions({ certificate, key, clientAuthority }: ServerCertificate) {
  const asked =
    clientAuthority === undefined ? {} : { ca: clientAuthority, requestCert: true, rejectUnauthorized: false }
  return { cert: certificate, key, ...asked }
}

function readRequest(incoming: IncomingMessage, body: string): SeenRequest {
  const { pathname, searchParams: query } = new URL(incoming.url ?? '/', 'http://server')
  const { method = 'GET', headers } = incoming
  const isWatch = query.has('watch')
  const subject = (incoming.socket as TLSSocket).getPeerCertificate?.()?.subject
  const clientName = subject?.CN === undefined ? null : String(subject.CN)
  const isList = method === 'GET' && !isWatch && query.has('limit')
  return { method, path: pathname, query, isWatch, isList, headers, body, clientName }
}
