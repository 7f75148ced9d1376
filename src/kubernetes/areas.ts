/**
 * One type of resource in all namespaces or in some, and what the API server forbids of it: the other namespaces go on.
 */

import type { Log } from '../runtime/log.ts'
import type { KubernetesClient } from './client.ts'
import { type CachedObject, type KubernetesObject, keyOf, splitKey } from './objects.ts'
import { createReflector, type ReflectorMetrics, type ReflectorOptions, type Verb } from './reflector.ts'
import { describeRight, type Right, type Rights } from './rights.ts'

export type ReadClient = Pick<KubernetesClient, 'list' | 'watch'>

interface AreasOptions<T extends CachedObject>
  extends Omit<ReflectorOptions<T, KubernetesObject>, 'namespace' | 'metrics' | 'onRight' | 'onProblem'> {
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly log: Log
  readonly metrics: ReflectorMetrics
  /** The kind as people call it, for the log. Default: the plural of the type. */
  readonly name?: string
  /** What restores a missing right, for the log. */
  readonly grant: string
  /** Gets what requests show of the rights to list and watch. */
  readonly onRight?: Rights<Right>['note']
  /** Returns what a problem means, for the log; null: nothing special. */
  readonly explain?: (error: unknown) => string | null
}

export function watchAreas<T extends CachedObject>(options: AreasOptions<T>) {
  const { type, namespaces, clock, log, explain = () => null } = options
  const areas = (namespaces ?? [undefined]).map((namespace) => ({
    namespace,
    denied: new Set<Verb>(),
    /** Null: not since the last recovery. */
    failedAt: null as number | null,
    hasFailed: false,
  }))
  const name = options.name ?? type.plural
  const shares = shareMetrics(options.metrics, areas.length)

  const reflectors = areas.map((area, index) => {
    const { namespace, denied } = area
    let reported: Verb | undefined
    return createReflector<T, KubernetesObject>({
      ...options,
      namespace,
      onRight(verb, isGranted) {
        if (!isGranted) denied.add(verb)
        else if (denied.delete(verb)) reported = undefined
        options.onRight?.(namespace, { verb, type }, isGranted)
      },
      onProblem(error, kind) {
        if (kind === 'handler') return log.warn({ error, namespace }, `a change of ${name} could not be taken in`)
        area.failedAt = clock.now()
        area.hasFailed = true
        const [missing] = denied
        if (missing === undefined)
          log.warn(
            { error, kind, namespace },
            explain(error) ?? `the watch of ${name} was interrupted; it is taken up again`,
          )
        // Once, not at each of the attempts that find out whether it was granted.
        else if (missing !== reported)
          log.warn(
            { error, namespace },
            `the right to ${options.name === undefined ? describeRight({ verb: missing, type }, namespace) : `list and watch ${options.name}`} is missing: ${options.grant}; it is tried again`,
          )
        reported = missing
      },
      metrics: shares[index]!,
    })
  })
  const indexOf = (namespace: string) => (namespaces === null ? 0 : namespaces.indexOf(namespace))
  const reflectorOf = (key: string) => reflectors[indexOf(splitKey(key).namespace)]

  return {
    /** One for each watched namespace, or one for all. */
    reflectors,
    start(): void {
      for (const reflector of reflectors) reflector.start()
    },
    async stop(): Promise<void> {
      await Promise.all(reflectors.map((reflector) => reflector.stop()))
    },
    /**
     * Whether all was listed, or tried: what is forbidden is not waited for, nor a namespace of which the first
     * list has failed. A watch of all namespaces is waited for.
     */
    hasSynced: (): boolean =>
      areas.every(
        ({ denied, hasFailed }, index) =>
          reflectors[index]!.hasSynced() || denied.size > 0 || (namespaces !== null && hasFailed),
      ),
    /** Whether all of a namespace was listed. */
    isListed: (namespace: string): boolean => reflectors[indexOf(namespace)]?.hasSynced() ?? false,
    get: (key: string): T | undefined => reflectorOf(key)?.get(key),
    /** Caches the response to a write of ours. */
    put: (object: KubernetesObject): void => reflectorOf(keyOf(object.metadata))?.put(object),
    *keys(): Iterable<string> {
      for (const reflector of reflectors) yield* reflector.keys()
    },
    *values(): Iterable<T> {
      for (const reflector of reflectors) yield* reflector.values()
    },
    /** Returns true once after the API server did not respond for an area, or not as it should, and responds again. */
    takeRecovery(): boolean {
      const recovered = areas.filter(
        ({ failedAt }, index) => failedAt !== null && reflectors[index]!.lastContactAt() > failedAt,
      )
      for (const area of recovered) area.failedAt = null
      return recovered.length > 0
    },
  }
}

/**
 * Metrics for each of `count` reflectors of one resource. The resource has the oldest contact of them all, so that a
 * stalled one is not hidden by the others, and the sum of their objects.
 */
export function shareMetrics(metrics: ReflectorMetrics, count: number): readonly ReflectorMetrics[] {
  const contacts = new Array<number>(count).fill(0)
  const objects = new Array<number>(count).fill(0)
  return contacts.map((_, index) => ({
    restarted: metrics.restarted,
    contact(atMs) {
      contacts[index] = atMs
      metrics.contact(Math.min(...contacts))
    },
    objects(held) {
      objects[index] = held
      metrics.objects(objects.reduce((sum, one) => sum + one))
    },
  }))
}
