/**
 * What a HeartbeatCheck depends on of its Namespace: which projects it may use (design, section 6, "Projects"), by an
 * annotation that its tenants cannot edit or by the configuration, and its uid, by which a new namespace of the same
 * name is known.
 */

import type { Place, Revival } from '../../checks/declare/declare-check.ts'
import { AppError } from '../../domain/errors.ts'
import { getOrNull, type KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import { PROJECTS_ANNOTATION } from '../heartbeat-check.ts'

export interface Namespaces {
  /** Who decides which projects a namespace may use. */
  readonly decidedBy: 'annotation' | 'configuration'
  /**
   * Resolves with the slugs; with null when the namespace may use its own project only, and without the right to read
   * the annotation. What was read before the right was removed counts for 10 minutes. `fresh`: for a resource that
   * waits for a change of it. `now`: read after the call, because what a watch says may be outdated.
   */
  allowedProjects(namespace: string, age: Age): Promise<readonly string[] | null>
  /** What the API server said when it last forbade to read the namespace; null: it did not. */
  denial(namespace: string): string | null
  /**
   * Where the resources of the namespace are. `isFirst`: for the first reconcile of a resource, which decides what
   * comes back.
   */
  placeOf(namespace: string, isFirst: boolean): Promise<Place>
}

export interface NamespacesOptions {
  /** The slugs of each namespace; replaces the annotation. */
  readonly projects?: ReadonlyMap<string, readonly string[]> | null
  /** Default: true. */
  readonly isAnnotationOn?: boolean
  /** Default: `name`. */
  readonly revival?: Revival
  /** The uid of the cluster, as it was read last. */
  readonly clusterUid?: () => string | null
  /** The Namespaces that a watch has in its cache. Undefined: read it. */
  readonly watched?: (namespace: string) => KubernetesObject | undefined
  /** Whether a Role in each namespace grants the right to read the Namespace, not one for all. Default: false. */
  readonly isRightOfEach?: boolean
}

export const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces' }
/** Its uid is that of the cluster. */
export const SYSTEM_NAMESPACE = 'kube-system'
/** A Namespace with a thousand checks is read once in a while, not a thousand times. */
const CACHE_MS = { cached: 30_000, fresh: 1_000, now: 0 } as const
type Age = keyof typeof CACHE_MS
/**
 * So long what was read counts after the right to read Namespaces was removed: such a right is probably being replaced.
 */
const KEEP_MS = 600_000
/** Namespaces come and go, as with preview environments, and a term may last for months. */
const MAX_CACHED = 1_000

/** In place of a name: the right to read all Namespaces. */
const ALL = '*'

const UNKNOWN: Place = { namespaceUid: null, clusterUid: null, isFresh: false }

type Found = KubernetesObject | null

export function createNamespaces(
  client: Pick<KubernetesClient, 'get'>,
  clock: Pick<Clock, 'now'>,
  options: NamespacesOptions = {},
): Namespaces {
  const {
    projects = null,
    isAnnotationOn = true,
    revival = 'name',
    clusterUid,
    watched,
    isRightOfEach = false,
  } = options
  const hasAnnotation = projects === null && isAnnotationOn
  const known = new Map<string, { readonly at: number; readonly found: Found }>()
  /** Since when each right that was there is missing, by rightTo(); null: it is there, undefined: it never was. */
  const missingSince = new Map<string, number | null>()
  const denials = new Map<string, string>()

  const rightTo = (name: string) => (isRightOfEach || name === SYSTEM_NAMESPACE ? name : ALL)

  /**
   * Throws while a right that was there is missing: no check moves to another project because of that. After KEEP_MS:
   * null.
   */
  async function read(name: string): Promise<Found> {
    const right = rightTo(name)
    try {
      const found = await getOrNull<KubernetesObject>(client, NAMESPACES, { name })
      if (found === null) return null
      missingSince.set(right, null)
      denials.delete(name)
      return found
    } catch (error) {
      if (!hasStatus(error, 403)) throw error
      remember(denials, name, error.message)
      const before = missingSince.get(right)
      if (before === undefined) return null
      const since = before ?? clock.now()
      missingSince.set(right, since)
      if (clock.now() - since >= KEEP_MS) return null
      throw new AppError('unavailable', `the Namespace ${name} cannot be read: ${error.message}; it is tried again`)
    }
  }

  /** Failures are not cached, and what was read before a failure is not forgotten. */
  async function find(namespace: string, age: Age): Promise<Found> {
    const last = known.get(namespace)
    const seen = age === 'now' ? undefined : watched?.(namespace)
    if (seen !== undefined) missingSince.set(rightTo(namespace), null)
    else if (last !== undefined && clock.now() - last.at < CACHE_MS[age]) return last.found
    try {
      const at = clock.now()
      const found = seen ?? (await read(namespace))
      remember(known, namespace, { at, found })
      return found
    } catch (error) {
      if (age === 'now' || last === undefined || !(error instanceof AppError)) throw error
      return last.found
    }
  }

  return {
    decidedBy: hasAnnotation ? 'annotation' : 'configuration',
    denial: (namespace) => (hasAnnotation ? (denials.get(namespace) ?? null) : null),
    async allowedProjects(namespace, age) {
      return hasAnnotation ? readProjects(await find(namespace, age)) : (projects?.get(namespace) ?? null)
    },
    async placeOf(namespace, isFirst) {
      const isFresh = revival === 'uid' && isFirst
      // Otherwise it is only remembered, for a later REVIVAL=uid: not worth a read of its own.
      if (revival === 'name' && !hasAnnotation) return UNKNOWN
      const found = await find(namespace, isFresh ? 'now' : 'cached')
      // After the namespace: an etcd that was emptied is never taken for a namespace that was replaced.
      const system = isFresh && found !== null ? uidOf(await read(SYSTEM_NAMESPACE)) : null
      return { namespaceUid: uidOf(found), clusterUid: isFresh ? system : (clusterUid?.() ?? null), isFresh }
    },
  }
}

/** As the newest of MAX_CACHED. */
function remember<T>(map: Map<string, T>, name: string, value: T): void {
  map.delete(name)
  map.set(name, value)
  if (map.size > MAX_CACHED) map.delete(map.keys().next().value!)
}

const uidOf = (found: Found): string | null => found?.metadata.uid ?? null

function readProjects(found: Found): readonly string[] | null {
  const slugs = found?.metadata.annotations?.[PROJECTS_ANNOTATION]?.split(',').map((slug) => slug.trim())
  return slugs?.filter((slug) => slug !== '') ?? null
}
