/**
 * The Namespaces of a controller of single namespaces: it may read these and watch none, so it reads each once a minute. For their labels;
 * a change of their projects is read when it is needed (namespaces.ts).
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { createLoop } from '../../runtime/loop.ts'
import { WATCH_LABEL } from '../heartbeat-check.ts'
import { NAMESPACES } from './namespaces.ts'
import { type NamespaceWatch, type NamespaceWatchOptions, reportChange, trim } from './watch-namespaces.ts'

export interface NamespaceReadsOptions extends Pick<NamespaceWatchOptions, 'onChange'> {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly namespaces: readonly string[]
  readonly clock: Clock
  readonly log: Pick<Log, 'info' | 'warn'>
}

const EVERY_MS = 60_000

/** Begins at once. What was read stays known while it cannot be read again. */
export function startNamespaceReads(options: NamespaceReadsOptions): NamespaceWatch {
  const { client, namespaces, clock, log, onChange } = options
  const known = new Map<string, KubernetesObject>()
  const denied = new Set<string>()

  async function readAll(stopping: AbortSignal): Promise<void> {
    for (const name of namespaces) {
      if (stopping.aborted) return
      try {
        await readOne(name)
      } catch (error) {
        if (!stopping.aborted) log.warn({ error, namespace: name }, 'a Namespace could not be read; it is tried again')
      }
    }
  }

  async function readOne(name: string): Promise<void> {
    try {
      const after = trim(await client.get<KubernetesObject>(NAMESPACES, { name }))
      const before = known.get(name)
      known.set(name, after)
      denied.delete(name)
      reportChange(before, after, onChange)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status === 404) known.delete(name)
      else if (error.status !== 403) throw error
      else if (!denied.has(name)) {
        denied.add(name)
        log.info(
          { namespace: name },
          `no right to read the Namespace: changes of its label ${WATCH_LABEL} have no effect; it is tried again each minute`,
        )
      }
    }
  }

  const loop = createLoop({
    everyMs: EVERY_MS,
    clock,
    async run(stopping) {
      await readAll(stopping)
      return 'done'
    },
    onError: (error) => log.warn({ error }, 'the Namespaces could not be read; it is tried again'),
  })
  loop.start()
  return { get: (name) => known.get(name), stop: () => loop.stop() }
}
