/**
 * The verbs of the API server, on plain JSON. Errors are ApiError (the server rejected the request), TransportError (no
 * response) and KubeconfigError (no credentials); an aborted signal rejects with the signal's reason. Time limits and
 * retries: call.ts.
 */

import type { Clock } from '../runtime/clock.ts'
import { type CallOptions, createCalls, type StreamOptions } from './call.ts'
import type { Connection } from './connection.ts'
import { hasStatus, TransportError } from './errors.ts'
import {
  describeLocation,
  type KubernetesObject,
  type ObjectName,
  type ResourceLocation,
  type ResourceType,
} from './objects.ts'
import { createTransport, type Request, type RequestMetrics } from './transport.ts'
import type { WatchEvent } from './watch-lines.ts'

export interface Selection {
  /** Left out: all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

interface ListOptions extends Selection, CallOptions {
  readonly limit?: number
  readonly continueToken?: string
}

export interface ListPage<T> {
  readonly items: T[]
  /** Of the whole list: the same on each page; a watch continues from it. */
  readonly resourceVersion: string
  /** Null on the last page. */
  readonly continueToken: string | null
}

interface WatchOptions extends Selection, StreamOptions {
  readonly resourceVersion: string
  /** The server ends the watch after this. */
  readonly timeoutSeconds: number
}

interface WriteOptions extends CallOptions {
  readonly fieldManager?: string | undefined
  readonly subresource?: 'status'
}

interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string
  /** Takes over fields of other managers instead of failing with Conflict. */
  readonly force?: boolean
}

interface DeleteOptions extends CallOptions {
  /** Preconditions: Conflict when the object was replaced (uid) or changed (resourceVersion). */
  readonly uid?: string
  readonly resourceVersion?: string
}

/** The part of an object that a caller writes; the server adds the rest. */
export interface NewObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}
type Writable = NewObject | (NewObject & Record<string, unknown> & { metadata: Record<string, unknown> })

export interface KubernetesClient {
  /** Consistent, as a list is: the server's cache (`resourceVersion=0`) may be older than what is known. */
  get<T extends KubernetesObject>(type: ResourceType, name: ObjectName, options?: CallOptions): Promise<T>
  /** One page. */
  list<T extends KubernetesObject>(type: ResourceType, options?: ListOptions): Promise<ListPage<T>>
  /**
   * Yields bookmarks too. Ends when the server ends it; throws when it breaks. Never retried: only the caller knows
   * from where.
   */
  watch<T extends KubernetesObject>(type: ResourceType, options: WatchOptions): AsyncIterable<WatchEvent<T>>
  create<T extends KubernetesObject>(type: ResourceType, object: Writable, options?: WriteOptions): Promise<T>
  /** Conflict unless `metadata.resourceVersion` is the newest. */
  replace<T extends KubernetesObject>(type: ResourceType, object: T, options?: WriteOptions): Promise<T>
  /** Server-side apply: `object` holds what `fieldManager` owns and nothing else. */
  apply<T extends KubernetesObject>(type: ResourceType, object: Writable, options: ApplyOptions): Promise<T>
  /** With `metadata.resourceVersion` in the patch: Conflict unless it is the newest. */
  mergePatch<T extends KubernetesObject>(
    type: ResourceType,
    name: ObjectName,
    patch: object,
    options?: WriteOptions,
  ): Promise<T>
  delete(type: ResourceType, name: ObjectName, options?: DeleteOptions): Promise<void>
  /** For paths that are not resources: `/version`, `/readyz`. Resolves with parsed JSON, or with text. */
  raw(method: Request['method'], path: string, body?: unknown, options?: CallOptions): Promise<unknown>
  /** Aborts the requests in flight. */
  close(): Promise<void>
}

export interface ClientOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** The maximum number of sockets, besides one for each watch. */
  readonly requestConnections?: number
  readonly metrics?: RequestMetrics
  /** Called once for each text of a `Warning` header. */
  readonly onWarning?: (text: string) => void
  readonly random?: () => number
  readonly userAgent?: string
}

interface RawList<T> {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: T[] | null
}

