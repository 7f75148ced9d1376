/** What the operator does about the HeartbeatCheck of one CronJob. Pure: the controller in control-opt-in.ts acts. */

import {
  API_VERSION,
  FIELD_MANAGER,
  type HeartbeatCheck,
  KIND,
  MANAGED_BY_LABEL,
  WATCH_LABEL,
} from '../heartbeat-check.ts'
import { type Claims, ownershipOf } from '../ownership/ownership.ts'
import type { Source } from '../sources/source-kind.ts'
import { typeOf } from '../sources/source-kinds.ts'
import { type CopiedFields, findLabelFault, PROJECT_ANNOTATION, quote, type ReadAnnotations } from './annotations.ts'
import type { Decision } from './decide.ts'

/** What is read of a CronJob here. */
export type OptInSource = Pick<Source, 'metadata'>

export interface Warning {
  readonly reason: 'InvalidAnnotation' | 'InvalidLabel' | 'NameTaken' | 'NotCreated' | 'NotUpdated' | 'NotDeleted'
  readonly note: string
}

export type Action =
  | { readonly kind: 'none' }
  /** The HeartbeatCheck has no owner installation yet. */
  | { readonly kind: 'wait' }
  | Write

export type Write =
  | { readonly kind: 'create'; readonly object: NewCheck }
  /** A JSON merge patch, for this version of the object. */
  | { readonly kind: 'update'; readonly patch: object }
  /** Of this version of the object only. */
  | { readonly kind: 'delete'; readonly uid: string; readonly resourceVersion: string }

export interface Plan {
  readonly action: Action
  /** Events of the CronJob. */
  readonly warnings: readonly Warning[]
}

export type NewCheck = ReturnType<typeof describeCheck>

export interface Facts {
  readonly source: OptInSource
  /** The HeartbeatCheck of its name. */
  readonly object: HeartbeatCheck | undefined
  readonly decision: Decision
  readonly claims: Claims
  /** The projects that the namespace may use, if that of the annotation is none of them; else null. */
  readonly projectsInstead: readonly string[] | null
}

/** The kind whose labels are read. */
export const CRON_JOB = typeOf('CronJob')
/** A slug may have 64 characters, and an Event's note 1 KB. */
const SHOWN_PROJECTS = 8
const NOTHING: Plan = { action: { kind: 'none' }, warnings: [] }

export function plan(facts: Facts, given: ReadAnnotations): Plan {
  const { metadata } = facts.source
  // A foreground deletion deletes what it owns first: a new one would only be deleted too.
  if (metadata.deletionTimestamp !== undefined) return NOTHING
  const planned = planCheck(facts, given)
  // Also where nothing is done: a misspelt value may be why.
  const fault = findLabelFault(metadata.labels)
  if (fault === null) return planned
  return { ...planned, warnings: [...planned.warnings, { reason: 'InvalidLabel', note: fault }] }
}

function planCheck(facts: Facts, given: ReadAnnotations): Plan {
  const { source, object, claims } = facts
  const { isWatched } = facts.decision
  const read = facts.projectsInstead === null ? given : withoutProject(given, facts.projectsInstead, facts)
  if (object === undefined) return isWatched === true ? create(source, read) : NOTHING
  // Its end is reported, and one of a predecessor of the CronJob is deleted by the garbage collector.
  if (object.metadata.deletionTimestamp !== undefined) return NOTHING
  const owner = creatorOf(object)
  if (owner === null)
    return isWatched === true && followedBy(object) !== source.metadata.name ? nameTaken(object) : NOTHING
  if (owner !== source.metadata.uid || ownershipOf(object, claims).kind === 'foreign') return NOTHING
  if (isWatched === false) return { action: remove(object), warnings: [] }
  return update(object, read)
}

/** The uid of the CronJob for which an operator created the resource; null: a person or another program created it. */
export function creatorOf({ metadata: { labels, ownerReferences = [] } }: HeartbeatCheck): string | null {
  if (labels?.[MANAGED_BY_LABEL] !== FIELD_MANAGER) return null
  const owner = ownerReferences.find(({ controller }) => controller === true)
  return owner?.kind === CRON_JOB.kind && owner.apiVersion === CRON_JOB.apiVersion ? owner.uid : null
}

/** The name of the CronJob that a HeartbeatCheck follows; null: none. */
export function followedBy({ spec }: HeartbeatCheck): string | null {
  return spec.sourceRef?.kind === CRON_JOB.kind ? spec.sourceRef.name : null
}

