/** The HeartbeatChecks of the cluster, or of some of its namespaces, in one cache. A standby keeps it up to date too. */

import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { keyOf } from '../kubernetes/objects.ts'
import { createReflector, type ReflectorMetrics } from '../kubernetes/reflector.ts'
import { shareMetrics } from '../kubernetes/shared-metrics.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck } from './heartbeat-check.ts'

export interface CheckWatch {
  start(): void
  stop(): Promise<void>
  get(key: string): HeartbeatCheck | undefined
  keys(): Iterable<string>
  /** Caches the response to a write of ours. A change by others that comes with it is reported to onChange. */
  put(object: HeartbeatCheck): void
  hasSynced(): boolean
  /** Whether this operator watches the namespace. */
  isWatched(namespace: string): boolean
  /** Returns true once after the API server was unreachable and has responded again. */
  takeRecovery(): boolean
}

export interface CheckWatchOptions {
  readonly client: KubernetesClient
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly clock: Clock
  readonly random: () => number
  /** A watch that receives nothing for so long is replaced; default: the reflector's. */
  readonly stallMs?: number | undefined
  readonly log: Log
  readonly metrics: ReflectorMetrics
  /** A resource was created, deleted, or changed by others. */
  readonly onChange: (key: string) => void
}

export function createCheckWatch(options: CheckWatchOptions): CheckWatch {
  const { client, namespaces, clock, random, stallMs, log, metrics, onChange } = options
  let failedAt: number | null = null

  const scopes = namespaces ?? [undefined]
  const shares = shareMetrics(metrics, scopes.length)
  const reflectors = scopes.map((namespace, index) =>
    createReflector<HeartbeatCheck>({
      client,
      type: HEARTBEAT_CHECKS,
      ...(namespace === undefined ? {} : { namespace }),
      ...(stallMs === undefined ? {} : { stallMs }),
      clock,
      random,
      trim,
      onChange(key, { before, after }) {
        if (before === undefined || after === undefined || isRelevant(before, after)) onChange(key)
      },
      onProblem(error, kind) {
        failedAt = clock.now()
        log.warn({ error, kind, namespace }, explainProblem(error))
      },
      metrics: shares[index]!,
    }),
  )
  const of = (key: string) => (namespaces === null ? reflectors[0] : reflectors[namespaces.indexOf(key.split('/')[0]!)])

  return {
    start() {
      for (const reflector of reflectors) reflector.start()
    },
    async stop() {
      await Promise.all(reflectors.map((reflector) => reflector.stop()))
    },
    get: (key) => of(key)?.get(key),
    put(object) {
      const key = keyOf(object.metadata)
      const reflector = of(key)
      const before = reflector?.get(key)
      reflector?.put(object)
      const after = reflector?.get(key)
      // The response may hold a change by others that the watch has not reported yet, and will not report after it.
      if (before !== undefined && after !== undefined && isEdited(before, after)) onChange(key)
    },
    *keys() {
      for (const reflector of reflectors) yield* reflector.keys()
    },
    hasSynced: () => reflectors.every((reflector) => reflector.hasSynced()),
    isWatched: (namespace) => namespaces === null || namespaces.includes(namespace),
    takeRecovery() {
      const since = failedAt
      if (since === null || !reflectors.every((reflector) => reflector.lastContactAt() > since)) return false
      failedAt = null
      return true
    },
  }
}

/** Our own writes of the status need no reconcile. */
function isRelevant(before: HeartbeatCheck, after: HeartbeatCheck): boolean {
  const [finalizersBefore, finalizers] = [before.metadata.finalizers, after.metadata.finalizers]
  return isEdited(before, after) || JSON.stringify(finalizersBefore) !== JSON.stringify(finalizers)
}

/** Whether a field has changed that we never write. */
function isEdited({ metadata: before }: HeartbeatCheck, { metadata: after }: HeartbeatCheck): boolean {
  return (
    before.uid !== after.uid ||
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    JSON.stringify(before.annotations) !== JSON.stringify(after.annotations)
  )
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Half of an object are its managedFields. */
function trim(object: HeartbeatCheck): HeartbeatCheck {
  const { managedFields: _, annotations, ...metadata } = object.metadata
  if (annotations === undefined) return { ...object, metadata }
  const { [LAST_APPLIED]: _applied, ...kept } = annotations
  return { ...object, metadata: { ...metadata, annotations: kept } }
}

function explainProblem(error: unknown): string {
  if (error instanceof ApiError && error.status === 404)
    return 'the cluster does not know HeartbeatChecks: apply manifests/crd.yaml; it is looked for again'
  if (error instanceof ApiError && error.status === 403)
    return 'the right to list and watch HeartbeatChecks is missing: apply manifests/install.yaml; it is tried again'
  return 'the watch of HeartbeatChecks was interrupted; it is taken up again'
}
