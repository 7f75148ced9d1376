/**
 * How a HeartbeatCheck changes its owner, and what this installation does about resources of others (design, section
 * 6). The reconcile calls begin() before anything else, and claim() when the check is there and nothing is published
 * yet.
 *
 * - A resource of another installation is neither reconciled nor finalized: its finalizer belongs to its owner. It gets
 *   the conditions Ready and Stalled once per start of this process, and one Event. When its owner overwrites the
 *   conditions, they stay as the owner wrote them.
 * - The check that we had for such a resource would alarm, as its job reports to the new owner. An account with the
 *   right to write a status can name another owner in it, and a takeover is no use to a job that still has our URL. So
 *   the check goes only when the published object proves the takeover: it is of this resource and holds another URL.
 * - A resource that has our finalizer and names no installation has lost its status. Another installation that has its
 *   check writes its name again as soon as it sees the resource. So an installation without the check waits first.
 */

import { isDeepStrictEqual } from 'node:util'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import type { Log } from '../../runtime/log.ts'
import type { SyncedCheck } from '../declare/sync-check.ts'
import {
  FINALIZER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  KIND,
  publishesNothing,
  TAKE_OVER_ANNOTATION,
  targetOf,
} from '../heartbeat-check.ts'
import { findPublishedUrls } from '../publish/publish.ts'
import { addForeign } from '../resource/conditions.ts'
import { regarding } from '../resource/resource.ts'
import { patchStatus } from '../resource/write-status.ts'
import type { Service } from '../service.ts'
import { describeRetrying } from '../status/report.ts'
import { noneIfStalled } from '../status/stalled.ts'
import type { OwnClaims } from './installation.ts'
import { isPublished, ownershipOf } from './ownership.ts'

export interface TakeoverOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'mergePatch'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly service: Pick<Service, 'now' | 'findCheck' | 'retireCheck'>
  readonly cluster: string
  readonly claims: OwnClaims
  readonly recorder: Pick<Recorder, 'record'>
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  readonly now: () => number
  readonly log: Log
}

export interface Takeover {
  /**
   * Resolves with the result of the reconcile for a resource that is not ours; null: it is ours, is to be taken over,
   * or is gone. Throws errors that a retry may resolve.
   */
  begin(key: string, object: HeartbeatCheck | undefined): Promise<ReconcileResult | null>
  /**
   * Makes a resource ours that is to be taken over: before a URL of ours replaces the URL of the owner, which would put
   * its own back. Resolves with the resource; throws when it has changed since.
   */
  claim(key: string, object: HeartbeatCheck, declared: SyncedCheck): Promise<HeartbeatCheck>
}

/** Longer than an installation takes to elect another leader. */
export const OWNER_WAIT_MS = 20_000
/** Each status of its new owner may prove a takeover, and leads to a look too. */
const FIRST_LOOK_MS = 1_000
const LONGEST_LOOK_MS = 600_000

