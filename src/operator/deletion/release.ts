/**
 * Removes our finalizer from every HeartbeatCheck before the operator is uninstalled (`helm uninstall`): the resources
 * can then be deleted without the operator, and no namespace hangs in Terminating. The status of each says that nothing
 * keeps it true. Checks and their URLs stay in the database; an operator that is installed again adds the finalizer
 * again.
 *
 * Resources of another installation keep the finalizer: their owner needs it. Whether the owner still runs cannot be
 * seen with the rights of an uninstallation, so a person decides, and names the owner in TAKE_OVER. Our Lease says
 * which installation this one is: the database may be gone by now.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError, hasStatus, TransportError } from '../../kubernetes/errors.ts'
import { createLeaseObserver, readLease } from '../../kubernetes/lease.ts'
import { type Condition, keyOf, toTime } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import { StartFault } from '../../runtime/start-fault.ts'
import {
  FINALIZER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  INSTALLATION_ANNOTATION,
  LEASE_NAME,
  STATUS_FIELD_MANAGER,
} from '../heartbeat-check.ts'
import { hasFinalizer, removeFinalizer } from '../resource/finalizer.ts'

export interface ReleaseOptions {
  readonly client: KubernetesClient
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  /** Where the Lease of the operator is. */
  readonly leaseNamespace: string
  /** TAKE_OVER: the id of another installation whose resources are released too. */
  readonly takeOver?: string | null
  readonly clock: Clock
  /** Called with one line for people. */
  readonly say: (line: string) => void
  /** Aborts it with ReleaseError. */
  readonly signal?: AbortSignal
}

type Options = ReleaseOptions & { readonly signal: AbortSignal }

/** Some finalizers could not be removed; the message says why and what to do. */
export class ReleaseError extends StartFault {
  override readonly name = 'ReleaseError'
  override readonly exitStatus = 1
}

/** Longer than a leader takes to stop, and than the lease of a killed one takes to expire. */
export const LEADER_PATIENCE_MS = 60_000
const LEASE_POLL_MS = 1_000
const LEASE_MS = 15_000
const PAGE = 200
/** The first round finds all of them; the next ones handle what changed or was created meanwhile. */
const MAX_ROUNDS = 10
const ROUND_MS = 1_000
const MAX_NAMED = 3

/** Resolves after a whole round without a finalizer of ours. Throws ReleaseError when finalizers may be left. */
export async function releaseFinalizers(given: ReleaseOptions): Promise<void> {
  const options: Options = { signal: new AbortController().signal, ...given }
  const { clock, say, signal, takeOver } = options
  try {
    const ours = await waitUntilLeaseIsFree(options)
    const isOurs = ({ status }: HeartbeatCheck) => [undefined, ours, takeOver].includes(status?.installation)
    let released = 0
    for (let rounds = 1; ; rounds += 1) {
      const round = await releaseOnce(options, isOurs)
      released += round.released
      if (round.found === 0) {
        const kept = round.foreign.length === 0 ? null : describeKept(round.foreign, ours)
        if (kept !== null && ours === null) throw new ReleaseError(kept)
        if (kept !== null) say(kept)
        if (kept === null || released > 0) say(describeDone(released))
        return
      }
      if (rounds === MAX_ROUNDS) throw new ReleaseError(describeLeft(round.failures))
      await clock.sleep(ROUND_MS, signal)
    }
  } catch (error) {
    if (hasStatus(error, 404)) return say('this cluster knows no HeartbeatChecks: nothing to do')
    throw explain(error, signal)
  }
}

/**
 * A leader would put the finalizers back. Waits until the Lease is free or expired, by the rule of candidates. Resolves
 * with the installation that held it last; null when that is not known.
 */
async function waitUntilLeaseIsFree(options: Options): Promise<string | null> {
  const { client, leaseNamespace, clock, say, signal } = options
  const name = { namespace: leaseNamespace, name: LEASE_NAME }
  const giveUpAt = clock.now() + LEADER_PATIENCE_MS
  const observer = createLeaseObserver(clock, LEASE_MS)
  for (let isFirst = true; ; isFirst = false) {
    const lease = await readLease(client, name, { signal })
    if (lease === null) return null
    observer.observe(lease)
    if (observer.isFree()) return lease.metadata.annotations?.[INSTALLATION_ANNOTATION] ?? null
    const holder = observer.holder()
    if (isFirst) say(`waiting for ${holder} to give back the Lease ${leaseNamespace}/${LEASE_NAME} ...`)
    if (clock.now() >= giveUpAt)
      throw new ReleaseError(
        `${holder} still leads by the Lease ${leaseNamespace}/${LEASE_NAME}, and would put the finalizers back: stop the controllers, then run this again`,
      )
    await clock.sleep(LEASE_POLL_MS, signal)
  }
}

interface Failure {
  readonly key: string
  readonly message: string
}

interface Round {
  /** How many had our finalizer; at least one when the round was incomplete. */
  readonly found: number
  readonly released: number
  readonly failures: readonly Failure[]
  /** The installations whose resources keep the finalizer. These resources are not in `found`. */
  readonly foreign: readonly string[]
}

