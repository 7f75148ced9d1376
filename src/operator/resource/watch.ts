/** The resources of one kind in the watched namespaces, in one cache. A standby keeps it up to date too. */

import { watchAreas } from '../../kubernetes/areas.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import type { ReflectorMetrics } from '../../kubernetes/reflector.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { RESTORE_RIGHTS, VERSION } from '../names.ts'
import { haveFinalizersChanged, isEdited, trim } from './changes.ts'
import type { Resource, ResourceKind } from './resource.ts'

export interface WatchOptions {
  readonly client: KubernetesClient
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly clock: Clock
  readonly random: () => number
  /** A watch that receives nothing for so long is replaced; default: the reflector's. */
  readonly stallMs?: number | undefined
  readonly log: Log
  readonly metrics: ReflectorMetrics
  /**
   * A resource, or one that it depends on, was created, deleted, or changed by others. What the first list of a
   * namespace shows may wait.
   */
  readonly onChange: (key: string, priority: Priority) => void
}

export interface ResourceWatch<T extends Resource> {
  start(): void
  stop(): Promise<void>
  get(key: string): T | undefined
  keys(): Iterable<string>
  put(object: T): void
  isListed(namespace: string): boolean
  takeRecovery(): boolean
}

export function createResourceWatch<T extends Resource>(
  { kind, type }: ResourceKind,
  options: WatchOptions,
): ResourceWatch<T> {
  const { stallMs, onChange } = options
  const areas = watchAreas<T>({
    ...options,
    type,
    stallMs,
    trim,
    name: `${kind}s`,
    grant: RESTORE_RIGHTS,
    explain: (error) => explainUnknown({ kind, type }, error),
    onChange(key, { before, after }) {
      if (before !== undefined && after !== undefined && !isRelevant(before, after)) return
      onChange(key, areas.isListed(splitKey(key).namespace) ? 'live' : 'background')
    },
  })
  const { start, stop, get, keys, put, isListed, takeRecovery } = areas
  return { start, stop, get, keys, put, isListed, takeRecovery }
}

/** What to do about a kind that the cluster does not know; null: the error says something else. */
export function explainUnknown({ kind, type: { plural } }: ResourceKind, error: unknown): string | null {
  return hasStatus(error, 404)
    ? `the cluster does not know ${kind}s of version ${VERSION}: apply crds/${plural}.yaml; it is looked for again`
    : null
}

/** Our own writes of the status need no reconcile. */
const isRelevant = (before: Resource, after: Resource): boolean =>
  isEdited(before, after) ||
  haveFinalizersChanged(before, after) ||
  before.status?.installation !== after.status?.installation
