/**
 * Takes our finalizer off every HeartbeatCheck, for the day when the operator goes for good (`helm uninstall`): what stays in
 * the cluster can then be deleted without it, and no namespace hangs in Terminating. Checks and their URLs stay in the
 * database; an operator that comes back puts the finalizer back.
 */

import { ApiError, hasReason, type KubernetesClient, TransportError } from '../kubernetes/client.ts'
import { type KubernetesObject, keyOf } from '../kubernetes/objects.ts'
import type { Clock } from '../runtime/clock.ts'
import { removeFinalizer } from './finalize.ts'
import { FINALIZER, HEARTBEAT_CHECKS, type HeartbeatCheck, LEASE_NAME } from './heartbeat-check.ts'

export interface ReleaseOptions {
  readonly client: KubernetesClient
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  /** Where the Lease of the operator is. */
  readonly leaseNamespace: string
  readonly clock: Clock
  /** Called with one line for people. */
  readonly say: (line: string) => void
  /** Ends it with ReleaseError. */
  readonly signal?: AbortSignal
}

/** What is left could not be released; the message says why and what to do. */
export class ReleaseError extends Error {
  override readonly name = 'ReleaseError'
}

interface Lease extends KubernetesObject {
  readonly spec?: { readonly holderIdentity?: string; readonly leaseDurationSeconds?: number }
}

const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }
/** Longer than a leader takes to stop, and than the lease of one that was killed takes to lapse. */
export const LEADER_PATIENCE_MS = 60_000
const LEASE_POLL_MS = 1_000
const LEASE_MS = 15_000
const PAGE = 200
/** The first finds all of them; what is changed or comes meanwhile is left to the next. */
const MOST_PASSES = 10
const PASS_MS = 1_000
const MOST_NAMED = 3

/** Resolves when a whole pass has found no finalizer of ours. Throws ReleaseError when it cannot come to that. */
export async function releaseFinalizers(options: ReleaseOptions): Promise<void> {
  const { clock, say, signal } = options
  try {
    await waitUntilNobodyLeads(options)
    let released = 0
    let failures: readonly Failure[] = []
    for (let passes = 1; passes <= MOST_PASSES; passes += 1) {
      const pass = await releaseOnce(options)
      if (pass === 'no such resource') return say('this cluster knows no HeartbeatChecks: nothing to do')
      released += pass.released
      failures = pass.failures
      if (pass.found === 0) return say(describeDone(released))
      if (passes < MOST_PASSES) await clock.sleep(PASS_MS, signal)
    }
    throw new ReleaseError(describeLeft(failures))
  } catch (error) {
    throw explain(error, signal)
  }
}

/** A leader would put back what is taken off. By the rule of candidates: the lease is free, or did not change for its duration. */
async function waitUntilNobodyLeads({ client, leaseNamespace, clock, say, signal }: ReleaseOptions): Promise<void> {
  const giveUpAt = clock.now() + LEADER_PATIENCE_MS
  let seen = { text: '', at: 0 }
  for (;;) {
    const lease = await findLease(client, leaseNamespace, signal)
    const { holderIdentity: holder, leaseDurationSeconds } = lease?.spec ?? {}
    if (!holder) return
    if (seen.text === '') say(`waiting for ${holder} to give back the Lease ${leaseNamespace}/${LEASE_NAME} ...`)
    const text = JSON.stringify(lease?.spec)
    if (seen.text !== text) seen = { text, at: clock.now() }
    const durationMs = leaseDurationSeconds === undefined ? LEASE_MS : leaseDurationSeconds * 1_000
    if (clock.now() - seen.at >= durationMs) return
    if (clock.now() >= giveUpAt)
      throw new ReleaseError(
        `${holder} still leads by the Lease ${leaseNamespace}/${LEASE_NAME}, and would put the finalizers back: stop the controllers, then run this again`,
      )
    await clock.sleep(LEASE_POLL_MS, signal)
  }
}

