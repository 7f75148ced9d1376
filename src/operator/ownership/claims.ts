/** Before the election: which installation this process belongs to, and whether it may reconcile here (design, section 6). */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { Lease } from '../../kubernetes/lease.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import type { Context } from '../../store/context.ts'
import { findInstallation } from '../../store/leases/installation.ts'
import { INSTALLATION_ANNOTATION } from '../heartbeat-check.ts'
import { createOtherInstallations } from './other-installations.ts'
import type { Claims } from './ownership.ts'

export interface ClaimsOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'list'>
  readonly context: Pick<Context, 'database'>
  readonly takeOver: string | null
  /** Whether nothing is reconciled beside the Lease of another installation. */
  readonly yieldsToOthers: boolean
  readonly leaseNamespace: string
  readonly namespaces: readonly string[] | null
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface OwnClaims extends Claims {
  readonly takenOver: Set<string>
}

export interface ClaimsFinder {
  /** Resolves when the election may begin. Null: `signal` came first. */
  find(signal: AbortSignal): Promise<OwnClaims | null>
  /** Why the election does not begin, and what to do; null when it does, or when that is not known yet. */
  whyNot(): string | null
  /** Resolves when that is known, or cannot be known soon. */
  readonly isKnown: Promise<void>
}

const RETRY = { firstMs: 250, maxMs: 4_000 }
/** A Lease that is deleted lets the election begin within this time. */
const LOOK_MS = 2_000

export function createClaimsFinder(options: ClaimsOptions): ClaimsFinder {
  const { client, context, takeOver, yieldsToOthers, clock, random, log } = options
  const known = Promise.withResolvers<void>()
  let reason: string | null = null

  /** Null: `signal` came first. */
  async function retry<T>(work: () => Promise<T>, problem: string, signal: AbortSignal): Promise<T | null> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        return await work()
      } catch (error) {
        if (!signal.aborted) log.warn({ error }, problem)
        // The start of the process does not wait for a cluster that cannot be reached.
        known.resolve()
        await clock.sleep(backoffMs(failures, RETRY, random), signal)
      }
    }
    return null
  }

  async function find(signal: AbortSignal): Promise<OwnClaims | null> {
    const read = () => findInstallation(context.database)
    const installation = await retry(read, 'the id of the installation could not be read; it is tried again', signal)
    if (installation === null) return null
    const claims = { installation, takeOver, takenOver: new Set<string>() }
    const others = createOtherInstallations({ ...options, client, claims })
    while (yieldsToOthers && !signal.aborted) {
      const found = await retry(
        async () => ({ reason: await others.look(signal) }),
        'other installations could not be looked for; it is tried again',
        signal,
      )
      if (found === null) return null
      if (found.reason !== null && found.reason !== reason) log.error({ installation }, found.reason)
      if (found.reason === null && reason !== null) log.info({ installation }, 'no other installation is left')
      reason = found.reason
      known.resolve()
      if (reason === null) break
      await clock.sleep(LOOK_MS, signal)
    }
    known.resolve()
    return signal.aborted ? null : claims
  }

  return { find, whyNot: () => reason, isKnown: known.promise }
}

/** Returns a function that logs once that controllers of another installation hold our Lease: then ours never lead. */
export function createLeaseReporter({ installation, takeOver }: Claims, log: Log): (lease: Lease) => void {
  let reported: string | undefined
  return ({ metadata }) => {
    const owner = metadata.annotations?.[INSTALLATION_ANNOTATION]
    if (owner === undefined || owner === installation || owner === takeOver || owner === reported) return
    reported = owner
    log.error(
      { lease: `${metadata.namespace}/${metadata.name}`, owner, installation },
      'another installation holds the Lease of this one, so nothing is reconciled here: stop that one, or install each in a namespace of its own',
    )
  }
}
