/** Declares a HeartbeatCheck to the service: its specification, the project that its namespace may use, the check that it has. */

import {
  type DeclareChange,
  declareCheck,
  type GivenDeclaration,
  type Revival,
} from '../../checks/declare/declare-check.ts'
import type { Instant } from '../../domain/check.ts'
import type { AppError } from '../../domain/errors.ts'
import { LIMIT_WORDS, type LimitFrom } from '../../domain/followed-defaults.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { StoredCheck } from '../../store/checks/checks.ts'
import { type GivenSpec, textsOf } from '../../store/checks/columns.ts'
import type { Context } from '../../store/context.ts'
import { saveSource } from '../../store/jobs/cron-jobs.ts'
import { resolveProject } from '../../tenancy/namespace-projects.ts'
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
import { hasRequest } from '../reconcile/reconcile-request.ts'
import { isAdoptionRefused, Stalled, toStalled } from '../status/stalled.ts'

export interface DeclareOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly context: Context
  readonly cluster: string
  readonly namespaces: Namespaces
  /** Default: `name`. */
  readonly revival?: Revival | undefined
}

export interface DeclaredResource {
  readonly check: StoredCheck
  /** `restored`: the database had lost the check, and it has its URL again. `replaced`: the same, with a new URL. */
  readonly change: DeclareChange | 'restored' | 'replaced'
  /** What a person has to correct although the check is there; left out: nothing. */
  readonly fault?: Stalled
}

/** A declaration whose source was read, if it follows one. */
export type ResolvedDeclaration = Omit<CheckDeclaration, 'spec'> & {
  readonly spec: GivenSpec
  /** Why its source suspends it, in words. Default: null. */
  readonly pauseDetail?: string | null
  /** As checks/declare/plan.ts. Default: false. */
  readonly mayRun?: boolean
  /** As checks/declare/plan.ts. Default: null. */
  readonly succeededAt?: Instant | null
  /** Left out: that is not known now. */
  readonly limitFrom?: LimitFrom
}

/** What the resource declares, with defaults. Throws Stalled for a specification that makes no sense. */
export function readDeclaration(object: HeartbeatCheck): CheckDeclaration {
  const read = readHeartbeatCheck(object)
  if (read.ok) return read.declaration
  throw new Stalled('InvalidSpec', read.faults.join('; '))
}

/** Brings the check in line with its resource, but expects nothing of its job yet: see armCheck(). Throws Stalled for what a person has to correct; a retry corrects any other error. */
export async function declare(
  options: DeclareOptions,
  object: HeartbeatCheck,
  declaration: ResolvedDeclaration,
): Promise<DeclaredResource> {
  const { context, cluster, namespaces, revival = 'name' } = options
  const { spec, suspend, pauseDetail = null, mayRun = false, succeededAt = null, project } = declaration
  const { namespace, name, annotations } = object.metadata as { namespace: string } & HeartbeatCheck['metadata']
  // Then a person waits for the effect of a change.
  const isAwaited = hasRequest(object) || (object.status?.conditions?.some(({ type }) => type === 'Stalled') ?? false)
  const isNew = object.status === undefined
  const save = async (declared: DeclaredResource): Promise<DeclaredResource> => {
    await saveFollowed(context, declared, declaration, object)
    return declared
  }
  try {
    const place = await namespaces.placeOf(namespace, object.status?.checkId === undefined)
    const allowed = await namespaces.allowedProjects(namespace, isAwaited ? 'fresh' : 'cached')
    const { decidedBy } = namespaces
    const request = { cluster, namespace, allowed, decidedBy, wanted: project }
    const { id: projectId } = await resolveProject(context, request)
    const resource = { cluster, namespace, name }
    const wanted = {
      resource,
      projectId,
      ...textsOf(declaration),
      spec,
      suspend,
      pauseDetail,
      mayRun,
      succeededAt,
      isPublished: false,
      isNew,
      place,
      revival,
    }
    const adoptId = annotations?.[ADOPT_CHECK_ANNOTATION]
    const knownId = object.status?.checkId ?? null
    if (adoptId !== undefined && adoptId.toLowerCase() !== knownId) {
      try {
        return await save(await declareCheck(context, { ...wanted, adoptId }))
      } catch (error) {
        // A resource that has published had a check, of which a Stalled status knows nothing any more: it is lost.
        const isLost = knownId === null && object.status?.published !== undefined && isUnknownCheck(error)
        if (!isLost) throw error
      }
    }
    const found = knownId === null ? null : await declareKnown(context, wanted, knownId, adoptId !== undefined)
    if (found !== null) return await save(found)
    const lost = await save(await declareLost(options, object, wanted))
    return adoptId === undefined ? lost : { ...lost, ...(await findAdoptionFault(context, { ...wanted, adoptId })) }
  } catch (error) {
    const stalled = toStalled(error)
    const denial = namespaces.denial(namespace)
    if (stalled?.reason !== 'ProjectNotAllowed' || denial === null) throw stalled ?? error
    throw new Stalled('ProjectNotAllowed', `${stalled.message}. The operator cannot read the Namespace: ${denial}`)
  }
}

