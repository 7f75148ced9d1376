/** The HeartbeatCheck in the operator: its names, its types, and how its specification is read. */

import { DEFAULT_TIME_ZONE, readSpec } from '../checks/read-spec.ts'
import type { CheckTexts } from '../domain/check.ts'
import { AppError, describeError } from '../domain/errors.ts'
import type { Condition, KubernetesObject } from '../kubernetes/objects.ts'
import type { StoredSpec } from '../store/checks/columns.ts'
import { LABEL_LENGTH } from './names.ts'
import { NAME_RULE, Spec, type SpecInput, type SpecOutput, toTexts } from './schema/spec.ts'
import type { StatusOutput } from './schema/status.ts'

export * from './names.ts'

/** The specification as written, before defaults. */
export type HeartbeatCheckSpec = Readonly<SpecInput>
export type HeartbeatCheckStatus = Readonly<
  Omit<StatusOutput, 'conditions' | 'published'> & { published?: PublishedTarget; conditions?: readonly Condition[] }
>

export interface HeartbeatCheck extends KubernetesObject {
  readonly spec: HeartbeatCheckSpec
  readonly status?: HeartbeatCheckStatus
}

/** Where a ping URL is. */
export interface PublishedTarget {
  readonly kind: 'Secret' | 'ConfigMap'
  readonly name: string
}

/** Where a ping URL is wanted. */
export interface PublishTarget extends PublishedTarget {
  readonly key: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** What a HeartbeatCheck declares, with defaults. */
export interface CheckDeclaration extends CheckTexts {
  readonly spec: StoredSpec
  /** Null: pausing and resuming belong to the API. */
  readonly suspend: boolean | null
  /** Slug; null: the namespace's own. */
  readonly project: string | null
  readonly deletionPolicy: 'Delete' | 'Retain'
  readonly publish: PublishTarget
}

export type ReadResult =
  | { readonly ok: true; readonly declaration: CheckDeclaration }
  /** Each begins with the path of its field: `spec.schedule must ...`. */
  | { readonly ok: false; readonly faults: readonly string[] }

/**
 * Reads a specification. Validates again what the API server validated, because a resource may have been stored under an older
 * definition, and validates what CEL cannot: the meaning of the cron expression, and the time zone.
 */
export function readHeartbeatCheck({ metadata: { name }, spec }: HeartbeatCheck): ReadResult {
  const parsed = Spec.safeParse(spec)
  const faults = (parsed.error?.issues ?? []).map(describeIssue)
  if (name.length > LABEL_LENGTH) faults.unshift(`metadata.name ${NAME_RULE.message}`)
  if (!parsed.success || faults.length > 0) return { ok: false, faults }
  const { suspend, project, deletionPolicy, publish } = parsed.data
  const { kind, name: publishName = `${name}-heartbeat`, key, labels = {}, annotations = {} } = publish
  const stored = toStoredSpec(parsed.data)
  const fault = findFault(stored)
  if (fault !== null) return { ok: false, faults: [fault] }
  return {
    ok: true,
    declaration: {
      ...toTexts(parsed.data, name),
      spec: stored,
      suspend: suspend ?? null,
      project: project ?? null,
      deletionPolicy,
      publish: { kind, name: publishName, key, labels, annotations },
    },
  }
}

function toStoredSpec(spec: SpecOutput): StoredSpec {
  const { periodSeconds = null, schedule = null, timeZone, graceSeconds, maxRuntimeSeconds = null } = spec
  const zone = schedule === null ? null : (timeZone ?? DEFAULT_TIME_ZONE)
  return { periodSeconds, schedule, timeZone: zone, graceSeconds, maxRuntimeSeconds }
}

function describeIssue({ path, message }: { path: readonly PropertyKey[]; message: string }): string {
  return `${['spec', ...path.map(String)].join('.')} ${message}`
}

/** Null: the schedule makes sense. */
function findFault(stored: StoredSpec): string | null {
  try {
    readSpec(stored)
    return null
  } catch (error) {
    if (error instanceof AppError) return describeInvalid(error)
    throw error
  }
}

/** What is wrong with a specification, by the names of its fields in the resource. */
export function describeInvalid(error: AppError): string {
  return describeError(error, (field) => `spec.${field}`).text
}
