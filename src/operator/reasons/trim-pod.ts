/**
 * Pods of Jobs, reduced to what a reason needs before they are stored: a whole pod is some 8 KB. No watch delivers a
 * pod that succeeded, except as deleted. A pod takes its reason with it, so the last version of a deleted one is kept
 * until its Job has ended.
 */

import type { Instant } from '../../domain/check.ts'
import type { ContainerState, ContainerStatus, KubernetesObject, Pod, ResourceType } from '../../kubernetes/objects.ts'

export const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods' }

/** A reason of Kubernetes (`ImagePullBackOff`) with its message. They may hold text of users. */
export interface Words {
  readonly reason: string | null
  readonly message: string | null
}

/** An attempt of a container that failed. */
export interface Termination extends Words {
  readonly exitCode: number
  readonly signal: number | null
  readonly finishedAt: Instant | null
}

/** A container that waits, or of which an attempt failed. */
export interface TrimmedContainer {
  readonly name: string
  /**
   * It must succeed before the containers start. A sidecar, which Kubernetes also lists as an init container, is none.
   */
  readonly isInit: boolean
  /** Kubernetes restarts it, and ends it after the last container: it fails no pod. */
  readonly isSidecar: boolean
  readonly restarts: number
  readonly waiting: Words | null
  readonly failed: Termination | null
  /** It runs again since: `failed` is about the attempt before. */
  readonly isRestarted: boolean
  /** When its last attempt ended, also with 0. Null: it has not, or that is not known. */
  readonly endedAt: Instant | null
  /**
   * If its last attempt has ended: the one before, if that failed. It counts where the deletion of the pod ended the
   * last one.
   */
  readonly failedBefore: Termination | null
}

export interface TrimmedPod extends KubernetesObject {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }
  /** The uid of the run that controls it. */
  readonly runUid: string | null
  readonly node: string | null
  /** In an indexed Job. */
  readonly index: number | null
  /** `Pending`, `Running`, `Failed`. */
  readonly phase: string
  readonly createdAt: Instant
  /** When its deletion was requested, before its grace period. */
  readonly deletedAt: Instant | null
  /** Of the pod as a whole: `Evicted`. */
  readonly status: Words | null
  /** Why the scheduler found no node, in its words. */
  readonly unscheduled: Words | null
  /** Why Kubernetes ended it: the condition `DisruptionTarget`. */
  readonly disruption: Words | null
  /**
   * One of its containers runs or ran, init containers and sidecars aside; while its readiness probe fails for the
   * first time, it does not count.
   */
  readonly hasStarted: boolean
  /** A container with a readiness probe runs, and is not ready. */
  readonly isUnready: boolean
  /** Those with something to say, init containers first. */
  readonly containers: readonly TrimmedContainer[]
  /** A container has failed, or the main one has ended, and is not started again, while others run; null: not so. */
  readonly kept: Kept | null
}

/** The container that failed first, else the main one: a helper that ends with 0 before the main one is no fault. */
export interface Kept {
  readonly name: string
  readonly ended: Termination
  /** The names of the containers that run. */
  readonly by: readonly string[]
}

/** Kubernetes' own limit of a termination message, in bytes. */
const MESSAGE_LENGTH = 4_096
const MAX_CONTAINERS = 10

const INDEX = 'batch.kubernetes.io/job-completion-index'

/** @param runKind the kind of the runs whose pods these are: `Job` */
export function trimPod({ metadata, spec, status }: Pod, runKind: string): TrimmedPod {
  const { namespace = '', name, uid, resourceVersion, ownerReferences = [], annotations } = metadata
  const index = Number(annotations?.[INDEX] ?? Number.NaN)
  const sidecars = new Set(
    (spec?.initContainers ?? []).filter((one) => one.restartPolicy === 'Always').map((one) => one.name),
  )
  const ordinary = inOrderOfSpec(status?.containerStatuses ?? [], spec?.containers ?? [], annotations)
  const containers = [
    ...(status?.initContainerStatuses ?? []).map((one) =>
      trimContainer(one, sidecars.has(one.name) ? 'sidecar' : 'init'),
    ),
    ...ordinary.map((one) => trimContainer(one, 'ordinary')),
  ]
  const probed = new Set((spec?.containers ?? []).filter((one) => one.readinessProbe).map((one) => one.name))
  const conditionOf = (type: string, value: string): Words | null => {
    const found = status?.conditions?.find((condition) => condition.type === type && condition.status === value)
    return found === undefined ? null : wordsOf(found)
  }
  return {
    metadata: { namespace, name, uid, resourceVersion },
    runUid: ownerReferences.find(({ controller, kind }) => controller === true && kind === runKind)?.uid ?? null,
    node: spec?.nodeName || null,
    index: Number.isInteger(index) ? index : null,
    phase: status?.phase ?? 'Pending',
    createdAt: instantOf(metadata.creationTimestamp) ?? 0,
    deletedAt: deletionOf(metadata),
    status: status?.reason || status?.message ? wordsOf(status) : null,
    unscheduled: spec?.nodeName ? null : conditionOf('PodScheduled', 'False'),
    disruption: conditionOf('DisruptionTarget', 'True'),
    hasStarted: haveStarted(status?.containerStatuses ?? [], probed),
    isUnready:
      status?.containerStatuses?.some(({ name, state, ready }) => state?.running && probed.has(name) && !ready) ??
      false,
    containers: containers
      .filter(({ waiting, failed, failedBefore }) => waiting !== null || failed !== null || failedBefore !== null)
      .slice(0, MAX_CONTAINERS),
    kept: status?.phase === 'Running' ? keptOf(ordinary, spec) : null,
  }
}