/** Words for people; in brackets in the detail of a run that took too long (../../store/history/new-flips.ts). */
function describeLimit(limitFrom: LimitFrom | undefined, object: HeartbeatCheck): string | null {
  if (limitFrom === undefined) return null
  const isCopied = limitFrom === 'resource' && creatorOf(object) !== null
  return isCopied ? `annotation ${MAX_RUNTIME_ANNOTATION} of its CronJob` : LIMIT_WORDS[limitFrom]
}

/** The source, and where the limit of its runs is set: that may change alone. Without a source a new check has no name to forget. */
async function saveFollowed(
  { database }: Pick<Context, 'database'>,
  { check, change }: DeclaredResource,
  { follows, limitFrom }: ResolvedDeclaration,
  object: HeartbeatCheck,
): Promise<void> {
  const mayBeNew = follows !== undefined || (change !== 'created' && change !== 'unchanged')
  if (mayBeNew) await saveSource(database, check.key, follows?.name ?? null, describeLimit(limitFrom, object))
}

/** Whether there is no check with the id to adopt. */
function isUnknownCheck(error: unknown): boolean {
  return isAdoptionRefused(error) && (error as AppError).code === 'not_found'
}

/**
 * A check that lost the mark of its resource, by manual SQL or by a restore of an older backup, is found by the id in the status, and
 * keeps its ping URL. The rules are those of an adoption, so that the id gives no more rights than the annotation. When they reject
 * it, the resource is declared without the id, unless that is in the annotation too. Null: there is no such check.
 */
async function declareKnown(
  context: Context,
  wanted: Omit<GivenDeclaration, 'adoptId'>,
  knownId: string,
  isAsked: boolean,
): Promise<DeclaredResource | null> {
  try {
    const { check, change } = await declareCheck(context, { ...wanted, adoptId: knownId, isKnownId: true })
    return { check, change: change === 'adopted' ? 'updated' : change }
  } catch (error) {
    if (!isAdoptionRefused(error)) throw error
    if (isUnknownCheck(error)) return null
    if (isAsked) throw error
    return declareCheck(context, { ...wanted, adoptId: null })
  }
}

/**
 * The annotation still names a check that this database does not have, by a loss or by a takeover. The resource has a new check in its
 * place, so that its job is watched over, and stalls from the start as it will in each later sync.
 */
async function findAdoptionFault(context: Context, wanted: GivenDeclaration): Promise<Pick<DeclaredResource, 'fault'>> {
  try {
    await declareCheck(context, { ...wanted, isNew: false })
    return {}
  } catch (error) {
    const fault = isAdoptionRefused(error) ? toStalled(error) : null
    if (fault === null) throw error
    return { fault }
  }
}

/**
 * A resource that has no check. If it had one, then the database has lost that, by an older backup or by manual SQL: the new one has the
 * public id that is in the resource's own Secret, so that its job goes on pinging the URL that it has.
 */
async function declareLost(
  { client, context }: DeclareOptions,
  object: HeartbeatCheck,
  wanted: Omit<GivenDeclaration, 'adoptId'>,
): Promise<DeclaredResource> {
  const { checkId, published } = object.status ?? {}
  const urls = published === undefined ? [] : await findPublishedUrls(client, object, published)
  const [publicId = null] = publicIdsIn(urls)
  const declared = await declareCheck(context, { ...wanted, adoptId: null, publicId })
  if (declared.change !== 'created' || (checkId === undefined && publicId === null)) return declared
  return { check: declared.check, change: declared.check.publicId === publicId ? 'restored' : 'replaced' }
}
