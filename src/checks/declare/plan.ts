/** What a declaration changes (design, section 6). Pure: gather.ts reads the facts, act.ts carries the plan out. */

import { controllerOf, doerOf } from '../../domain/access.ts'
import { type CheckState, type CheckTexts, type Instant, type Pause, REASONS_OF } from '../../domain/check.ts'
import { type CheckEvent, NEXT } from '../../domain/check-event.ts'
import { nameOfResource } from '../../domain/error-texts.ts'
import type { SaidCode } from '../../domain/errors.ts'
import { isAwaitedInVain, isUnarmed } from '../../domain/transition.ts'
import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import {
  type CheckOrigin,
  isOnlyElsewhere,
  isSameOrigin,
  isSameSpec,
  isSameTexts,
  isSameTiming,
  NO_ORIGIN,
  type StoredSpec,
} from '../../store/checks/columns.ts'
import type { Retention } from '../../store/checks/retained-checks.ts'
import type { Tombstone } from '../../store/checks/tombstones.ts'
import { isOfPlace, originOf, type Placed, updateOrigin } from './place.ts'

export interface Declaration extends CheckTexts, Placed {
  readonly resource: Resource
  /**
   * As tenancy/namespace-projects.ts resolved it. When it differs from the check's project, the check moves with its
   * history.
   */
  readonly projectId: string
  readonly spec: StoredSpec
  /** Null: pausing and resuming belong to the API. */
  readonly suspend: boolean | null
  /** When the check resumes although it is suspended; null: it does not. Default: null. */
  readonly pausedUntil?: Instant | null
  /** Why it is suspended, in words. Default: null. */
  readonly pauseDetail?: string | null
  /** A person may start runs of its source although it is suspended, and these are judged. Default: false. */
  readonly mayRun?: boolean
  /**
   * When the newest run of its source that has ended did so, if it succeeded; null: it failed, or none is known.
   * Default: null.
   */
  readonly succeededAt?: Instant | null
  /** The id of a check of the API that a person gives to this resource; any text. */
  readonly adoptId: string | null
  /**
   * The id of the check that the resource had: where the mark of its resource is lost, by manual SQL or by an older
   * backup, it is found by that. It gives no more rights than the id of a person. Default: none is known.
   */
  readonly knownId?: string | null
  /** Its ping URL was published before, so it had a check. Default: false. */
  readonly wasPublished?: boolean
  /** The database has lost that check. Default: false. */
  readonly isLost?: boolean
  /**
   * False: its ping URL is not published yet, so nothing is expected of its job; call armCheck() when it is. Default:
   * true.
   */
  readonly isPublished?: boolean
  /** The public id of a new check, unless another check has it: the URL of a check that was lost. Any text. */
  readonly publicId?: string | null
}

/** Whether a person has chosen another check than the check of the resource. */
export function isChoice({ adoptId, knownId = null }: Declaration): boolean {
  return adoptId !== null && adoptId.toLowerCase() !== knownId
}

/** The id by which a resource without a check looks for one. */
export function soughtId(wanted: Declaration): string | null {
  return isChoice(wanted) ? wanted.adoptId : (wanted.knownId ?? null)
}

/** What the database holds that a declaration depends on. */
export interface Facts {
  /** The check of the resource. */
  readonly check: StoredCheck | null
  /** What remains of the resource's last check; with an id that is sought, only if it is that check. */
  readonly tombstone: Tombstone | null
  /** Whether the declared project exists. */
  readonly hasProject: boolean
  /**
   * The check that the resource declared until it was deleted with deletionPolicy Retain. Read only where `check` is
   * null.
   */
  readonly retained: { readonly check: StoredCheck; readonly retention: Retention } | null
  /** The check with the id that is sought, of any project. Read only where `check` and `tombstone` are null. */
  readonly adoptee: StoredCheck | null
}

/** What is true for most new resources. */
export const NOTHING_THERE: Facts = {
  check: null,
  tombstone: null,
  hasProject: true,
  retained: null,
  adoptee: null,
}