/**
 * It has no label or annotation of the CronJob: those by which GitOps tools and Helm know what belongs to them would
 * make it theirs, and they would remove it again.
 */
function describeCheck({ metadata: { namespace, name, uid } }: OptInSource, fields: CopiedFields) {
  const owner = { ...CRON_JOB, name, uid, controller: true, blockOwnerDeletion: false }
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: {
      namespace,
      name,
      labels: { [MANAGED_BY_LABEL]: FIELD_MANAGER },
      ownerReferences: [owner],
    },
    spec: { sourceRef: { kind: CRON_JOB.kind, name }, ...fields },
  }
}

function create(source: OptInSource, { fields, faults }: ReadAnnotations): Plan {
  return { action: { kind: 'create', object: describeCheck(source, fields) }, warnings: faults.map(invalid) }
}

function update(object: HeartbeatCheck, { fields, faults }: ReadAnnotations): Plan {
  const { uid, resourceVersion } = object.metadata
  const { graceSeconds, maxRuntimeSeconds, displayName, description } = fields
  const wanted = { graceSeconds, maxRuntimeSeconds, displayName, description }
  const spec = Object.fromEntries(
    Object.entries(wanted)
      .filter(([field, value]) => object.spec[field as keyof typeof wanted] !== value)
      .map(([field, value]) => [field, value ?? null]),
  )
  const fault = findProjectFault(object, fields, faults)
  return {
    action:
      Object.keys(spec).length === 0
        ? { kind: 'none' }
        : { kind: 'update', patch: { metadata: { uid, resourceVersion }, spec } },
    warnings: [...faults, ...(fault === null ? [] : [fault])].map(invalid),
  }
}

/**
 * What is allowed later is not applied then: so the text does not call the default temporary, and says what applies it.
 * It is the same before and after the HeartbeatCheck is created, so that there is one Event of it.
 */
function withoutProject(
  { fields: { project, ...fields }, faults }: ReadAnnotations,
  instead: readonly string[],
  { source, object }: Pick<Facts, 'source' | 'object'>,
): ReadAnnotations {
  const kept = object?.spec.project
  const used = kept === undefined ? 'the default is used' : `the HeartbeatCheck stays in ${quote(kept)}`
  const names = instead.length === 0 ? 'only its own' : instead.slice(0, SHOWN_PROJECTS).join(', ')
  const more = instead.length > SHOWN_PROJECTS ? ` and ${instead.length - SHOWN_PROJECTS} more` : ''
  const fault = `annotation ${PROJECT_ANNOTATION} must name a project that the namespace may use (${names}${more}), and is ${quote(project!)}: ${used}`
  const remedy = kept === project ? '' : `. Once the namespace may use it, ${anew(source.metadata.name)}`
  return { fields, faults: [...faults, `${fault}${remedy}`] }
}

/** The project of a HeartbeatCheck cannot be changed. */
function findProjectFault(
  { metadata: { name }, spec }: HeartbeatCheck,
  { project }: CopiedFields,
  faults: readonly string[],
): string | null {
  if (project === spec.project) return null
  // An invalid one is a fault already.
  if (project === undefined && faults.some((fault) => fault.startsWith(`annotation ${PROJECT_ANNOTATION} `)))
    return null
  const now = project === undefined ? 'was removed' : `is ${quote(project)} now`
  const before = spec.project === undefined ? 'its default project' : `the project ${quote(spec.project)}`
  return `annotation ${PROJECT_ANNOTATION} ${now}, and the HeartbeatCheck ${name} stays in ${before}, which cannot be changed: to apply it, ${anew(name)}`
}

/** What applies another project. */
const anew = (name: string) =>
  `delete the HeartbeatCheck (kubectl delete heartbeatcheck ${name}), and the operator creates it again`

/** Another installation may have created it, and not have written its status yet. */
function remove({ metadata: { uid, resourceVersion }, status }: HeartbeatCheck): Action {
  return status?.installation === undefined ? { kind: 'wait' } : { kind: 'delete', uid, resourceVersion }
}

function nameTaken({ metadata: { name } }: HeartbeatCheck): Plan {
  const note = `the HeartbeatCheck ${name} exists, the operator has not created it, and it does not follow this CronJob, so the CronJob is not monitored: delete that HeartbeatCheck, or create it with spec.sourceRef {kind: CronJob, name: ${name}}; or exclude the CronJob with the label ${WATCH_LABEL}: "false"`
  return { action: { kind: 'none' }, warnings: [{ reason: 'NameTaken', note }] }
}

const invalid = (note: string): Warning => ({ reason: 'InvalidAnnotation', note })
