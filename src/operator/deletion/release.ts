/**
 * Removes our finalizer from every resource before the operator is uninstalled (`helm uninstall`): the resources
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
import { type Condition, keyOf, type ResourceType, toTime } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import { StartFault } from '../../runtime/start-fault.ts'
import {
  CHANNEL_KIND,
  FINALIZER,
  HEARTBEAT_CHANNELS,
  HEARTBEAT_CHECKS,
  HEARTBEAT_SILENCES,
  INSTALLATION_ANNOTATION,
  KIND,
  LEASE_NAME,
  SILENCE_KIND,
  STATUS_FIELD_MANAGER,
} from '../heartbeat-check.ts'
import { hasFinalizer, removeFinalizer } from '../resource/finalizer.ts'
import type { Resource, ResourceKind } from '../resource/resource.ts'

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
    const isOurs = ({ status }: Resource) => [undefined, ours, takeOver].includes(status?.installation)
    const released: string[] = []
    for (let rounds = 1; ; rounds += 1) {
      const round = await releaseOnce(options, isOurs)
      released.push(...round.released)
      if (round.found === 0) {
        const kept = round.foreign.length === 0 ? null : describeKept(round.foreign, ours)
        if (kept !== null && ours === null) throw new ReleaseError(kept)
        if (kept !== null) say(kept)
        if (kept === null || released.length > 0) say(describeDone(released))
        return
      }
      if (rounds === MAX_ROUNDS) throw new ReleaseError(describeLeft(round.failures))
      await clock.sleep(ROUND_MS, signal)
    }
  } catch (error) {
    if (hasStatus(error, 404)) return say('this cluster knows none of our resources: nothing to do')
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

const KINDS: readonly ResourceKind[] = [
  { type: HEARTBEAT_CHECKS, kind: KIND },
  { type: HEARTBEAT_CHANNELS, kind: CHANNEL_KIND },
  { type: HEARTBEAT_SILENCES, kind: SILENCE_KIND },
]

interface Held {
  readonly of: ResourceKind
  readonly object: Resource
}

interface Failure {
  readonly key: string
  readonly message: string
}

interface Round {
  /** How many had our finalizer; at least one when the round was incomplete. */
  readonly found: number
  /** The kind of each that was released. */
  readonly released: readonly string[]
  readonly failures: readonly Failure[]
  /** The installations whose resources keep the finalizer. These resources are not in `found`. */
  readonly foreign: readonly string[]
}

async function releaseOnce(options: Options, isOurs: (object: Resource) => boolean): Promise<Round> {
  const held: Held[] = []
  const failures: Failure[] = []
  const foreign: string[] = []
  let isComplete = true
  const unknown: unknown[] = []
  const places = (options.namespaces ?? [undefined]).flatMap((namespace) => KINDS.map((of) => ({ namespace, of })))
  for (const { namespace, of } of places) {
    try {
      const finalized = (await listAll(options, of.type, namespace)).filter(hasFinalizer)
      held.push(...finalized.filter(isOurs).map((object) => ({ of, object })))
      foreign.push(...finalized.filter((object) => !isOurs(object)).map(({ status }) => status!.installation!))
    } catch (error) {
      // Its definition was not applied, or is gone.
      if (hasStatus(error, 404)) {
        unknown.push(error)
        continue
      }
      // A namespace that was deleted, or has lost its Role, keeps no other waiting.
      const isBarred = namespace !== undefined && hasStatus(error, 403)
      // The list expired between two pages: the next round begins with a new one.
      if (!isBarred && !hasStatus(error, 410)) throw error
      isComplete = false
      if (isBarred) failures.push({ key: `those of the namespace ${namespace}`, message: error.message })
    }
  }
  if (unknown.length > 0 && unknown.length === places.length) throw unknown[0]
  const released: string[] = []
  for (let from = 0; from < held.length; from += PAGE) {
    const page = held.slice(from, from + PAGE)
    const results = await Promise.all(page.map((one) => release(options, one)))
    released.push(...page.flatMap(({ of }, index) => (results[index] === null ? [of.kind] : [])))
    failures.push(...results.filter((failure) => failure !== null))
  }
  return { found: held.length + (isComplete ? 0 : 1), released, failures, foreign }
}

async function listAll(
  { client, signal }: Options,
  type: ResourceType,
  namespace: string | undefined,
): Promise<Resource[]> {
  const where = { ...(namespace === undefined ? {} : { namespace }), signal, limit: PAGE }
  let page = await client.list<Resource>(type, where)
  const items = [...page.items]
  while (page.continueToken !== null) {
    page = await client.list<Resource>(type, { ...where, continueToken: page.continueToken })
    items.push(...page.items)
  }
  return items
}

/** Null: it is released. Fails too for a resource that was changed since the list; the next round handles it. */
async function release({ client, clock }: ReleaseOptions, { of, object }: Held): Promise<Failure | null> {
  try {
    await reportUninstalled(client, of, await removeFinalizer(client, of.type, object), clock.now())
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
  { type, kind }: ResourceKind,
  { metadata, status }: Resource,
  now: number,
): Promise<void> {
  const { namespace, name, resourceVersion, deletionTimestamp } = metadata
  const before = status?.conditions?.find((condition) => condition.type === 'Ready')
  if (before === undefined || deletionTimestamp !== undefined) return
  const lastTransitionTime = before.status === 'Unknown' ? before.lastTransitionTime : toTime(now)
  const ready: Condition = { ...before, ...uninstalled(kind), lastTransitionTime }
  const conditions = status!.conditions!.map((condition) => (condition === before ? ready : condition))
  const patch = { metadata: { resourceVersion }, status: { conditions } }
  const writing = { subresource: 'status', fieldManager: STATUS_FIELD_MANAGER } as const
  try {
    await client.mergePatch(type, { namespace: namespace!, name }, patch, writing)
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof TransportError)) throw error
  }
}

const uninstalled = (kind: string) =>
  ({
    status: 'Unknown',
    reason: 'Uninstalled',
    message: `the operator was uninstalled: the state and all else in this status are of that time. Install it again, or delete this ${kind}`,
  }) as const

const listed = (words: readonly string[]) => new Intl.ListFormat('en').format(words)

function describeDone(released: readonly string[]): string {
  if (released.length === 0) return `no resource holds the finalizer ${FINALIZER}: nothing to do`
  const what = KINDS.flatMap(({ kind }) => {
    const count = released.filter((one) => one === kind).length
    return count === 0 ? [] : [`${count} ${kind}${count === 1 ? '' : 's'}`]
  })
  return `the finalizer ${FINALIZER} is off ${listed(what)}; what they declare stays in the database, and silences go on`
}

function describeKept(foreign: readonly string[], ours: string | null): string {
  const owners = [...new Set(foreign)]
  const countOf = (owner: string) => foreign.filter((one) => one === owner).length
  const list = owners.slice(0, MAX_NAMED).map((owner) => `${countOf(owner)} of the installation ${owner}`)
  const more = owners.length > MAX_NAMED ? `, and of ${owners.length - MAX_NAMED} more` : ''
  const kept = `resources keep the finalizer ${FINALIZER}: ${list.join(', ')}${more}`
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
      `a right is missing (get of the Lease ${LEASE_NAME}; list and patch of ${listed(KINDS.map(({ kind }) => `${kind}s`))}): ${error.message}`,
    )
  if (error instanceof ApiError || error instanceof TransportError)
    return new ReleaseError(`the API server did not remove the finalizers: ${error.message}`)
  return error
}
