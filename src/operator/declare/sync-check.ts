/** The check of a HeartbeatCheck: what the resource declares, with what its source says, in its namespace's project. */

import type { Declared, DeclaredSource, GivenDeclaration, Revival } from '../../checks/declare/declare-check.ts'
import { type GivenSpec, textsOf } from '../../checks/find-checks.ts'
import { LIMIT_WORDS, type LimitFrom } from '../../domain/followed-defaults.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import {
  ADOPT_CHECK_ANNOTATION,
  type CheckDeclaration,
  type HeartbeatCheck,
  readHeartbeatCheck,
} from '../heartbeat-check.ts'
import type { Namespaces } from '../namespaces/namespaces.ts'
import { MAX_RUNTIME_ANNOTATION } from '../opt-in/annotations.ts'
import { creatorOf } from '../opt-in/plan.ts'
import { findPublishedUrls } from '../publish/publish.ts'
import { publicIdsIn } from '../publish/published-object.ts'
import { hasRequest } from '../resource/reconcile-request.ts'
import { readPausedUntil } from '../schema/paused-until.ts'
import type { Service } from '../service.ts'
import { Stalled, toStalled } from '../status/stalled.ts'
import { type SourceOptions, specOfSource } from './spec-of-source.ts'

export interface SyncCheckOptions extends SourceOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly service: Pick<Service, 'findCheck' | 'declareCheck'>
  readonly cluster: string
  readonly namespaces: Namespaces
  /** Default: `name`. */
  readonly revival?: Revival | undefined
}

export interface SyncedCheck extends Omit<Declared, 'fault'> {
  /** What a person has to correct although the check is there; null: nothing. */
  readonly fault: Stalled | null
}

/** What the resource declares, with what its source says. */
export interface ResolvedDeclaration extends Omit<CheckDeclaration, 'spec'> {
  readonly spec: GivenSpec
  readonly ofSource?: Pick<GivenDeclaration, 'pauseDetail' | 'mayRun' | 'succeededAt'>
  /** Left out: that is not known now. */
  readonly limitFrom?: LimitFrom
  /** What a person has to correct in the source, though there can be a check; null: nothing. */
  readonly fault: Stalled | null
}

/**
 * What the resource declares, with defaults. While its source is not there, or may not be read, the check keeps what
 * the source said last; a new check begins paused. Throws Stalled for a specification that makes no sense.
 */
export async function readDeclaration(options: SyncCheckOptions, object: HeartbeatCheck): Promise<ResolvedDeclaration> {
  const read = readHeartbeatCheck(object)
  if (!read.ok) throw new Stalled('InvalidSpec', read.faults.join('; '))
  const { declaration } = read
  const { spec, follows } = declaration
  if (spec !== null) return { ...declaration, spec, fault: null }
  const { namespace, name } = object.metadata as { namespace: string } & HeartbeatCheck['metadata']
  const said = specOfSource(options, namespace, follows!)
  const { pauseDetail } = said
  if (said.kind === 'read') {
    const ofSource = { pauseDetail, mayRun: true, succeededAt: said.succeededAt }
    const { spec, limitFrom } = said
    return { ...declaration, spec, suspend: pauseDetail !== null, ofSource, limitFrom, fault: null }
  }
  const { fault, begin } = said
  const known = await options.service.findCheck({ cluster: options.cluster, namespace, name })
  // What a source says that cannot be read replaces what it said before.
  const held = fault.reason === 'InvalidSpec' ? begin : (known?.spec ?? begin)
  if (held === null) throw fault
  const suspend = pauseDetail !== null ? true : (known?.kubernetesSuspend ?? null)
  const ofSource = { pauseDetail, mayRun: fault.reason !== 'SourceNotFound' }
  return { ...declaration, spec: held, suspend, ofSource, fault }
}

/**
 * Brings the check in line with its resource, but expects nothing of its job yet: see armCheck(). Throws Stalled for
 * what a person has to correct. A retry corrects any other error.
 */
export async function syncCheck(
  { client, service, cluster, namespaces, revival = 'name' }: SyncCheckOptions,
  object: HeartbeatCheck,
  declaration: ResolvedDeclaration,
): Promise<SyncedCheck> {
  const { namespace, name, annotations } = object.metadata as { namespace: string } & HeartbeatCheck['metadata']
  const { checkId = null, published, conditions = [] } = object.status ?? {}
  // Then a person waits for the effect of a change.
  const isAwaited = hasRequest(object) || conditions.some(({ type }) => type === 'Stalled')
  try {
    const place = await namespaces.placeOf(namespace, checkId === null)
    const allowed = await namespaces.allowedProjects(namespace, isAwaited ? 'fresh' : 'cached')
    const { decidedBy } = namespaces
    const { fault, ...declared } = await service.declareCheck({
      resource: { cluster, namespace, name },
      project: { cluster, namespace, allowed, decidedBy, wanted: declaration.project },
      ...textsOf(declaration),
      ...declaration.ofSource,
      spec: declaration.spec,
      dependencies: declaration.dependencies,
      pausedUntil: readPausedUntil(object).pausedUntil,
      suspend: declaration.suspend,
      isPublished: false,
      isNew: object.status === undefined,
      place,
      revival,
      adoptId: annotations?.[ADOPT_CHECK_ANNOTATION] ?? null,
      knownId: checkId,
      source: sourceOf(object, declaration),
      findPublicId:
        published && (async () => publicIdsIn(await findPublishedUrls(client, object, published))[0] ?? null),
    })
    return { ...declared, fault: declaration.fault ?? toStalled(fault) }
  } catch (error) {
    const stalled = toStalled(error)
    const denial = namespaces.denial(namespace)
    if (stalled?.reason !== 'ProjectNotAllowed' || denial === null) throw stalled ?? error
    throw new Stalled('ProjectNotAllowed', `${stalled.message}. The operator cannot read the Namespace: ${denial}`)
  }
}

/** The words are for people, in the detail of a run that took too long (../../store/history/new-flips.ts). */
function sourceOf(object: HeartbeatCheck, { follows, limitFrom }: ResolvedDeclaration): DeclaredSource | null {
  if (follows === undefined) return null
  const isCopied = limitFrom === 'resource' && creatorOf(object) !== null
  const words = isCopied ? `annotation ${MAX_RUNTIME_ANNOTATION} of its CronJob` : limitFrom && LIMIT_WORDS[limitFrom]
  return { name: follows.name, limitFrom: words ?? null }
}

/** Names in an Event, each of at most 317 of its 1,024 bytes. */
const NAMES = 2

/** The Warning about a resource with more labels than a check can have, once for the same labels; null: it has not. */
export function describeDroppedLabels({ labels, droppedLabels: dropped }: ResolvedDeclaration) {
  if (dropped.length === 0) return null
  const others = dropped.length - NAMES
  const names = `${dropped.slice(0, NAMES).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  const note = `a check has at most ${Object.keys(labels).length} labels, the first by name; this one lacks ${names}: remove labels of the resource that events, alerts and metrics of the check do not need`
  return { reason: 'LabelsDropped', note, id: `LabelsDropped ${note}` }
}