export function createTakeover(options: TakeoverOptions): Takeover {
  const { client, cache, service, cluster, claims, recorder, pingUrl, now, log } = options
  const { installation, reported } = claims
  /** By key: since when the owner of a resource without a status is waited for. */
  const lostSince = new Map<string, number>()
  /** By key: since when a check of ours is kept although another installation has its resource. */
  const keptSince = new Map<string, number>()
  /** By key: takeovers without their Event, and what became of the check. */
  const open = new Map<string, { readonly from: string; readonly what: string }>()

  async function begin(key: string, object: HeartbeatCheck | undefined): Promise<ReconcileResult | null> {
    const owner = object === undefined ? null : ownershipOf(object, claims)
    if (owner?.kind === 'foreign') return leave(key, object!, owner.installation)
    keptSince.delete(key)
    if (object === undefined) reported.delete(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
      lostSince.delete(key)
      open.delete(key)
      return null
    }
    if (owner?.kind === 'takeover') open.set(key, open.get(key) ?? { from: owner.from, what: '' })
    else recordTakenOver(key, object)
    const leftMs = await waitForOwner(key, object)
    return leftMs > 0 ? { kind: 'again', afterMs: leftMs, priority: 'background' } : null
  }

  async function leave(key: string, object: HeartbeatCheck, owner: string): Promise<ReconcileResult> {
    lostSince.delete(key)
    open.delete(key)
    const afterMs = await endFormerCheck(key, object, owner)
    if (reported.get(key) !== object.metadata.uid) await reportForeign(key, object, owner)
    return afterMs === null ? { kind: 'done' } : { kind: 'again', afterMs, priority: 'background' }
  }

  async function reportForeign(key: string, object: HeartbeatCheck, owner: string): Promise<void> {
    const message = describeForeign(KIND, owner, installation)
    const conditions = addForeign(object, message, service.now())
    // By an earlier start, or another replica, they may be there.
    if (!isDeepStrictEqual(conditions, object.status?.conditions))
      await patchStatus(options, HEARTBEAT_CHECKS, object, { conditions })
    if (reported.size === 0)
      log.error(
        { installation: owner, ours: installation, resource: splitKey(key) },
        'this cluster has HeartbeatChecks of another installation, which are not reconciled: heartbeat_installation_conflicts counts them, their status says what to do',
      )
    reported.set(key, object.metadata.uid)
    const event = { type: 'Warning', reason: 'ManagedElsewhere', action: 'Reconcile', note: message } as const
    recorder.record(regarding(object, KIND), { ...event, id: `ManagedElsewhere ${owner}` })
  }

  /** Retires the check that we had, if the takeover is proved. Resolves with the ms until the next look; null: none. */
  async function endFormerCheck(key: string, object: HeartbeatCheck, owner: string): Promise<number | null> {
    const resource = { cluster, ...splitKey(key) }
    const { checkId } = object.status ?? {}
    const check = checkId === undefined ? null : await service.findCheck(resource)
    // With the id of our check, this database is an earlier state of the owner's, or a copy, with an id of its own.
    const isKept = check !== null && check.id !== checkId
    if (isKept && !(await isProved(object, `${pingUrl()}/ping/${check.publicId}`))) {
      const since = keptSince.get(key) ?? now()
      keptSince.set(key, since)
      // Each wait is as long as all before, so it doubles.
      return Math.min(Math.max(FIRST_LOOK_MS, now() - since), LONGEST_LOOK_MS)
    }
    keptSince.delete(key)
    if (!isKept) return null
    await service.retireCheck(resource, 'Delete')
    log.warn(
      { resource, installation: owner },
      'another installation has taken over a HeartbeatCheck, and its ping URL is published: the check here is removed',
    )
    return null
  }

  /**
   * By the target of the specification, which the writer of a status cannot choose. Without a target: never. Nor before
   * the owner says that its URL is there: another URL may be ours from before a change of PING_URL.
   */
  async function isProved(object: HeartbeatCheck, ourUrl: string): Promise<boolean> {
    const target = isPublished(object.status!) ? targetOf(object) : null
    const urls = target === null ? [] : await findPublishedUrls(client, object, target).catch(noneIfStalled)
    return urls.length > 0 && !urls.includes(ourUrl)
  }

  /** Resolves with the ms for which the resource is left to its owner. */
  async function waitForOwner(key: string, { metadata, status }: HeartbeatCheck): Promise<number> {
    const isLost = status?.installation === undefined && metadata.finalizers?.includes(FINALIZER) === true
    if (!isLost || (await service.findCheck({ cluster, ...splitKey(key) })) !== null) {
      lostSince.delete(key)
      return 0
    }
    const since = lostSince.get(key) ?? now()
    lostSince.set(key, since)
    return since + OWNER_WAIT_MS - now()
  }

  async function claim(key: string, object: HeartbeatCheck, { check, change }: SyncedCheck) {
    const owner = ownershipOf(object, claims)
    if (owner.kind !== 'takeover') return object
    const { from } = owner
    // Before the status: when the status fails, the retry finds a check that is not new.
    const what = describeNewCheck(change, publishesNothing(object.spec))
    if (what !== '') open.set(key, { from, what })
    const message = `taken over from the installation ${from}; it is brought in line next`
    // The URL is not published by us yet: with that condition its previous owner sees when it is.
    const conditions = describeRetrying(object, message, null, service.now())
    const claimed = await patchStatus({ client, cache }, HEARTBEAT_CHECKS, object, {
      installation,
      checkId: check.id,
      conditions,
    })
    claims.takenOver.add(object.metadata.uid)
    return claimed
  }

  /** In the reconcile that follows the status, so when the URL is published: who sees the Event may use the URL. */
  function recordTakenOver(key: string, object: HeartbeatCheck): void {
    const taken = open.get(key)
    const { conditions } = object.status ?? {}
    if (taken === undefined || conditions === undefined || conditions.some(({ type }) => type === 'Reconciling')) return
    open.delete(key)
    // Where the resource has no check, its status alone made it ours.
    claims.takenOver.add(object.metadata.uid)
    const note = `taken over from the installation ${taken.from}: this one reconciles it from now on${taken.what}`
    recorder.record(regarding(object, KIND), { type: 'Normal', reason: 'TakenOver', action: 'Reconcile', note })
  }

  return { begin, claim }
}

/** What is wrong with a resource of another installation, and what to do. */
export function describeForeign(kind: string, owner: string, ours: string): string {
  return (
    `this ${kind} belongs to the installation ${owner}, so the installation ${ours} does not reconcile it: ` +
    `if ${owner} no longer runs, take it over with the annotation ${TAKE_OVER_ANNOTATION}: ${owner} on this resource, ` +
    `or all of its resources with TAKE_OVER=${owner}; ` +
    'if both run, stop one, or let each watch other namespaces (WATCH_NAMESPACES)'
  )
}

/** A database that knows the check, such as a restored one, has its history. */
function describeNewCheck(change: SyncedCheck['change'], isUnpublished: boolean): string {
  if (!['created', 'replaced', 'restored'].includes(change)) return ''
  const withUrl = isUnpublished ? '' : ' with a new ping URL'
  const isNewWith = change === 'restored' ? ' with the same public id' : withUrl
  return `; the check is a new one${isNewWith}, and its history stays with the previous installation`
}