export type Plan =
  | { readonly kind: 'nothing'; readonly check: StoredCheck }
  | Creation
  | Change
  /** No check of the id that is sought can be had: plan again without the id. `isLost`: there is none. */
  | { readonly kind: 'anew'; readonly isLost: boolean }
  | Rejection

export interface Rejection {
  readonly kind: 'reject'
  readonly code: SaidCode
  readonly message: string
  /** The one at fault, where there is one. */
  readonly field?: 'adoptId' | 'retained'
}

/**
 * A new check, with the identity that a tombstone kept or with a new one. The events happen to its state, in this
 * order.
 */
export interface Creation {
  readonly kind: 'create' | 'revive'
  readonly tombstone: Tombstone | null
  readonly events: readonly CheckEvent[]
}

/** A check that differs from its declaration. The events happen to its state, in this order. */
export interface Change {
  /** `regain`: the check that the resource had, which has lost its mark. */
  readonly kind: 'change' | 'adopt' | 'regain' | 'readopt'
  readonly check: StoredCheck
  readonly isMoved: boolean
  /** Texts, owner or project differ. */
  readonly isRedescribed: boolean
  readonly isRescheduled: boolean
  /** Where the resource is differs, and perhaps nothing else: nothing that people see. */
  readonly isRelocated: boolean
  readonly origin: CheckOrigin
  readonly events: readonly CheckEvent[]
}

export function plan(facts: Facts, wanted: Declaration): Plan {
  const { check, hasProject, adoptee } = facts
  if (check !== null) return rejectOther(check, wanted) ?? planChange('change', check, wanted, hasProject)
  if (!hasProject) return NO_PROJECT
  const retained = findRetained(facts, wanted)
  if (retained !== null) return planReadoption(retained, wanted)
  const tombstone = isOfPlace(facts.tombstone, wanted) ? facts.tombstone : null
  const isElsewhere = tombstone?.kubernetesAdopted === true && tombstone.projectId !== wanted.projectId
  if (tombstone !== null && !isElsewhere) return planCreation(tombstone, wanted)
  const id = soughtId(wanted)
  if (id === null) return planCreation(null, wanted)
  // A rejection is for the person who gave the id.
  const reject = (plan: Plan): Plan => (wanted.adoptId === null ? { kind: 'anew', isLost: false } : plan)
  if (isElsewhere) return reject(rejectForeign(id))
  if (adoptee === null) {
    const { knownId = null, wasPublished = false } = wanted
    // The annotation stays when the database loses the check, and its job is watched over all the same.
    const hadIt = !isChoice(wanted) || (knownId === null && wasPublished)
    if (hadIt) return { kind: 'anew', isLost: true }
    return rejectAdoption('not_found', `there is no check with the id "${id}" to adopt: correct the id, or remove it`)
  }
  if (adoptee.projectId !== wanted.projectId) return reject(rejectForeign(id))
  if (adoptee.managedBy === 'kubernetes' || adoptee.kubernetes !== null)
    return reject(
      rejectAdoption(
        'conflict',
        `the check ${id} is managed by ${nameOfResource(adoptee.kubernetes)}: delete that one with deletionPolicy Retain first`,
      ),
    )
  if (isChoice(wanted)) return planChange('adopt', adoptee, wanted, hasProject, true)
  // The mark of a check that the resource had before may be lost with its owner.
  return planChange('regain', adoptee, wanted, hasProject, adoptee.origin?.kubernetesAdopted ?? true)
}

/** Null: the check is the check that a person gives to the resource, or a person gives no check. */
export function rejectOther({ id }: StoredCheck, { adoptId }: Declaration): Rejection | null {
  if (adoptId === null || id === adoptId.toLowerCase()) return null
  return rejectAdoption(
    'conflict',
    `this resource has the check ${id} already and cannot adopt ${adoptId}: remove the id to adopt, or adopt it by a resource of another name`,
  )
}

const NO_PROJECT: Plan = { kind: 'reject', code: 'not_found', message: 'project not found' }

function rejectAdoption(code: SaidCode, message: string): Rejection {
  return { kind: 'reject', code, message, field: 'adoptId' }
}

