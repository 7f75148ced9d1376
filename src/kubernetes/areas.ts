/** One type of resource in all namespaces or in some, and what the API server forbids of it: the other namespaces go on. */

import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import type { KubernetesClient } from './client.ts'
import { hasStatus } from './errors.ts'
import { type CachedObject, type KubernetesObject, keyOf, type ResourceType, splitKey } from './objects.ts'
import {
  type Change,
  createReflector,
  type Reflector,
  type ReflectorMetrics,
  type ReflectorOptions,
} from './reflector.ts'
import { shareMetrics } from './shared-metrics.ts'

export type ReadClient = Pick<KubernetesClient, 'list' | 'watch'>

export interface AreasOptions<T extends CachedObject>
  extends Pick<ReflectorOptions<T, KubernetesObject>, 'labelSelector' | 'fieldSelector' | 'relistMs'> {
  readonly client: ReadClient
  readonly type: ResourceType
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly clock: Clock
  readonly random: () => number
  readonly stallMs: number | undefined
  readonly log: Log
  readonly metrics: ReflectorMetrics
  readonly trim: (object: KubernetesObject) => T
  readonly onChange: (key: string, change: Change<T>) => void
  /** The kind as people call it, for the log. Default: the plural of the type. */
  readonly name?: string
  /** What restores a missing right, for the log. */
  readonly grant: string
  /** Returns what a problem means, for the log; null: nothing special. */
  readonly explain?: (error: unknown) => string | null
}

export interface Areas<T> {
  start(): void
  stop(): Promise<void>
  /**
   * Whether all was listed, or tried: what is forbidden is not waited for, nor a namespace of which the first list has
   * failed. A watch of all namespaces is waited for.
   */
  hasSynced(): boolean
  /** Whether all of a namespace was listed. */
  isListed(namespace: string): boolean
  get(key: string): T | undefined
  /** Caches the response to a write of ours. */
  put(object: KubernetesObject): void
  keys(): Iterable<string>
  values(): Iterable<T>
  /** As `list jobs.batch in the namespace payments`; null: nothing is missing. */
  missingRight(namespace: string): string | null
  /** Finds out whether the right to list was removed: an open watch goes on without it. One small request for each area, one after the other. */
  probe(signal: AbortSignal): Promise<void>
  /** Returns true once after the API server did not respond for an area, or not as it should, and responds again. */
  takeRecovery(): boolean
  /** One for each watched namespace, or one for all. */
  readonly reflectors: readonly Reflector<T, KubernetesObject>[]
}

type Verb = 'list' | 'watch'

export function watchAreas<T extends CachedObject>(options: AreasOptions<T>): Areas<T> {
  const { type, namespaces, clock, log, explain = () => null } = options
  const plural = type.group === '' ? type.plural : `${type.plural}.${type.group}`
  const areas = (namespaces ?? [undefined]).map((namespace) => ({
    namespace,
    rights: createRights(options.client),
    /** Null: not since the last recovery. */
    failedAt: null as number | null,
    hasFailed: false,
  }))
  const shares = shareMetrics(options.metrics, areas.length)
  const describe = (verb: Verb, namespace: string | undefined) =>
    `${verb} ${plural}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`

  const reflectors = areas.map((area, index) => {
    const { namespace, rights } = area
    let reported: Verb | null = null
    return createReflector<T, KubernetesObject>({
      client: rights.client,
      type,
      ...(namespace === undefined ? {} : { namespace }),
      ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
      ...(options.fieldSelector === undefined ? {} : { fieldSelector: options.fieldSelector }),
      ...(options.relistMs === undefined ? {} : { relistMs: options.relistMs }),
      ...(options.stallMs === undefined ? {} : { stallMs: options.stallMs }),
      clock,
      random: options.random,
      trim: options.trim,
      onChange: options.onChange,
      onProblem(error, kind) {
        area.failedAt = clock.now()
        area.hasFailed = true
        const missing = rights.missing()
        if (missing === null)
          log.warn(
            { error, kind, namespace },
            explain(error) ?? `the watch of ${options.name ?? plural} was interrupted; it is taken up again`,
          )
        // Once, not at each of the attempts that find out whether it was granted.
        else if (missing !== reported)
          log.warn(
            { error, namespace },
            `the right to ${options.name === undefined ? describe(missing, namespace) : `list and watch ${options.name}`} is missing: ${options.grant}; it is tried again`,
          )
        reported = missing
      },
      metrics: shares[index]!,
    })
  })
  const indexOf = (namespace: string) => (namespaces === null ? 0 : namespaces.indexOf(namespace))
  const reflectorOf = (key: string) => reflectors[indexOf(splitKey(key).namespace)]

  return {
    reflectors,
    start() {
      for (const reflector of reflectors) reflector.start()
    },
    async stop() {
      await Promise.all(reflectors.map((reflector) => reflector.stop()))
    },
    hasSynced: () =>
      areas.every(
        ({ rights, hasFailed }, index) =>
          reflectors[index]!.hasSynced() || rights.missing() !== null || (namespaces !== null && hasFailed),
      ),
    isListed: (namespace) => reflectors[indexOf(namespace)]?.hasSynced() ?? false,
    get: (key) => reflectorOf(key)?.get(key),
    put: (object) => reflectorOf(keyOf(object.metadata))?.put(object),
    *keys() {
      for (const reflector of reflectors) yield* reflector.keys()
    },
    *values() {
      for (const reflector of reflectors) yield* reflector.values()
    },
    missingRight(namespace) {
      const area = areas[indexOf(namespace)]
      const missing = area?.rights.missing() ?? null
      return missing === null ? null : describe(missing, area!.namespace)
    },
    async probe(signal) {
      const { labelSelector, fieldSelector } = options
      const selectors = {
        ...(labelSelector === undefined ? {} : { labelSelector }),
        ...(fieldSelector === undefined ? {} : { fieldSelector }),
      }
      for (const [index, { namespace, rights }] of areas.entries()) {
        if (signal.aborted) return
        if (!reflectors[index]!.hasSynced()) continue
        const where = { ...(namespace === undefined ? {} : { namespace }), ...selectors, limit: 1, signal }
        // What is forbidden is noted; what fails otherwise is a matter of the watch.
        await rights.client.list(type, where).catch(() => {})
      }
    },
    takeRecovery() {
      const recovered = areas.filter(
        ({ failedAt }, index) => failedAt !== null && reflectors[index]!.lastContactAt() > failedAt,
      )
      for (const area of recovered) area.failedAt = null
      return recovered.length > 0
    },
  }
}

/**
 * What the API server forbids, by its responses: a watch that is open goes on after its right was removed, and another request of the
 * same kind shows that.
 */
function createRights(client: ReadClient): { readonly client: ReadClient; missing(): Verb | null } {
  const denied = new Set<Verb>()
  const note = (verb: Verb, error: unknown) => {
    if (hasStatus(error, 403)) denied.add(verb)
    return error
  }
  return {
    missing: () => (denied.has('list') ? 'list' : denied.has('watch') ? 'watch' : null),
    client: {
      async list(type, options) {
        try {
          const page = await client.list<never>(type, options)
          denied.delete('list')
          return page
        } catch (error) {
          throw note('list', error)
        }
      },
      async *watch(type, options) {
        const onContact = () => {
          denied.delete('watch')
          options.onContact?.()
        }
        try {
          yield* client.watch<never>(type, { ...options, onContact })
        } catch (error) {
          throw note('watch', error)
        }
      },
    },
  }
}
