/**
 * Removes our finalizer from every HeartbeatCheck before the operator is uninstalled (`helm uninstall`): the resources can then
 * be deleted without it, and no namespace hangs in Terminating. Their status then says that nothing keeps it true. Checks and their URLs stay in the database; an operator that
 * is installed again adds the finalizer again.
 *
 * Resources of another installation keep the finalizer: their owner needs it. Whether that one still runs cannot be seen with the rights
 * of an uninstallation, so it is left to a person, who names it in TAKE_OVER. Which installation this one is, our Lease says: the
 * database may be gone by now.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError, hasStatus, TransportError } from '../../kubernetes/errors.ts'
import { createLeaseObserver, readLease } from '../../kubernetes/lease.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import { StartFault } from '../../runtime/start-fault.ts'
import {
  FINALIZER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  INSTALLATION_ANNOTATION,
  LEASE_NAME,
} from '../heartbeat-check.ts'
import { removeFinalizer } from './finalize.ts'
import { createUninstalledReporter } from './report-uninstalled.ts'

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
export async function releaseFinalizers(options: ReleaseOptions): Promise<void> {
  const { clock, say, signal } = options
  try {
    const ours = await waitUntilLeaseIsFree(options)
    const isOurs = ({ status }: HeartbeatCheck) => [undefined, ours, options.takeOver].includes(status?.installation)
    let released = 0
    let failures: readonly Failure[] = []
    for (let rounds = 1; rounds <= MAX_ROUNDS; rounds += 1) {
      const round = await releaseOnce(options, isOurs)
      if (round === 'no such resource') return say('this cluster knows no HeartbeatChecks: nothing to do')
      released += round.released
      failures = round.failures
      if (round.found === 0) {
        if (round.foreign.size > 0 && ours === null)
          throw new ReleaseError(describeResourcesOfOthers(round.foreign, null))
        if (round.foreign.size > 0) say(describeResourcesOfOthers(round.foreign, ours))
        if (released > 0 || round.foreign.size === 0) say(describeDone(released))
        return
      }
      if (rounds < MAX_ROUNDS) await clock.sleep(ROUND_MS, signal)
    }
    throw new ReleaseError(describeLeft(failures))
  } catch (error) {
    throw explain(error, signal)
  }
}

/**
 * A leader would put the finalizers back. Waits until the Lease is free or expired, by the rule of candidates. Resolves with the
 * installation that held it last; null when that is not known.
 */
async function waitUntilLeaseIsFree({
  client,
  leaseNamespace,
  clock,
  say,
  signal,
}: ReleaseOptions): Promise<string | null> {
  const name = { namespace: leaseNamespace, name: LEASE_NAME }
  const giveUpAt = clock.now() + LEADER_PATIENCE_MS
  const observer = createLeaseObserver(clock, LEASE_MS)
  for (let isFirst = true; ; isFirst = false) {
    const lease = await readLease(client, name, limitsOf(signal))
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
  /** How many with our finalizer belong to other installations, by their ids. They are not in `found`. */
  readonly foreign: ReadonlyMap<string, number>
}

async function releaseOnce(
  options: ReleaseOptions,
  isOurs: (object: HeartbeatCheck) => boolean,
): Promise<Round | 'no such resource'> {
  const { client } = options
  const reportUninstalled = createUninstalledReporter(client, options.clock)
  let [found, released] = [0, 0]
  const failures: Failure[] = []
  const foreign = new Map<string, number>()
  const releasePage = async (items: readonly HeartbeatCheck[]) => {
    const finalized = items.filter(({ metadata }) => metadata.finalizers?.includes(FINALIZER))
    const held = finalized.filter(isOurs)
    for (const object of finalized) {
      const owner = object.status?.installation
      if (owner !== undefined && !isOurs(object)) foreign.set(owner, (foreign.get(owner) ?? 0) + 1)
    }
    found += held.length
    const results = await Promise.all(held.map((object) => release(client, object, reportUninstalled)))
    const failed = results.filter((result) => result !== 'released')
    released += results.length - failed.length
    failures.push(...failed)
  }
  for (const namespace of options.namespaces ?? [undefined]) {
    let isListing = true
    try {
      for await (const items of listPages(options, namespace)) {
        isListing = false
        await releasePage(items)
        isListing = true
      }
    } catch (error) {
      if (hasStatus(error, 404)) return 'no such resource'
      // The list expired between two pages: the next round begins with a new one.
      const isExpired = hasStatus(error, 410)
      // A namespace that was deleted, or has lost its Role, keeps no other waiting.
      const isBarred = isListing && namespace !== undefined && hasStatus(error, 403)
      if (!isExpired && !isBarred) throw error
      found += 1
      if (isBarred) failures.push({ key: `those of the namespace ${namespace}`, message: error.message })
    }
  }
  return { found, released, failures, foreign }
}

async function* listPages(
  { client, signal }: ReleaseOptions,
  namespace: string | undefined,
): AsyncGenerator<HeartbeatCheck[]> {
  const where = { ...(namespace === undefined ? {} : { namespace }), ...limitsOf(signal), limit: PAGE }
  let page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, where)
  yield page.items
  while (page.continueToken !== null) {
    page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, { ...where, continueToken: page.continueToken })
    yield page.items
  }
}

/** Fails too for a resource that was changed or deleted since the list; the next round handles it. */
async function release(
  client: KubernetesClient,
  object: HeartbeatCheck,
  reportUninstalled: (object: HeartbeatCheck) => Promise<void>,
): Promise<'released' | Failure> {
  try {
    const released = await removeFinalizer(client, object)
    await reportUninstalled(released)
    return 'released'
  } catch (error) {
    // Without the right every other one would fail too.
    const isForbidden = hasStatus(error, 403)
    if (isForbidden || !(error instanceof ApiError || error instanceof TransportError)) throw error
    return { key: keyOf(object.metadata), message: error.message }
  }
}

function describeDone(released: number): string {
  if (released === 0) return `no HeartbeatCheck holds the finalizer ${FINALIZER}: nothing to do`
  const what = released === 1 ? '1 HeartbeatCheck' : `${released} HeartbeatChecks`
  return `the finalizer ${FINALIZER} is off ${what}; the checks themselves stay in the database`
}

function describeResourcesOfOthers(foreign: ReadonlyMap<string, number>, ours: string | null): string {
  const list = [...foreign].slice(0, MAX_NAMED).map(([owner, count]) => `${count} of the installation ${owner}`)
  const more = foreign.size > MAX_NAMED ? `, and of ${foreign.size - MAX_NAMED} more` : ''
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

function explain(error: unknown, signal: AbortSignal | undefined): unknown {
  if (error instanceof ReleaseError) return error
  if (signal?.aborted) return new ReleaseError('stopped before the end: run this again')
  if (hasStatus(error, 403))
    return new ReleaseError(
      `a right is missing (get of the Lease ${LEASE_NAME}; list and patch of HeartbeatChecks): ${error.message}`,
    )
  if (error instanceof ApiError || error instanceof TransportError)
    return new ReleaseError(`the API server did not remove the finalizers: ${error.message}`)
  return error
}

function limitsOf(signal: AbortSignal | undefined) {
  return signal === undefined ? {} : { signal }
}
