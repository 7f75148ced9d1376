/** One type of resource in all namespaces or in some, and what the API server forbids of it: the other namespaces go on. */

import { ApiError, type KubernetesClient } from '../../kubernetes/client.ts'
import { type CachedObject, type KubernetesObject, type ResourceType, splitKey } from '../../kubernetes/objects.ts'
import {
  type Change,
  createReflector,
  type Reflector,
  type ReflectorMetrics,
  type ReflectorOptions,
} from '../../kubernetes/reflector.ts'
import { shareMetrics } from '../../kubernetes/shared-metrics.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'

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
}

export interface Areas<T> {
  start(): void
  stop(): Promise<void>
  /** Whether all was listed; what is forbidden is not waited for. */
  hasSynced(): boolean
  /** Whether all of a namespace was listed. */
  isListed(namespace: string): boolean
  get(key: string): T | undefined
  values(): Iterable<T>
  /** As `list jobs.batch in the namespace payments`; null: nothing is missing. */
  missingRight(namespace: string): string | null
  /** Finds out whether the right to list was removed: an open watch goes on without it. One small request for each area, one after the other. */
  probe(signal: AbortSignal): Promise<void>
  /** One for each watched namespace, or one for all. */
  readonly reflectors: readonly Reflector<T, KubernetesObject>[]
}

type Verb = 'list' | 'watch'

export function watchAreas<T extends CachedObject>(options: AreasOptions<T>): Areas<T> {
  const { type, namespaces, log } = options
  const plural = type.group === '' ? type.plural : `${type.plural}.${type.group}`
  const areas = (namespaces ?? [undefined]).map((namespace) => ({ namespace, rights: createRights(options.client) }))
  const shares = shareMetrics(options.metrics, areas.length)
  const describe = (verb: Verb, namespace: string | undefined) =>
    `${verb} ${plural}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`

  const reflectors = areas.map(({ namespace, rights }, index) => {
    let reported: Verb | null = null
    return createReflector<T, KubernetesObject>({
      client: rights.client,
      type,
      ...(namespace === undefined ? {} : { namespace }),
      ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
      ...(options.fieldSelector === undefined ? {} : { fieldSelector: options.fieldSelector }),
      ...(options.relistMs === undefined ? {} : { relistMs: options.relistMs }),
      ...(options.stallMs === undefined ? {} : { stallMs: options.stallMs }),
      clock: options.clock,
      random: options.random,
      trim: options.trim,
      onChange: options.onChange,
      onProblem(error, kind) {
        const missing = rights.missing()
        if (missing === null)
          log.warn({ error, kind, namespace }, `the watch of ${plural} was interrupted; it is taken up again`)
        // Once, not at each of the attempts that find out whether it was granted.
        else if (missing !== reported)
          log.warn(
            { error, namespace },
            `the right to ${describe(missing, namespace)} is missing: grant the role heartbeat-operator-cronjobs; it is tried again`,
          )
        reported = missing
      },
      metrics: shares[index]!,
    })
  })
  const indexOf = (namespace: string) => (namespaces === null ? 0 : namespaces.indexOf(namespace))

  return {
    reflectors,
    start() {
      for (const reflector of reflectors) reflector.start()
    },
    async stop() {
      await Promise.all(reflectors.map((reflector) => reflector.stop()))
    },
    hasSynced: () => areas.every(({ rights }, index) => reflectors[index]!.hasSynced() || rights.missing() !== null),
    isListed: (namespace) => reflectors[indexOf(namespace)]?.hasSynced() ?? false,
    get: (key) => reflectors[namespaces === null ? 0 : indexOf(splitKey(key).namespace)]?.get(key),
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
  }
}

/**
 * What the API server forbids, by its responses: a watch that is open goes on after its right was removed, and another request of the
 * same kind shows that.
 */
function createRights(client: ReadClient): { readonly client: ReadClient; missing(): Verb | null } {
  const denied = new Set<Verb>()
  const note = (verb: Verb, error: unknown) => {
    if (error instanceof ApiError && error.status === 403) denied.add(verb)
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
