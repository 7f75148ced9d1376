/** The HeartbeatCheck in the operator: its names, its types, and how its specification is read. */

import type { GivenSpec } from '../checks/find-checks.ts'
import { completeSpec, DEFAULT_TIME_ZONE, NO_SPEC, readSpec, splitSpec } from '../checks/read-spec.ts'
import type { CheckTexts } from '../domain/check.ts'
import { AppError, describeError } from '../domain/errors.ts'
import { limitLabels } from '../domain/labels.ts'
import { graceSecondsFor } from '../domain/schedule.ts'
import type { Condition, KubernetesObject } from '../kubernetes/objects.ts'
import { DEFAULT_KEY } from './names.ts'
import { targetNameOf } from './publish/long-names.ts'
import { describeIssue } from './schema/fields.ts'
import type { SourceRef } from './schema/source-ref.ts'
import { Spec, type SpecInput, type SpecOutput, toTexts } from './schema/spec.ts'
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

/** What a check takes from its source, and what its resource says beside it. Null: the default. */
export interface Follows extends SourceRef {
  readonly graceSeconds: number | null
  readonly maxRuntimeSeconds: number | null
  /** How its runs are judged, without defaults. */
  readonly judging: Partial<GivenSpec>
}

/** What a HeartbeatCheck declares, with defaults. */
export interface CheckDeclaration extends CheckTexts {
  /** Null: the source decides, as `follows` says. */
  readonly spec: GivenSpec | null
  /** Null: pausing and resuming belong to the API, or the source decides. */
  readonly suspend: boolean | null
  /** Left out: the resource has a schedule of its own. */
  readonly follows?: Follows
  /** Slug; null: the namespace's own. */
  readonly project: string | null
  /** Names of HeartbeatChecks of its namespace. */
  readonly dependencies: readonly string[]
  readonly deletionPolicy: 'Delete' | 'Retain'
  /** Null: nowhere. */
  readonly publish: PublishTarget | null
  /** Names of the labels that the check does not get, for it has as many as it can. */
  readonly droppedLabels: readonly string[]
}

export type ReadResult =
  | { readonly ok: true; readonly declaration: CheckDeclaration }
  /** Each begins with the path of its field: `spec.schedule must ...`. */
  | { readonly ok: false; readonly faults: readonly string[] }

/**
 * Reads a specification. Validates again what the API server validated, because a resource may have been stored under
 * an older definition, and validates what CEL cannot: the meaning of the cron expression, and the time zone.
 */
export function readHeartbeatCheck({ metadata, spec }: HeartbeatCheck): ReadResult {
  const { name } = metadata
  const parsed = Spec.safeParse(spec)
  if (!parsed.success) return { ok: false, faults: parsed.error.issues.map((issue) => describeIssue('spec', issue)) }
  const { suspend, project, deletionPolicy, dependsOn = [] } = parsed.data
  const follows = readFollows(parsed.data)
  const stored = follows === null ? readStoredSpec(parsed.data) : null
  if (typeof stored === 'string') return { ok: false, faults: [stored] }
  const { labels: ofCheck, dropped } = limitLabels(metadata.labels ?? {})
  return {
    ok: true,
    declaration: {
      ...toTexts(parsed.data, name),
      labels: ofCheck,
      droppedLabels: dropped,
      spec: stored,
      suspend: suspend ?? null,
      project: project ?? null,
      dependencies: dependsOn,
      deletionPolicy,
      publish: readTarget(name, parsed.data),
      ...(follows === null ? {} : { follows }),
    },
  }
}

function readFollows({ sourceRef, ...spec }: SpecOutput): Follows | null {
  if (sourceRef === undefined) return null
  const { graceSeconds = null, maxRuntimeSeconds = null, ...judging } = givenOf(spec)
  return { ...sourceRef, graceSeconds, maxRuntimeSeconds, judging }
}

/** Where the specification wants the URL, also while the rest of the specification makes no sense. Null: nowhere. */
export function targetOf({ metadata, spec }: HeartbeatCheck): PublishTarget | null {
  const parsed = Spec.safeParse(spec)
  return parsed.success ? readTarget(metadata.name, parsed.data) : null
}

function readTarget(ofCheck: string, spec: SpecOutput): PublishTarget | null {
  if (publishesNothing(spec)) return null
  const { kind = 'Secret', name = targetNameOf(ofCheck), key = DEFAULT_KEY, ...given } = spec.publish ?? {}
  const { labels = {}, annotations = {} } = given
  return kind === 'None' ? null : { kind, name, key, labels, annotations }
}

/** Whether the resource wants its ping URL nowhere. */
export function publishesNothing({ publish, sourceRef }: HeartbeatCheckSpec): boolean {
  return publish == null ? sourceRef != null : publish.kind === 'None'
}

function givenOf(spec: SpecOutput): Partial<GivenSpec> {
  const { given } = splitSpec(spec)
  const { warnExitCodes } = given
  return warnExitCodes === undefined ? given : { ...given, warnExitCodes: warnExitCodes.toSorted((a, b) => a - b) }
}

/** Returns what is wrong, in words, for a schedule that makes no sense. */
function readStoredSpec(spec: SpecOutput): GivenSpec | string {
  const given = givenOf(spec)
  const timeZone = given.schedule === undefined ? null : (given.timeZone ?? DEFAULT_TIME_ZONE)
  const stored = { ...NO_SPEC, graceSeconds: 0, ...given, timeZone }
  try {
    const read = readSpec(completeSpec(stored, 'kubernetes'))
    return spec.graceSeconds === undefined ? { ...stored, graceSeconds: graceSecondsFor(read.schedule) } : stored
  } catch (error) {
    if (error instanceof AppError) return describeInvalid(error)
    throw error
  }
}

/** What is wrong with a specification, by the names of its fields in the resource. */
export function describeInvalid(error: AppError): string {
  return describeError(error, (field) => `spec.${field}`).text
}