function rejectForeign(adoptId: string): Rejection {
  return rejectAdoption(
    'forbidden',
    `the check ${adoptId} belongs to another project: only one of this resource's own project can be adopted`,
  )
}

/**
 * The retained check of the resource, unless it is in another project, which no adoption leaves, or the resource had
 * another check since. An id that a person gave decides instead.
 */
function findRetained({ retained, tombstone }: Facts, wanted: Declaration): Facts['retained'] {
  if (retained === null || retained.check.projectId !== wanted.projectId) return null
  const { check, retention } = retained
  if (tombstone !== null && tombstone.deletedAt > retention.retainedAt) return null
  const id = soughtId(wanted)
  if (id !== null && (isChoice(wanted) || id !== check.id)) return null
  return isOfPlace(retention, wanted) ? retained : null
}

function planReadoption({ check, retention }: NonNullable<Facts['retained']>, wanted: Declaration): Plan {
  if (check.updatedAt === retention.updatedAt)
    return planChange('readopt', check, wanted, true, retention.kubernetesAdopted)
  return {
    kind: 'reject',
    code: 'conflict',
    message: `the check ${check.id} was retained when this resource was deleted, and was changed through the API since. To manage it by this resource, whose specification then replaces those changes, set the annotation heartbeat-operator.io/adopt-check-id: "${check.id}" on the resource; to begin with a new check, remove that one through the API: DELETE /api/v1/checks/${check.id}`,
    field: 'retained',
  }
}

/** Whether the plan changes nothing but where the check is known to be. */
export function isOnlyRelocated({ isRedescribed, isRescheduled, events }: Change): boolean {
  return !isRedescribed && !isRescheduled && events.length === 0
}

function planCreation(tombstone: Tombstone | null, wanted: Declaration): Plan {
  const { suspend, spec, isPublished = true, succeededAt = null } = wanted
  const events: CheckEvent[] = []
  // The Jobs of a CronJob tell how it is; of a job that pings nothing is known until it does.
  const reason = spec.jobArea === null ? null : (tombstone?.reason ?? null)
  const isUp = suspend !== true && REASONS_OF.up.some((one) => one === reason)
  // A run that succeeded meanwhile is recorded next: with it an open incident ends.
  const hasRecovered = tombstone !== null && succeededAt !== null && succeededAt > tombstone.deletedAt
  const downReason = suspend === true || hasRecovered ? undefined : REASONS_OF.down.find((one) => one === reason)
  if (tombstone !== null) events.push({ kind: 'revive', kept: tombstone, ...(isUp ? { isUp } : {}) })
  if (isPublished) events.push({ kind: 'arm' })
  if (downReason !== undefined) events.push({ kind: 'restore', reason: downReason })
  // A check that begins suspended has nothing to notify, unless its recipients still know it as down.
  const isSilent = tombstone === null || tombstone.incidentSince === null || reason !== null
  if (suspend === true) events.push({ kind: 'pause', pause: pauseOf(wanted), isSilent })
  return { kind: tombstone === null ? 'create' : 'revive', tombstone, events }
}

/** `isAdopted`: of a check that the resource gets now. */
function planChange(
  kind: Change['kind'],
  check: StoredCheck,
  wanted: Declaration,
  hasProject: boolean,
  isAdopted: boolean | null = null,
): Plan {
  const isMoved = check.projectId !== wanted.projectId
  const stored = check.origin ?? NO_ORIGIN
  if (isMoved && stored.kubernetesAdopted === true) return rejectMove(check)
  if (isMoved && !hasProject) return NO_PROJECT
  const origin = kind === 'change' ? updateOrigin(stored, wanted) : originOf(wanted, isAdopted)
  const isRelocated = !isSameOrigin(origin, stored)
  const isRedescribed = isMoved || !isOwner(check, wanted) || !isSameTexts(check, wanted)
  const isRescheduled = !isSameSpec(check.spec, wanted.spec)
  const events: CheckEvent[] = []
  // Where watches have changed, a run that is overdue stays so.
  if (isRescheduled && !isOnlyElsewhere(check.spec, wanted.spec)) {
    events.push({ kind: 'update', isSameTiming: isSameTiming(check.spec, wanted.spec) })
  }
  const { suspend, isPublished = true } = wanted
  if (isPublished) events.push(...planArming(check.state, suspend))
  if (suspend === true) events.push(...planPause(check, wanted, kind === 'change' && wanted.mayRun === true))
  else if (suspend === null && pausedHereUntil(check.state, check.kubernetesSuspend) !== null)
    // What the resource has paused until a time it resumes when the time is taken away.
    events.push({ kind: 'resume' })
  if (!isRedescribed && !isRelocated && !isRescheduled && events.length === 0) return { kind: 'nothing', check }
  return { kind, check, isMoved, isRedescribed, isRescheduled, isRelocated, origin, events }
}