function keptOf(containers: readonly ContainerStatus[], spec: Pod['spec']): Kept | null {
  const isOver = ({ name, state }: ContainerStatus) => {
    const own = spec?.containers.find((one) => one.name === name)
    const policy = own?.restartPolicy ?? spec?.restartPolicy
    return state?.terminated !== undefined && (policy !== 'OnFailure' || state.terminated.exitCode === 0)
  }
  const over = containers.filter(isOver).map(({ name, state }) => ({ name, ended: terminationOf(state!.terminated!) }))
  const [failed] = over.filter(({ ended }) => ended.exitCode !== 0).toSorted((a, b) => byEnd(a.ended, b.ended))
  const found = failed ?? over.find(({ name }) => name === containers[0]!.name)
  const by = containers.filter(({ state }) => state?.running !== undefined).map(({ name }) => name)
  return found === undefined || by.length === 0 ? null : { ...found, by: by.slice(0, MAX_CONTAINERS) }
}

/** Times have whole seconds: of two ends in one second, that of a container that was asked to end came later. */
export const byEnd = (a: Termination, b: Termination): number =>
  timeOf(a) - timeOf(b) || Number(wasSignalled(a)) - Number(wasSignalled(b))

const timeOf = ({ finishedAt }: Termination): Instant => finishedAt ?? Number.MAX_SAFE_INTEGER

/** The exit codes of a container that is ended, and of one that does not end within its grace period. */
const SIGTERM = 143
const SIGKILL = 137

export const wasSignalled = ({ exitCode, reason }: Termination): boolean =>
  (exitCode === SIGTERM || exitCode === SIGKILL) && reason !== 'OOMKilled'

/** All of them: a proxy may run beside a container whose image does not exist. */
const haveStarted = (containers: readonly ContainerStatus[], probed: ReadonlySet<string>): boolean =>
  containers.length > 0 && containers.every((one) => hasStarted(one, probed.has(one.name)))

/** The one that kubectl takes without a name comes first: a proxy that is injected sets this, wherever it stands. */
const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

/** Statuses are sorted by name, which says nothing; in a spec, what others inject follows the container of the job. */
function inOrderOfSpec(
  statuses: readonly ContainerStatus[],
  containers: readonly { readonly name: string }[],
  annotations: Readonly<Record<string, string>> = {},
): ContainerStatus[] {
  const names = [annotations[DEFAULT_CONTAINER], ...containers.map(({ name }) => name)]
  const placeOf = ({ name }: ContainerStatus) => (names.includes(name) ? names.indexOf(name) : names.length)
  return statuses.toSorted((a, b) => placeOf(a) - placeOf(b))
}

function trimContainer(
  { name, restartCount, state, lastState }: ContainerStatus,
  kind: 'init' | 'sidecar' | 'ordinary',
): TrimmedContainer {
  const { waiting, terminated } = state ?? {}
  return {
    name,
    isInit: kind === 'init',
    isSidecar: kind === 'sidecar',
    restarts: restartCount ?? 0,
    waiting: waiting === undefined ? null : wordsOf(waiting),
    // A container that succeeded after a restart has not failed.
    failed: terminated === undefined ? failureOf(lastState) : failureOf(state),
    isRestarted: state?.running !== undefined && (restartCount ?? 0) > 0,
    endedAt: instantOf(terminated?.finishedAt),
    failedBefore: terminated === undefined ? null : failureOf(lastState),
  }
}

/** The container never ran: its image or its command does not fit. */
const NOT_RUN = new Set(['StartError', 'ContainerCannotRun', 'RunContainerError'])

/** Whether the container never ran: then its message is of the runtime, not of the job. */
export const hasNotRun = ({ reason }: { readonly reason?: string | null }): boolean =>
  reason != null && NOT_RUN.has(reason)

/**
 * Between two attempts a container is neither ready nor failed, but it has run: an attempt has ended, or it was
 * restarted.
 */
function hasStarted({ state, lastState, restartCount, ready }: ContainerStatus, isProbed: boolean): boolean {
  const ended = [state?.terminated, lastState?.terminated].filter((one) => one !== undefined)
  if (ended.length > 0) return ended.some((one) => !hasNotRun(one))
  if (restartCount > 0) return true
  return state?.running !== undefined && (ready || !isProbed)
}

function failureOf({ terminated }: ContainerState = {}): Termination | null {
  // A container may end with 0 after one of its processes was killed for memory; that alone fails nothing.
  return terminated === undefined || terminated.exitCode === 0 ? null : terminationOf(terminated)
}

function terminationOf(terminated: NonNullable<ContainerState['terminated']>): Termination {
  const { exitCode, signal, finishedAt } = terminated
  return { ...wordsOf(terminated), exitCode, signal: signal || null, finishedAt: instantOf(finishedAt) }
}

const wordsOf = ({ reason, message }: { readonly reason?: string; readonly message?: string }): Words => ({
  reason: reason || null,
  message: message ? message.slice(0, MESSAGE_LENGTH) : null,
})

/** Kubernetes stores when the grace period ends. */
function deletionOf({ deletionTimestamp, deletionGracePeriodSeconds = 0 }: Pod['metadata']): Instant | null {
  const endsAt = instantOf(deletionTimestamp)
  return endsAt === null ? null : endsAt - deletionGracePeriodSeconds * 1_000
}

/** Null also for Go's zero time, which a container status has when the time is unknown. */
function instantOf(time: string | undefined): Instant | null {
  const at = Date.parse(time ?? '')
  return Number.isNaN(at) || at < 0 ? null : at
}
