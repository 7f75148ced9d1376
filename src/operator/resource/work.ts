/** The work on one kind of resources in one term: the queue of their keys, its workers, and what puts all keys into it. */

import type { Priority } from '../../kubernetes/queue.ts'
import { createWorkers, type ReconcileResult } from '../../kubernetes/workers.ts'
import type { Term } from '../term.ts'

export interface WorkOptions {
  /** In metrics and logs. */
  readonly name: string
  /** Of the resources. */
  readonly kind: string
  readonly workers: number
  readonly watch: { keys(): Iterable<string> }
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>
}

export interface Work {
  /** Default: live. */
  add(key: string, priority?: Priority): void
  addAfter(key: string, afterMs: number, priority?: Priority): void
  addAll(): void
  /** The annotation of the Namespace has changed: what its resources declare may move, or be allowed now. */
  addNamespace(namespace: string): void
  /** What is found by looking must not shorten the back-off of a failed key. */
  isFailing(key: string): boolean
  start(): void
  stop(drainMs: number): Promise<void>
}

/** A resync of all resources, and how often what no watch shows is looked for. */
export const RESYNC_MS = 600_000
export const POLL_MS = 15_000

export function createWork(term: Term, { name, kind, workers: count, watch, reconcile }: WorkOptions): Work {
  const { clock, log } = term
  const queue = term.createQueue(name)
  const workers = createWorkers({
    queue,
    count,
    clock,
    reconcile,
    onError: (error, resource) => log.warn({ error, resource }, `a ${kind} could not be reconciled; it is tried again`),
    metrics: term.kubernetesMetrics.workers(name, count),
  })
  const addAll = () => {
    for (const key of watch.keys()) queue.add(key, 'background')
  }
  return {
    add: queue.add,
    addAfter: queue.addAfter,
    addAll,
    addNamespace(namespace) {
      for (const key of watch.keys()) if (key.startsWith(`${namespace}/`)) queue.add(key, 'live')
    },
    isFailing: (key) => queue.failures(key) > 0,
    start() {
      workers.start()
      // The last leader may have left work undone.
      addAll()
    },
    async stop(drainMs) {
      queue.stop()
      await workers.stop(drainMs)
    },
  }
}
