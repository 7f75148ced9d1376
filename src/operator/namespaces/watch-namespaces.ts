/**
 * The Namespaces in a cache, so that a changed annotation or label takes effect within a second. Without the right to
 * list and watch them there is no cache: what their projects are is read by name (namespaces.ts), and their labels are
 * not known. A controller of single namespaces may read these and watch none: it reads each once a minute, for their
 * labels.
 */

import { getOrNull, type KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import { createReflector } from '../../kubernetes/reflector.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { PROJECTS_ANNOTATION, WATCH_LABEL } from '../heartbeat-check.ts'
import type { Term } from '../term.ts'
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
  /**
   * Its annotation was changed: which projects its HeartbeatChecks may use. Not for one that was not known: it has no
   * resources yet.
   */
  readonly isOfProjects: boolean
  /** Its label was changed, or is known now. */
  readonly isOfLabel: boolean
}

export function startNamespaceWatch(options: NamespaceWatchOptions): NamespaceWatch {
  const { client, clock, random, stallMs, log, onChange } = options
  let deniedAt: number | null = null
  let isDenied = false
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
    onRight(verb, isGranted) {
      // A watch opens when the list before it is taken in.
      const isAgain = isDenied && isGranted && verb === 'watch'
      isDenied = !isGranted || (isDenied && !isAgain)
      if (!isAgain) return
      // What was decided meanwhile knew of no label. A change since is reported by itself.
      for (const name of reflector.keys()) onChange(name, { isOfProjects: false, isOfLabel: true })
    },
    onProblem(error) {
      if (!hasStatus(error, 403))
        return log.warn({ error }, 'the watch of Namespaces was interrupted; it is taken up again')
      const effect = `a changed annotation of one takes up to 10 minutes to act, and a label ${WATCH_LABEL} on one has no effect`
      if (deniedAt === null) log.info({}, `no right to list and watch Namespaces: ${effect}`)
      deniedAt = clock.now()
    },
  })
  reflector.start()
  return {
    // Also while the first list is taken in: what it has of one is complete. What was known before a denial may be old.
    get: (name) => (deniedAt === null || reflector.lastContactAt() > deniedAt ? reflector.get(name) : undefined),
    stop: reflector.stop,
  }
}

const READ_MS = 60_000

export interface NamespaceReadsOptions extends Pick<NamespaceWatchOptions, 'onChange'> {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly namespaces: readonly string[]
  readonly log: Log
  readonly startLoop: Term['startLoop']
}

/** Begins at once. What was read stays known while it cannot be read again. */
export function startNamespaceReads(options: NamespaceReadsOptions): NamespaceWatch {
  const { client, namespaces, log, startLoop, onChange } = options
  const known = new Map<string, KubernetesObject>()
  const denied = new Set<string>()

  async function read(name: string): Promise<void> {
    try {
      const found = await getOrNull<KubernetesObject>(client, NAMESPACES, { name })
      const before = known.get(name)
      denied.delete(name)
      if (found === null) return void known.delete(name)
      const after = trim(found)
      known.set(name, after)
      reportChange(before, after, onChange)
    } catch (error) {
      if (!hasStatus(error, 403))
        return log.warn({ error, namespace: name }, 'a Namespace could not be read; it is tried again')
      if (denied.has(name)) return
      denied.add(name)
      const effect = `changes of its label ${WATCH_LABEL} have no effect; it is tried again each minute`
      log.info({ namespace: name }, `no right to read the Namespace: ${effect}`)
    }
  }

  const loop = startLoop('namespaces', READ_MS, async (stopping) => {
    for (const name of namespaces) if (!stopping.aborted) await read(name)
  })
  return { get: (name) => known.get(name), stop: loop.stop }
}

/** Calls `onChange` if there is something new about it. `before`: undefined when it was not known. */
function reportChange(
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
function trim({ metadata }: KubernetesObject): KubernetesObject {
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