/**
 * Of a check that was suspended before, a run has changed the status since: it stays down until one succeeds, and is
 * paused without a word then.
 */
function planPause({ state, kubernetesSuspend }: StoredCheck, wanted: Declaration, mayRun: boolean): CheckEvent[] {
  const { status, pause } = state
  const hasRun = mayRun && kubernetesSuspend === true && wanted.pausedUntil == null
  const isAsWanted = status === 'paused' && (pause?.until ?? null) === (wanted.pausedUntil ?? null)
  if (isAsWanted || (hasRun && status === 'down')) return []
  return [{ kind: 'pause', pause: pauseOf(wanted), ...(hasRun ? { isSilent: true } : {}) }]
}

function pauseOf({ resource, pausedUntil = null }: Declaration): Pause {
  return { by: doerOf(controllerOf(resource.cluster)), until: pausedUntil, comment: null }
}

/** Until when the resource has paused the check; null: it has not, or without an end. */
function pausedHereUntil({ status, pause }: CheckState, kubernetesSuspend: boolean | null): Instant | null {
  return status === 'paused' && kubernetesSuspend === true && pause !== null ? pause.until : null
}

/** `kept`: as long as the resource pauses the check now. */
export type PausedUntil = Instant | 'kept' | null

/**
 * What a resource declares of pauses. A pause that has ended is none, by our clock or by that of the check's history.
 */
export function readPause(
  { suspend, pausedUntil = null }: { readonly suspend: boolean | null; readonly pausedUntil?: PausedUntil },
  state: CheckState | null,
  kubernetesSuspend: boolean | null,
  now: Instant,
): Required<Pick<Declaration, 'suspend' | 'pausedUntil'>> {
  const known = state === null ? null : pausedHereUntil(state, kubernetesSuspend)
  const until = pausedUntil === 'kept' ? known : pausedUntil
  const isAhead = until !== null && until > Math.max(now, state?.since ?? now)
  return suspend !== true && isAhead ? { suspend: true, pausedUntil: until } : { suspend, pausedUntil: null }
}

function rejectMove({ id }: StoredCheck): Plan {
  return {
    kind: 'reject',
    code: 'forbidden',
    message: `the check ${id} was adopted, and an adopted check stays in its project, but this resource is in another project now: let an administrator allow the namespace that project again, or give the check back with deletionPolicy Retain by deleting the resource`,
  }
}

/** What a check whose ping URL is published needs to expect its first completion; a suspended one expects none. */
export function planArming(state: CheckState, suspend: boolean | null): CheckEvent[] {
  if (isUnarmed(state)) return [{ kind: 'arm' }]
  return suspend === false && NEXT[state.status].resume !== state.status ? [{ kind: 'resume' }] : []
}

/** What a check whose ping URL never was published must not expect, whatever armed it. */
export function planDisarming(state: CheckState): CheckEvent[] {
  return isAwaitedInVain(state) ? [{ kind: 'disarm' }] : []
}

function isOwner(
  { managedBy, kubernetes, kubernetesSuspend }: StoredCheck,
  { resource, suspend }: Declaration,
): boolean {
  return (
    managedBy === 'kubernetes' &&
    kubernetes?.cluster === resource.cluster &&
    kubernetes.namespace === resource.namespace &&
    kubernetes.name === resource.name &&
    kubernetesSuspend === suspend
  )
}
