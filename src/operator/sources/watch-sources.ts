/**
 * The sources of the cluster, their runs, and the pods of the runs, in caches: one for the process, so that a standby
 * is warm. Nothing is kept whole: 100,000 Jobs would be 526 MB.
 */

import type { Instant } from '../../domain/check.ts'
import { areaOf } from '../../domain/watch-area.ts'
import { type ReadClient, watchAreas } from '../../kubernetes/areas.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { confirmGroups } from '../../kubernetes/confirm.ts'
import { type KubernetesObject, type Pod, splitKey } from '../../kubernetes/objects.ts'
import type { Change, ReflectorMetrics } from '../../kubernetes/reflector.ts'
import { createRights, type Right, type Rights } from '../../kubernetes/rights.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { RESTORE_RIGHTS } from '../names.ts'
import { PODS, type TrimmedPod, trimPod } from '../reasons/trim-pod.ts'
import { createOwnerlessRuns } from './ownerless-runs.ts'
import { createRecent } from './recent.ts'
import type { Source, SourceKind, SourceRun } from './source-kind.ts'

/** Called synchronously; must be quick. Without `before` it is new, without `after` it was deleted. */
export type SourceListener = (key: string, change: Change<Source>) => void
/** @param source the key of its source; null: that is not known, or not yet */
export type RunListener = (source: string | null, change: Change<SourceRun>) => void
export type PodListener = (runUid: string) => void

/** A run that is deleted, or has lost its owner. */
export interface GoneRun {
  /** The key of its source. */
  readonly source: string
  /** As it was last. */
  readonly run: SourceRun
  /** Whether two lists differ, or it has lost its owner: then its end was not seen. */
  readonly isListed: boolean
  readonly at: Instant
}

/** A right that only reasons need. */
export interface ReasonRight {
  /** As `list events in the namespace payments`. */
  readonly right: string
  /** What its absence means, in words. */
  readonly effect: string
}

export interface SourceWatch {
  readonly kind: SourceKind
  /** One for each watched namespace, or one for the cluster. */
  readonly areas: readonly string[]
  areaOf(namespace: string): string
  start(): void
  stop(): Promise<void>
  /** As that of Areas. */
  hasSynced(): boolean
  /** Whether all sources and runs of the namespace were listed. */
  isListed(namespace: string): boolean
  /** @param key namespace/name */
  getSource(key: string): Source | undefined
  sources(): Iterable<Source>
  /** Those that exist. */
  runsOf(sourceUid: string): Iterable<SourceRun>
  getRun(sourceUid: string, uid: string): SourceRun | undefined
  /** Those that were deleted within the last minutes, the oldest first. */
  goneRuns(): Iterable<GoneRun>
  /** Those that have not succeeded, and as they were last, those that were deleted within the last minutes. */
  podsOf(run: Pick<SourceRun['metadata'], 'namespace' | 'uid'>): readonly TrimmedPod[]
  /**
   * What the API server forbids that is needed in the namespace, as `list jobs.batch in the namespace payments`; null:
   * nothing.
   */
  missingRight(namespace: string): string | null
  /** The same of what only reasons need: it stalls nothing. */
  missingReasonRights(namespace: string): readonly ReasonRight[]
  /** How the rights are asked for, which the leader does. */
  readonly rights: Pick<Rights<Right>, 'ask' | 'everyMs' | 'onChange'>
  /** The areas with a run of such a source that has not ended. */
  busyAreas(isOne: (source: string) => boolean): ReadonlySet<string>
  /**
   * Those of `asked` of which all sources and runs that changed before the call are in the caches; where a run has
   * not started, the pods too, unless they may not be read: a pod may say that its run has started, and says why one
   * has not.
   */
  confirm(asked: readonly string[], signal: AbortSignal): Promise<readonly string[]>
  /** When the last confirm() began that returned the area of this namespace, by the clock. 0: none has. */
  confirmedAt(namespace: string): number
  /** Returns a function that ends the calls. */
  onSource(listener: SourceListener): () => void
  /** Returns a function that ends the calls. */
  onRun(listener: RunListener): () => void
  /** A pod of this run has changed. Returns a function that ends the calls. */
  onPod(listener: PodListener): () => void
}