async function releaseOnce(options: Options, isOurs: (object: HeartbeatCheck) => boolean): Promise<Round> {
  const held: HeartbeatCheck[] = []
  const failures: Failure[] = []
  const foreign: string[] = []
  let isComplete = true
  for (const namespace of options.namespaces ?? [undefined]) {
    try {
      const finalized = (await listAll(options, namespace)).filter(hasFinalizer)
      held.push(...finalized.filter(isOurs))
      foreign.push(...finalized.filter((object) => !isOurs(object)).map(({ status }) => status!.installation!))
    } catch (error) {
      // A namespace that was deleted, or has lost its Role, keeps no other waiting.
      const isBarred = namespace !== undefined && hasStatus(error, 403)
      // The list expired between two pages: the next round begins with a new one.
      if (!isBarred && !hasStatus(error, 410)) throw error
      isComplete = false
      if (isBarred) failures.push({ key: `those of the namespace ${namespace}`, message: error.message })
    }
  }
  let released = 0
  for (let from = 0; from < held.length; from += PAGE) {
    const results = await Promise.all(held.slice(from, from + PAGE).map((object) => release(options, object)))
    released += results.filter((failure) => failure === null).length
    failures.push(...results.filter((failure) => failure !== null))
  }
  return { found: held.length + (isComplete ? 0 : 1), released, failures, foreign }
}

async function listAll({ client, signal }: Options, namespace: string | undefined): Promise<HeartbeatCheck[]> {
  const where = { ...(namespace === undefined ? {} : { namespace }), signal, limit: PAGE }
  let page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, where)
  const items = [...page.items]
  while (page.continueToken !== null) {
    page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, { ...where, continueToken: page.continueToken })
    items.push(...page.items)
  }
  return items
}

/** Null: it is released. Fails too for a resource that was changed since the list; the next round handles it. */
async function release({ client, clock }: ReleaseOptions, object: HeartbeatCheck): Promise<Failure | null> {
  try {
    await reportUninstalled(client, await removeFinalizer(client, HEARTBEAT_CHECKS, object), clock.now())
    return null
  } catch (error) {
    // Without the right every other one would fail too.
    const isForbidden = hasStatus(error, 403)
    if (isForbidden || !(error instanceof ApiError || error instanceof TransportError)) throw error
    return { key: keyOf(object.metadata), message: error.message }
  }
}

/** Its condition Ready becomes Unknown. Without the right, or when the resource was changed, the status stays. */
async function reportUninstalled(
  client: KubernetesClient,
  { metadata, status }: HeartbeatCheck,
  now: number,
): Promise<void> {
  const { namespace, name, resourceVersion, deletionTimestamp } = metadata
  const before = status?.conditions?.find((condition) => condition.type === 'Ready')
  if (before === undefined || deletionTimestamp !== undefined) return
  const lastTransitionTime = before.status === 'Unknown' ? before.lastTransitionTime : toTime(now)
  const ready: Condition = { ...before, ...UNINSTALLED, lastTransitionTime }
  const conditions = status!.conditions!.map((condition) => (condition === before ? ready : condition))
  const patch = { metadata: { resourceVersion }, status: { conditions } }
  const writing = { subresource: 'status', fieldManager: STATUS_FIELD_MANAGER } as const
  try {
    await client.mergePatch(HEARTBEAT_CHECKS, { namespace: namespace!, name }, patch, writing)
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof TransportError)) throw error
  }
}

const UNINSTALLED = {
  status: 'Unknown',
  reason: 'Uninstalled',
  message:
    'the operator was uninstalled: the state and all else in this status are of that time. Install it again, or delete this HeartbeatCheck',
} as const

function describeDone(released: number): string {
  if (released === 0) return `no HeartbeatCheck holds the finalizer ${FINALIZER}: nothing to do`
  const what = released === 1 ? '1 HeartbeatCheck' : `${released} HeartbeatChecks`
  return `the finalizer ${FINALIZER} is off ${what}; the checks themselves stay in the database`
}

function describeKept(foreign: readonly string[], ours: string | null): string {
  const owners = [...new Set(foreign)]
  const countOf = (owner: string) => foreign.filter((one) => one === owner).length
  const list = owners.slice(0, MAX_NAMED).map((owner) => `${countOf(owner)} of the installation ${owner}`)
  const more = owners.length > MAX_NAMED ? `, and of ${owners.length - MAX_NAMED} more` : ''
  const kept = `HeartbeatChecks keep the finalizer ${FINALIZER}: ${list.join(', ')}${more}`
  const wayOut = 'run this again with TAKE_OVER=<that id>'
  return ours === null
    ? `${kept}; no Lease here says which installation this is: if it is one of these, or one of these no longer runs, ${wayOut}`
    : `${kept}; this is the installation ${ours}: if the other one no longer runs, ${wayOut}`
}

function describeLeft(failures: readonly Failure[]): string {
  if (failures.length === 0)
    return `the finalizer ${FINALIZER} comes back as often as it is taken off: another controller runs, stop it and run this again`
  const named = failures.slice(0, MAX_NAMED).map(({ key, message }) => `${key} (${message})`)
  const more = failures.length > MAX_NAMED ? ` and ${failures.length - MAX_NAMED} more` : ''
  return `the finalizer ${FINALIZER} could not be taken off ${named.join(', ')}${more}: fix that, then run this again`
}

function explain(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ReleaseError) return error
  if (signal.aborted) return new ReleaseError('stopped before the end: run this again')
  if (hasStatus(error, 403))
    return new ReleaseError(
      `a right is missing (get of the Lease ${LEASE_NAME}; list and patch of HeartbeatChecks): ${error.message}`,
    )
  if (error instanceof ApiError || error instanceof TransportError)
    return new ReleaseError(`the API server did not remove the finalizers: ${error.message}`)
  return error
}
