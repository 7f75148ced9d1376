/**
 * Conditions, as kstatus reads them: `Ready`, `Reconciling` and `Stalled` describe the sync of a resource, and each
 * kind adds its own. Pure.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Instant } from '../../domain/check.ts'
import { type Condition, type KubernetesObject, toTime } from '../../kubernetes/objects.ts'
import type { CommonStatus } from './resource.ts'

/** The result of a sync. */
export type Sync<Reason extends string> =
  | { readonly kind: 'synced' }
  /** A person has to change something first. */
  | { readonly kind: 'stalled'; readonly reason: Reason; readonly message: string }
  /** It is retried. */
  | { readonly kind: 'retrying'; readonly message: string }

/** A condition without what its resource adds. */
export type Statement<Type extends string = string, Reason extends string = string> = {
  readonly type: Type
  readonly reason: Reason
} & Pick<Condition, 'status' | 'message'>

/** metav1.Condition allows 32,768; people read the first line. */
const MAX_MESSAGE_LENGTH = 1_024

type Described = KubernetesObject & { readonly status?: Pick<CommonStatus, 'conditions'> }

export function toCondition({ metadata, status }: Described, statement: Statement, now: Instant): Condition {
  const old = conditionOf(status, statement.type)
  return {
    ...statement,
    message: cutMessage(statement.message),
    lastTransitionTime: old?.status === statement.status ? old.lastTransitionTime : toTime(now),
    observedGeneration: metadata.generation ?? 0,
  }
}

/** `synced`: the message of a resource that is in line. */
export function describeSync<Reason extends string>(sync: Sync<Reason>, synced: string) {
  switch (sync.kind) {
    case 'synced':
      return [{ type: 'Ready', status: 'True', reason: 'Synced', message: synced }] as const
    case 'stalled':
      return [
        { type: 'Ready', status: 'False', reason: sync.reason, message: sync.message },
        { type: 'Stalled', status: 'True', reason: sync.reason, message: sync.message },
      ] as const
    case 'retrying':
      return [
        { type: 'Ready', status: 'False', reason: 'ProgressingWithRetry', message: sync.message },
        { type: 'Reconciling', status: 'True', reason: 'ProgressingWithRetry', message: sync.message },
      ] as const
  }
}

/** The conditions of a resource of another installation: Ready and Stalled say so, the others stay. */
export function addForeign(object: Described, message: string, now: Instant): Condition[] {
  const ours = describeSync({ kind: 'stalled', reason: 'ManagedElsewhere', message }, '')
  const others = (object.status?.conditions ?? []).filter(
    ({ type }) => !ours.some((condition) => condition.type === type),
  )
  return [...ours.map((statement) => toCondition(object, statement, now)), ...others]
}

export const conditionOf = (status: Pick<CommonStatus, 'conditions'> | undefined, type: string) =>
  status?.conditions?.find((condition) => condition.type === type)

/** Cuts a message to the length that a condition here may have. */
export function cutMessage(message: string): string {
  if (message.length <= MAX_MESSAGE_LENGTH) return message
  // The server replaces half a character, and then the status would never equal the written one.
  return `${message.slice(0, MAX_MESSAGE_LENGTH - 1).toWellFormed()}…`
}

/** Whether the status need not be written. */
export function isSameStatus<Status extends object>(before: Status | undefined, after: Status): boolean {
  return before !== undefined && isDeepStrictEqual(before, after)
}
