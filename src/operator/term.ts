/**
 * One term: from the time when this process begins to lead, until the lease is lost, another cluster has the name, or
 * the process stops. Controllers work for a term, and each term has controllers of its own: the state of an earlier
 * term may be outdated.
 */

import type { CronJobSettings } from '../domain/cron-job-settings.ts'
import type { KubernetesClient } from '../kubernetes/client.ts'
import { limitClient } from '../kubernetes/limit-client.ts'
import type { KubernetesMetrics } from '../kubernetes/metrics.ts'
import { createQueue, type Queue } from '../kubernetes/queue.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { BackoffSteps } from '../runtime/backoff.ts'
import { after, type Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { createLoop, type Loop } from '../runtime/loop.ts'
import type { OperatorMetrics } from './metrics.ts'
import type { OwnClaims } from './ownership/installation.ts'
import type { Service } from './service.ts'

/** Work that only the leader does. It is made for a term, and used once. */
export interface Controller {
  /** For logs. */
  readonly name: string
  start(): void
  /**
   * Takes no more work at once, and resolves when the work in progress has ended: after `drainMs` at the latest it is
   * aborted. Called once, after the signal of the term. Never rejects.
   */
  stop(drainMs: number): Promise<void>
}

/** What all terms of a process share. */
export interface Shared {
  readonly service: Service
  readonly cluster: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly cronJobs: CronJobSettings
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly recorder: Recorder
  readonly metrics: OperatorMetrics
  readonly kubernetesMetrics: KubernetesMetrics
  /** A watch that receives nothing for so long is replaced; undefined: the reflector's. */
  readonly stallMs: number | undefined
}

export interface Term extends Shared {
  /** Its calls end when the controllers have stopped, or may take no longer to stop: before another process leads. */
  readonly client: KubernetesClient
  /** Aborts with the term. */
  readonly signal: AbortSignal
  readonly claims: OwnClaims
  /** The uid of this cluster, as it was read last; null without the right to read it. */
  readonly clusterUid: () => string | null
  /** @param backoff default: the queue's */
  createQueue(name: string, backoff?: BackoffSteps): Queue
  /** Starts background work of its own; a run that throws is reported, and repeated. The caller stops it. */
  startLoop(name: string, everyMs: number, run: (stopping: AbortSignal) => Promise<void>): Loop
}

export interface TermOptions extends Pick<Term, 'signal' | 'claims' | 'clusterUid'> {
  /** Its calls are limited to the term. */
  readonly client: KubernetesClient
}

export interface OpenTerm {
  readonly term: Term
  /** Stops these, all together: the lease may expire soon. Resolves when they have ended. */
  close(parts: readonly Pick<Controller, 'stop'>[], drainMs: number): Promise<void>
}

export function openTerm(shared: Shared, options: TermOptions): OpenTerm {
  const { clock, random, log, kubernetesMetrics } = shared
  const cut = new AbortController()
  const term: Term = {
    ...shared,
    ...options,
    client: limitClient(options.client, cut.signal),
    createQueue(name, backoff) {
      const steps = backoff === undefined ? {} : { backoff }
      return createQueue({ clock, random, metrics: kubernetesMetrics.queue(name), ...steps })
    },
    startLoop(name, everyMs, run) {
      const loop = createLoop({
        everyMs,
        clock,
        async run(stopping) {
          await run(stopping)
          return 'done'
        },
        onError: (error) => log.warn({ error, loop: name }, 'background work failed; it is tried again'),
      })
      loop.start()
      return loop
    },
  }
  return {
    term,
    async close(parts, drainMs) {
      const end = () => cut.abort(new Error('the term as leader has ended'))
      const stopTimer = after(clock, drainMs, end)
      await Promise.all(parts.map((part) => part.stop(drainMs)))
      stopTimer()
      end()
    },
  }
}
