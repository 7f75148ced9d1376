/**
 * The Namespaces of the cluster in a cache, so that a changed annotation or label takes effect within a second. Without the right to list and
 * watch them (older rights) there is no cache: what their projects are is read by name (namespaces.ts), and their labels are not known.
 * A controller of single namespaces reads these by name, once a minute (read-namespaces.ts).
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import { createReflector } from '../../kubernetes/reflector.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { PROJECTS_ANNOTATION, WATCH_LABEL } from '../heartbeat-check.ts'
import { NAMESPACES } from './namespaces.ts'

export interface NamespaceWatch {
  /** Undefined while it is unknown whether there is one. Only with its annotation and its label. */
  get(name: string): KubernetesObject | undefined
  stop(): Promise<void>
}

export interface NamespaceWatchOptions {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>
  readonly clock: Clock
  readonly random: () => number
  /** A watch that receives nothing for so long is replaced; default: the reflector's. */
  readonly stallMs?: number | undefined
  readonly log: Log
  readonly onChange: (namespace: string, change: NamespaceChange) => void
}

/** What is new about a Namespace. */
export interface NamespaceChange {
  /** Its annotation was changed: which projects its HeartbeatChecks may use. Not for one that was not known: it has no resources yet. */
  readonly isOfProjects: boolean
  /** Its label was changed, or is known now. */
  readonly isOfLabel: boolean
}

export function startNamespaceWatch(options: NamespaceWatchOptions): NamespaceWatch {
  const { client, clock, random, stallMs, log, onChange } = options
  let deniedAt = Number.NEGATIVE_INFINITY
  const reflector = createReflector<KubernetesObject>({
    client,
    type: NAMESPACES,
    stallMs,
    clock,
    random,
    trim,
    onChange(_, { before, after }) {
      if (after !== undefined) reportChange(before, after, onChange)
    },
    onProblem(error) {
      if (!hasStatus(error, 403)) log.warn({ error }, 'the watch of Namespaces was interrupted; it is taken up again')
      else if (deniedAt === Number.NEGATIVE_INFINITY)
        log.info(
          {},
          `no right to list and watch Namespaces: a changed annotation of one takes up to 10 minutes to act, and a label ${WATCH_LABEL} on one has no effect`,
        )
      if (hasStatus(error, 403)) deniedAt = clock.now()
    },
  })
  reflector.start()
  return {
    // Also while the first list is taken in: what it has of one is complete. What was known before a denial may be old.
    get: (name) => (reflector.lastContactAt() > deniedAt ? reflector.get(name) : undefined),
    stop: reflector.stop,
  }
}

/** Calls `onChange` if there is something new about it. `before`: undefined when it was not known. */
export function reportChange(
  before: KubernetesObject | undefined,
  after: KubernetesObject,
  onChange: NamespaceWatchOptions['onChange'],
): void {
  const isOfProjects = before !== undefined && annotationOf(before) !== annotationOf(after)
  const isOfLabel = before === undefined || watchLabelOf(before) !== watchLabelOf(after)
  if (isOfProjects || isOfLabel) onChange(after.metadata.name, { isOfProjects, isOfLabel })
}

/** Null: it has none. */
export const watchLabelOf = ({ metadata }: KubernetesObject): string | null => metadata.labels?.[WATCH_LABEL] ?? null

const annotationOf = ({ metadata }: KubernetesObject) => metadata.annotations?.[PROJECTS_ANNOTATION]

/** Only what the operator reads: a cluster may have thousands. */
export function trim({ metadata }: KubernetesObject): KubernetesObject {
  const { name, uid, resourceVersion, annotations, labels } = metadata
  const text = annotations?.[PROJECTS_ANNOTATION]
  const label = labels?.[WATCH_LABEL]
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(text === undefined ? {} : { annotations: { [PROJECTS_ANNOTATION]: text } }),
      ...(label === undefined ? {} : { labels: { [WATCH_LABEL]: label } }),
    },
  }
}