/** Null: there is none. */
async function findLease(client: KubernetesClient, namespace: string, signal?: AbortSignal): Promise<Lease | null> {
  try {
    return await client.get<Lease>(LEASES, { namespace, name: LEASE_NAME }, limitsOf(signal))
  } catch (error) {
    if (hasReason(error, 'NotFound')) return null
    throw error
  }
}

interface Failure {
  readonly key: string
  readonly message: string
}

interface Pass {
  /** How many had our finalizer, or at least one when not all were looked at. */
  readonly found: number
  readonly released: number
  readonly failures: readonly Failure[]
}

async function releaseOnce(options: ReleaseOptions): Promise<Pass | 'no such resource'> {
  const { client } = options
  let [found, released] = [0, 0]
  const failures: Failure[] = []
  try {
    for await (const items of listPages(options)) {
      const held = items.filter(({ metadata }) => metadata.finalizers?.includes(FINALIZER))
      found += held.length
      const results = await Promise.all(held.map((object) => release(client, object)))
      const failed = results.filter((result) => result !== 'released')
      released += results.length - failed.length
      failures.push(...failed)
    }
  } catch (error) {
    if (hasReason(error, 'NotFound')) return 'no such resource'
    // The list grew too old between two pages: the next pass begins with a new one.
    if (!(error instanceof ApiError && error.status === 410)) throw error
    found += 1
  }
  return { found, released, failures }
}

async function* listPages({ client, namespaces, signal }: ReleaseOptions): AsyncGenerator<HeartbeatCheck[]> {
  for (const namespace of namespaces ?? [undefined]) {
    const where = { ...(namespace === undefined ? {} : { namespace }), ...limitsOf(signal), limit: PAGE }
    let page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, where)
    yield page.items
    while (page.continueToken !== null) {
      page = await client.list<HeartbeatCheck>(HEARTBEAT_CHECKS, { ...where, continueToken: page.continueToken })
      yield page.items
    }
  }
}

/** What has changed or gone since it was listed fails too; the next pass looks at it again. */
async function release(client: KubernetesClient, object: HeartbeatCheck): Promise<'released' | Failure> {
  try {
    await removeFinalizer(client, object)
    return 'released'
  } catch (error) {
    // Without the right there is no point in going on.
    const isHopeless = error instanceof ApiError && error.status === 403
    if (isHopeless || !(error instanceof ApiError || error instanceof TransportError)) throw error
    return { key: keyOf(object.metadata), message: error.message }
  }
}

function describeDone(released: number): string {
  if (released === 0) return `no HeartbeatCheck holds the finalizer ${FINALIZER}: nothing to do`
  const what = released === 1 ? '1 HeartbeatCheck' : `${released} HeartbeatChecks`
  return `the finalizer ${FINALIZER} is off ${what}; the checks themselves stay in the database`
}

function describeLeft(failures: readonly Failure[]): string {
  if (failures.length === 0)
    return `the finalizer ${FINALIZER} comes back as often as it is taken off: another controller runs, stop it and run this again`
  const named = failures.slice(0, MOST_NAMED).map(({ key, message }) => `${key} (${message})`)
  const more = failures.length > MOST_NAMED ? ` and ${failures.length - MOST_NAMED} more` : ''
  return `the finalizer ${FINALIZER} could not be taken off ${named.join(', ')}${more}: mend that, then run this again`
}

function explain(error: unknown, signal: AbortSignal | undefined): unknown {
  if (error instanceof ReleaseError) return error
  if (signal?.aborted) return new ReleaseError('stopped before the end: run this again')
  if (error instanceof ApiError && error.status === 403)
    return new ReleaseError(
      `a right is missing (get of the Lease ${LEASE_NAME}; list and patch of HeartbeatChecks): ${error.message}`,
    )
  if (error instanceof ApiError || error instanceof TransportError)
    return new ReleaseError(`the API server does not do it: ${error.message}`)
  return error
}

function limitsOf(signal: AbortSignal | undefined) {
  return signal === undefined ? {} : { signal }
}