export function createClient(options: ClientOptions): KubernetesClient {
  const { connection, clock, metrics, requestConnections = 3, random = Math.random, userAgent = 'node' } = options
  const transport = createTransport({ connection, clock, metrics, requestConnections, userAgent })
  const { call, stream } = createCalls({ transport, clock, random, onWarning: options.onWarning })

  return {
    async get<T>(type: ResourceType, name: ObjectName, options?: CallOptions) {
      return (await call(requestOf('get', 'GET', type, name), options)) as T
    },
    async list<T extends KubernetesObject>(type: ResourceType, options: ListOptions = {}) {
      const { limit, continueToken, labelSelector, fieldSelector } = options
      const query = { limit, continue: continueToken, labelSelector, fieldSelector }
      const response = await call(requestOf('list', 'GET', type, inNamespace(options), query), options)
      return toPage(response as RawList<T>, transport.host)
    },
    watch<T>(type: ResourceType, options: WatchOptions) {
      const { resourceVersion, labelSelector, fieldSelector, timeoutSeconds } = options
      const selectors = { labelSelector, fieldSelector }
      const query = { watch: 1, allowWatchBookmarks: true, resourceVersion, timeoutSeconds, ...selectors }
      return stream<T>(requestOf('watch', 'GET', type, inNamespace(options), query), options)
    },
    async create<T>(type: ResourceType, object: Writable, options: WriteOptions = {}) {
      const { namespace } = object.metadata as ObjectName
      const request = requestOf('create', 'POST', type, { namespace }, { fieldManager: options.fieldManager })
      const description = `create ${describeLocation(type, nameOf(object))}`
      return (await call({ ...request, description, body: object }, options)) as T
    },
    async replace<T extends KubernetesObject>(type: ResourceType, object: T, options: WriteOptions = {}) {
      const { fieldManager, subresource } = options
      const request = requestOf('update', 'PUT', type, { ...nameOf(object), subresource }, { fieldManager })
      return (await call({ ...request, body: object }, options)) as T
    },
    async apply<T>(type: ResourceType, object: Writable, options: ApplyOptions) {
      const { fieldManager, force, subresource } = options
      const request = requestOf('patch', 'PATCH', type, { ...nameOf(object), subresource }, { fieldManager, force })
      // JSON is YAML.
      return (await call({ ...request, body: object, contentType: 'application/apply-patch+yaml' }, options)) as T
    },
    async mergePatch<T>(type: ResourceType, name: ObjectName, patch: object, options: WriteOptions = {}) {
      const { fieldManager, subresource } = options
      const request = requestOf('patch', 'PATCH', type, { ...name, subresource }, { fieldManager })
      return (await call({ ...request, body: patch, contentType: 'application/merge-patch+json' }, options)) as T
    },
    async delete(type, name, options = {}) {
      const { uid, resourceVersion } = options
      const preconditions = uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion }
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
      await call({ ...requestOf('delete', 'DELETE', type, name), body }, options)
    },
    raw(method, path, body, options) {
      const description = `${method} ${path.split('?')[0]}`
      return call({ verb: 'raw', method, path, description, body }, { ...options, isText: true })
    },
    close: transport.close,
  }
}

/** Resolves with null where there is no such object, or no such kind. */
export async function getOrNull<T extends KubernetesObject>(
  client: Pick<KubernetesClient, 'get'>,
  type: ResourceType,
  name: ObjectName,
  options?: CallOptions,
): Promise<T | null> {
  try {
    return await client.get<T>(type, name, options)
  } catch (error) {
    if (hasStatus(error, 404)) return null
    throw error
  }
}

function requestOf(
  verb: string,
  method: Request['method'],
  type: ResourceType,
  where: ResourceLocation,
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
): Request {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  const path = pathOf(type, where) + (given.length === 0 ? '' : `?${new URLSearchParams(given)}`)
  return { verb, method, path, description: `${verb} ${describeLocation(type, where)}` }
}

/** Returns `/apis/apps/v1/namespaces/shop/deployments/prices/status`; the core group is under `/api`. */
function pathOf({ group, version, plural }: ResourceType, { namespace, name, subresource }: ResourceLocation): string {
  const parts = [
    ...(group === '' ? ['api', version] : ['apis', group, version]),
    ...(namespace === undefined ? [] : ['namespaces', namespace]),
    plural,
  ]
  return ['', ...parts, name, subresource]
    .flatMap((part) => (part === undefined ? [] : encodeURIComponent(part)))
    .join('/')
}

const inNamespace = ({ namespace }: Selection): ResourceLocation => ({ namespace })

function nameOf({ metadata: { namespace, name } }: { readonly metadata: ObjectName }): ResourceLocation {
  return { namespace, name }
}

/**
 * Items of built-in resources have no kind in a list, and have it in a watch: here they always have it. A response that
 * is not a list must not pass for an empty one: callers conclude from a list what was deleted.
 */
function toPage<T extends KubernetesObject>(list: RawList<T>, host: string): ListPage<T> {
  const { apiVersion, kind, metadata, items } = list
  // Go writes a list without items as null.
  if (!metadata?.resourceVersion || !(items === null || Array.isArray(items)))
    throw new TransportError(`${host} did not send the list that was requested`)
  const own = {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind ? { kind: kind.replace(/List$/, '') } : {}),
  }
  return {
    items: (items ?? []).map((item) => (item.kind === undefined ? { ...own, ...item } : item)),
    resourceVersion: metadata.resourceVersion,
    continueToken: metadata.continue || null,
  }
}
