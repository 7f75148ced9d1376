/** What a declaration changes (design, section 6). Pure: gather.ts reads the facts, act.ts carries the plan out. */

import type { CheckTexts } from '../../domain/check.ts'
import type { ErrorCode } from '../../domain/errors.ts'
import { type CheckEvent, isUnarmed, NEXT } from '../../domain/transition.ts'
import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import { isSameSpec, isSameTexts, type StoredSpec } from '../../store/checks/columns.ts'
import type { Tombstone } from '../../store/checks/tombstones.ts'
import { describeResource } from '../with-locked-check.ts'

export interface Declaration extends CheckTexts {
  readonly resource: Resource
  /** As tenancy/namespace-projects.ts resolved it. When it differs from the check's project, the check moves with its history. */
  readonly projectId: string
  readonly spec: StoredSpec
  /** Null: pausing and resuming belong to the API. */
  readonly suspend: boolean | null
  /** The id of a check of the API that becomes this resource's; any text. */
  readonly adoptId: string | null
  /** A hint that the resource has no check yet. */
  readonly isNew?: boolean
}

/** What the database holds that a declaration depends on. */
export interface Facts {
  /** The check of the resource. */
  readonly check: StoredCheck | null
  /** What remains of the resource's last check; with an id to adopt, only if it is that check. */
  readonly tombstone: Tombstone | null
  /** Whether the declared project exists. */
  readonly hasProject: boolean
  /** The check with the id to adopt, of any project. Read only where `check` and `tombstone` are null. */
  readonly adoptee: StoredCheck | null
}

/** What is true for most new resources. */
export const NOTHING_THERE: Facts = { check: null, tombstone: null, hasProject: true, adoptee: null }

export type Plan =
  | { readonly kind: 'nothing'; readonly check: StoredCheck }
  | Creation
  | Change
  /** `field`: the one at fault, where there is one. */
  | { readonly kind: 'reject'; readonly code: ErrorCode; readonly message: string; readonly field?: 'adoptId' }

/** A new check, with the identity that a tombstone kept or with a new one. The events happen to its state, in this order. */
export interface Creation {
  readonly kind: 'create' | 'revive'
  readonly tombstone: Tombstone | null
  readonly events: readonly [CheckEvent, ...CheckEvent[]]
}

/** A check that differs from its declaration. The events happen to its state, in this order. */
export interface Change {
  readonly kind: 'change' | 'adopt'
  readonly check: StoredCheck
  readonly isMoved: boolean
  /** Texts, owner or project differ. */
  readonly isRedescribed: boolean
  readonly isRescheduled: boolean
  readonly events: readonly CheckEvent[]
}

export function plan(facts: Facts, wanted: Declaration): Plan {
  const { check, tombstone, hasProject, adoptee } = facts
  const { adoptId } = wanted
  if (check !== null) {
    if (adoptId !== null && check.id !== adoptId.toLowerCase())
      return rejectAdoption(
        'conflict',
        `this resource has the check ${check.id} already and cannot adopt ${adoptId}: remove the id to adopt, or adopt it by a resource of another name`,
      )
    return planChange('change', check, wanted, hasProject)
  }
  if (!hasProject) return NO_PROJECT
  if (tombstone !== null || adoptId === null) return planCreation(tombstone, wanted)
  if (adoptee === null)
    return rejectAdoption(
      'not_found',
      `there is no check with the id "${adoptId}" to adopt: correct the id, or remove it`,
    )
  if (adoptee.projectId !== wanted.projectId)
    return rejectAdoption(
      'forbidden',
      `the check ${adoptId} belongs to another project: only one of this resource's own project can be adopted`,
    )
  if (adoptee.managedBy === 'kubernetes' || adoptee.kubernetes !== null)
    return rejectAdoption(
      'conflict',
      `the check ${adoptId} is managed by ${describeResource(adoptee.kubernetes)}: delete that one with deletionPolicy Retain first`,
    )
  return planChange('adopt', adoptee, wanted, hasProject)
}

const NO_PROJECT: Plan = { kind: 'reject', code: 'not_found', message: 'project not found' }

function rejectAdoption(code: ErrorCode, message: string): Plan {
  return { kind: 'reject', code, message, field: 'adoptId' }
}

function planCreation(tombstone: Tombstone | null, { suspend }: Declaration): Plan {
  const begin: CheckEvent = tombstone === null ? { kind: 'arm' } : { kind: 'revive', last: tombstone }
  const events = [begin, ...(suspend === true ? [{ kind: 'pause' } as const] : [])] as const
  return { kind: tombstone === null ? 'create' : 'revive', tombstone, events }
}

function planChange(kind: Change['kind'], check: StoredCheck, wanted: Declaration, hasProject: boolean): Plan {
  const isMoved = check.projectId !== wanted.projectId
  if (isMoved && !hasProject) return NO_PROJECT
  const isRedescribed = isMoved || !isOwner(check, wanted) || !isSameTexts(check, wanted)
  const isRescheduled = !isSameSpec(check.spec, wanted.spec)
  const events: CheckEvent[] = []
  if (isRescheduled) events.push({ kind: 'update' })
  if (isUnarmed(check.state)) events.push({ kind: 'arm' })
  const turn = wanted.suspend === null ? null : wanted.suspend ? 'pause' : 'resume'
  if (turn !== null && NEXT[check.state.status][turn] !== check.state.status) events.push({ kind: turn })
  if (!isRedescribed && events.length === 0) return { kind: 'nothing', check }
  return { kind, check, isMoved, isRedescribed, isRescheduled, events }
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