export interface SourceWatchOptions {
  readonly client: ReadClient & Pick<KubernetesClient, 'raw'>
  /** Whether the logs of containers that failed are read. Default: false. */
  readonly areLogsRead?: boolean
  readonly kind: SourceKind
  readonly cluster: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly clock: Clock
  readonly random: () => number
  readonly stallMs: number | undefined
  readonly log: Log
  /** By the resource's plural. */
  readonly metrics: (plural: string) => ReflectorMetrics
}

const DAY_MS = 86_400_000
/** Longer than it takes until another process leads. */
const KEEP_GONE_MS = 300_000
const MAX_GONE_RUNS = 10_000
const MAX_GONE_PODS = 5_000

/** Without `effect`: what needs the right is stalled where it is missing. */
type NeededRight = Right & { readonly effect?: string }
const LIST_EVENTS: NeededRight = {
  verb: 'list',
  type: { group: '', plural: 'events' },
  effect: 'why a run does not start is not always known',
}
const GET_LOGS: NeededRight = {
  verb: 'get',
  type: PODS,
  subresource: 'log',
  effect: 'failures are recorded without their log',
}

export function createSourceWatch(options: SourceWatchOptions): SourceWatch {
  const { kind, cluster, clock } = options
  const sourceListeners = new Set<SourceListener>()
  const runListeners = new Set<RunListener>()
  const podListeners = new Set<PodListener>()
  /** Keys by uid, of those too that are deleted while runs of theirs exist. */
  const sourceKeys = new Map<string, string>()
  /** By the uid of the source, by their own. */
  const runs = new Map<string, Map<string, SourceRun>>()
  const goneRuns = createRecent<GoneRun>({ clock, keepMs: KEEP_GONE_MS, max: MAX_GONE_RUNS })
  /** By the uid of the run, by their own; those that are gone too. */
  const pods = new Map<string, Map<string, TrimmedPod>>()
  const gonePods = createRecent<TrimmedPod>({
    clock,
    keepMs: KEEP_GONE_MS,
    max: MAX_GONE_PODS,
    onForgotten: removePod,
  })
  /** The sources of the runs that have not ended, by the uid of the run. */
  const open = new Map<string, string>()
  const confirmedAt = new Map<string, number>()

  const { client, namespaces, random, stallMs, log } = options
  const areas = (namespaces ?? [null]).map((namespace) => areaOf(cluster, namespace))
  const areaOfNamespace = (namespace: string) => areaOf(cluster, namespaces === null ? null : namespace)
  const rights = createRights<NeededRight>({
    client,
    namespaces,
    needed: [
      ...[kind.type, kind.runType, PODS].flatMap((type) => [
        { verb: 'list', type },
        { verb: 'watch', type },
      ]),
      LIST_EVENTS,
      ...(options.areLogsRead ? [GET_LOGS] : []),
    ],
  })
  const base = { client, namespaces, clock, random, stallMs, log, grant: RESTORE_RIGHTS, onRight: rights.note }
  const sourceAreas = watchAreas<Source>({
    ...base,
    type: kind.type,
    metrics: options.metrics(kind.type.plural),
    trim: kind.trimSource,
    onChange(key, change) {
      const { before, after } = change
      if (after !== undefined) sourceKeys.set(after.metadata.uid, key)
      if (before !== undefined && before.metadata.uid !== after?.metadata.uid) forgetSource(before.metadata.uid)
      if (after !== undefined && before?.metadata.uid !== after.metadata.uid) ownerless.review(after).forEach(noteRun)
      for (const listener of sourceListeners) listener(key, change)
    },
  })
  const runAreas = watchAreas<SourceRun>({
    ...base,
    type: kind.runType,
    relistMs: DAY_MS,
    metrics: options.metrics(kind.runType.plural),
    trim: kind.trimRun,
    onChange: (_, change) => noteRun(ownerless.own(change)),
  })
  const podAreas = watchAreas<TrimmedPod>({
    ...base,
    type: PODS,
    ...kind.podSelection,
    relistMs: DAY_MS,
    metrics: options.metrics(PODS.plural),
    trim: (object: KubernetesObject) => trimPod(object as Pod, kind.runKind),
    onChange: (_, change) => notePod(change),
  })
  const all = [sourceAreas, runAreas, podAreas]
  const ownerless = createOwnerlessRuns(sourceAreas)

  function noteRun(change: Change<SourceRun>): void {
    const { isListed = false } = change
    const { before, after } = withStarts(change)
    if (before !== undefined && after !== undefined && before.sourceUid !== after.sourceUid) {
      // A CronJob that is deleted with --cascade=orphan leaves its Jobs: how they end is no report of it.
      noteRun({ before, after: undefined, isListed: true })
      noteRun({ ...change, after, before: undefined })
      return
    }
    const { uid } = (after ?? before)!.metadata
    const sourceUid = (after ?? before)!.sourceUid
    if (sourceUid === null) return
    if (after === undefined) removeRun(sourceUid, uid)
    const source = keyOfOwner(sourceUid, (after ?? before)!)
    if (after !== undefined) {
      const others = runs.get(sourceUid)
      if (others === undefined) runs.set(sourceUid, new Map([[uid, after]]))
      else others.set(uid, after)
      goneRuns.delete(uid)
      if ((after.outcome === null || after.outcome === 'Running') && !after.suspended) open.set(uid, sourceUid)
      else open.delete(uid)
    } else if (source !== null) goneRuns.add(uid, { source, run: before!, isListed, at: clock.now() })
    for (const listener of runListeners) listener(source, { ...change, before, after })
    if (after === undefined) forgetSource(sourceUid)
  }

  /**
   * A Job counts the pods that are ready now, and those that have ended: between two attempts of a container it may
   * have none of both. A run that has started stays so, but for a suspension, which takes its pods: then it has another
   * start time, or none.
   */
  function withStarts({ before, after }: Change<SourceRun>): Pick<Change<SourceRun>, 'before' | 'after'> {
    const known = before?.sourceUid == null ? before : (runs.get(before.sourceUid)?.get(before.metadata.uid) ?? before)
    if (after === undefined || after.hasPod || after.suspended) return { before: known, after }
    const stays = known?.hasPod === true && known.startedAt === after.startedAt
    if (!stays && !hasStartedPod(after)) return { before: known, after }
    return { before: known, after: { ...after, hasPod: true, outcome: after.outcome ?? 'Running' } }
  }

  function hasStartedPod({ metadata: { namespace, uid } }: SourceRun): boolean {
    for (const pod of pods.get(uid)?.values() ?? [])
      if (pod.hasStarted && pod.deletedAt === null && pod.metadata.namespace === namespace) return true
    return false
  }

  /**
   * An object may claim any owner, of other namespaces too, until the garbage collector deletes it: then it has none.
   */
  function keyOfOwner(sourceUid: string, { metadata }: SourceRun): string | null {
    const key = sourceKeys.get(sourceUid)
    return key !== undefined && splitKey(key).namespace === metadata.namespace ? key : null
  }

  /** Those of an owner that is not known yet count as its own. */
  const isOwn = (sourceUid: string) => (run: SourceRun) =>
    !sourceKeys.has(sourceUid) || keyOfOwner(sourceUid, run) !== null

  function removeRun(sourceUid: string, uid: string): void {
    const others = runs.get(sourceUid)
    others?.delete(uid)
    if (others?.size === 0) runs.delete(sourceUid)
    open.delete(uid)
  }

  /** Unless it exists, or a run of it does. */
  function forgetSource(uid: string): void {
    const key = sourceKeys.get(uid)
    if (key === undefined || runs.has(uid) || sourceAreas.get(key)?.metadata.uid === uid) return
    sourceKeys.delete(uid)
  }

  function notePod({ before, after, isListed }: Change<TrimmedPod>): void {
    const pod = (after ?? before)!
    const { runUid } = pod
    if (runUid === null) return
    if (after === undefined) {
      gonePods.add(pod.metadata.uid, pod)
      // The next start of its Job, once that is no longer suspended, is another one.
      if (pods.get(runUid)?.has(pod.metadata.uid))
        pods.get(runUid)!.set(pod.metadata.uid, { ...pod, hasStarted: false })
    } else {
      gonePods.delete(pod.metadata.uid)
      const others = pods.get(runUid)
      if (others === undefined) pods.set(runUid, new Map([[pod.metadata.uid, pod]]))
      else others.set(pod.metadata.uid, pod)
      const run = runs.get(open.get(runUid) ?? '')?.get(runUid)
      if (run?.outcome === null && hasStartedPod(run))
        noteRun({ before: run, after: run, ...(isListed === undefined ? {} : { isListed }) })
    }
    for (const listener of podListeners) listener(runUid)
  }

  function removePod({ runUid, metadata: { uid } }: TrimmedPod): void {
    const others = pods.get(runUid!)
    others?.delete(uid)
    if (others?.size === 0) pods.delete(runUid!)
  }

  /** The areas with such runs that have not ended. */
  function areasOfOpen(isOne: (run: SourceRun, source: string) => boolean): ReadonlySet<string> {
    const found = new Set<string>()
    for (const [uid, sourceUid] of open) {
      const [source, run] = [sourceKeys.get(sourceUid), runs.get(sourceUid)!.get(uid)!]
      if (source !== undefined && isOne(run, source)) found.add(areaOfNamespace(splitKey(source).namespace))
    }
    return found
  }

  const arePodsForbidden = (namespace: string) =>
    rights.missing(namespace).some(({ type, effect }) => type === PODS && effect === undefined)

  async function confirm(asked: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    const startedAt = clock.now()
    // Most of the time there are none, and pods need not be asked for.
    const waiting = areasOfOpen(({ outcome }) => outcome === null)
    const caches = asked.map((area) => {
      const index = areas.indexOf(area)
      const ofRuns = [sourceAreas.reflectors[index]!, runAreas.reflectors[index]!]
      const arePodsNeeded = waiting.has(area) && !arePodsForbidden(namespaces?.[index] ?? '')
      return arePodsNeeded ? [...ofRuns, podAreas.reflectors[index]!] : ofRuns
    })
    const results = await confirmGroups(caches, clock, signal)
    const confirmed = asked.filter((_, index) => results[index])
    for (const area of confirmed) confirmedAt.set(area, startedAt)
    return confirmed
  }

  const listen = <L>(listeners: Set<L>, listener: L) => {
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }

  return {
    kind,
    areas,
    areaOf: areaOfNamespace,
    start() {
      for (const areas of all) areas.start()
    },
    async stop() {
      await Promise.all(all.map((areas) => areas.stop()))
    },
    hasSynced: () => all.every((areas) => areas.hasSynced()),
    isListed: (namespace) => sourceAreas.isListed(namespace) && runAreas.isListed(namespace),
    getSource: sourceAreas.get,
    sources: sourceAreas.values,
    runsOf: (sourceUid) => [...(runs.get(sourceUid)?.values() ?? [])].filter(isOwn(sourceUid)),
    getRun(sourceUid, uid) {
      const run = runs.get(sourceUid)?.get(uid)
      return run !== undefined && isOwn(sourceUid)(run) ? run : undefined
    },
    goneRuns: goneRuns.values,
    podsOf: ({ namespace, uid }) =>
      [...(pods.get(uid)?.values() ?? [])].filter((pod) => pod.metadata.namespace === namespace),
    missingRight: (namespace) => rights.missing(namespace).find(({ effect }) => effect === undefined)?.right ?? null,
    missingReasonRights: (namespace) =>
      rights.missing(namespace).flatMap(({ right, effect }) => (effect === undefined ? [] : [{ right, effect }])),
    rights,
    busyAreas: (isOne) => areasOfOpen((_, source) => isOne(source)),
    confirm,
    confirmedAt: (namespace) => confirmedAt.get(areaOfNamespace(namespace)) ?? 0,
    onSource: (listener) => listen(sourceListeners, listener),
    onRun: (listener) => listen(runListeners, listener),
    onPod: (listener) => listen(podListeners, listener),
  }
}
