/**
 * Before the election: which installation this process belongs to, and whether it may reconcile here (design, section
 * 6). `npm start` begins nothing beside the Lease of another installation: that one may be in production. The resources
 * of an installation are its own also while it is stopped, so its Lease counts whether it is held, given back or
 * expired, and also where our own would be.
 */

import { getOrNull, type KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { LEASES, type Lease } from '../../kubernetes/lease.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { INSTALLATION_ANNOTATION, LEASE_NAME } from '../heartbeat-check.ts'
import type { Service } from '../service.ts'
import type { Claims } from './ownership.ts'

/** Of one process, which may lead several times. */
export interface OwnClaims extends Claims {
  readonly takenOver: Set<string>
  /** By key: the uids of resources of other installations that have their report. */
  readonly reported: Map<string, string>
}

export interface LookOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'list'>
  /** Where our own Lease is. */
  readonly leaseNamespace: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
}

export interface ClaimOptions extends LookOptions {
  readonly service: Pick<Service, 'findInstallation'>
  readonly takeOver: string | null
  /** Whether nothing is reconciled beside the Lease of another installation. */
  readonly yieldsToOthers: boolean
  readonly clock: Clock
  readonly log: Log
  /** Called after each look with why the election does not begin, and what to do; null: it does, or is not known. */
  readonly onLook: (whyNot: string | null) => void
}

/** A Lease that is deleted lets the election begin within this time, and so does a database that responds again. */
const LOOK_MS = 2_000
/** Where the manifests install. */
const USUAL_NAMESPACE = 'heartbeat-operator'
/** Without the right to list Leases, each namespace is a request. */
const MAX_NAMESPACES = 20
/** A cluster has one Lease for each installation. */
const MAX_LEASES = 500

/** Resolves when the election may begin. Null: `signal` came first. */
export async function findClaims(options: ClaimOptions, signal: AbortSignal): Promise<OwnClaims | null> {
  const { service, takeOver, yieldsToOthers, clock, log, onLook } = options
  const memory = { takenOver: new Set<string>(), reported: new Map<string, string>() }
  for (let whyNot: string | null = null; !signal.aborted; ) {
    try {
      const claims = { ...memory, takeOver, installation: await service.findInstallation() }
      const found = yieldsToOthers ? await findOther(options, claims, signal) : null
      if (found !== null && found !== whyNot) log.error({ installation: claims.installation }, found)
      whyNot = found
      onLook(whyNot)
      if (whyNot === null) return claims
    } catch (error) {
      if (!signal.aborted)
        log.warn({ error }, 'the installation and others in the cluster could not be identified; it is tried again')
      onLook(whyNot)
    }
    await clock.sleep(LOOK_MS, signal)
  }
  return null
}

/** Why nothing is reconciled beside another installation, and what to do; null: there is none. */
export async function findOther(
  options: LookOptions,
  claims: Pick<Claims, 'installation' | 'takeOver'>,
  signal: AbortSignal,
): Promise<string | null> {
  const lease = (await listLeases(options, signal)).find((one) => otherOwnerOf(one, claims) !== null)
  if (lease === undefined) return null
  const { namespace, name } = lease.metadata
  const owner = otherOwnerOf(lease, claims)
  return (
    `the Lease ${namespace}/${name} belongs to the installation ${owner}: HeartbeatChecks are not reconciled here. ` +
    `If that one is gone for good, delete the Lease (kubectl delete lease -n ${namespace} ${name}), ` +
    `or take its resources over with TAKE_OVER=${owner}. ` +
    'To run beside it, set KUBERNETES=required; without a cluster, KUBERNETES=off'
  )
}

function otherOwnerOf({ metadata }: Lease, claims: Pick<Claims, 'installation' | 'takeOver'>): string | null {
  const owner = metadata.annotations?.[INSTALLATION_ANNOTATION] ?? null
  return owner === claims.installation || owner === claims.takeOver ? null : owner
}

async function listLeases(options: LookOptions, signal: AbortSignal): Promise<readonly Lease[]> {
  const { client, leaseNamespace, namespaces } = options
  const fieldSelector = `metadata.name=${LEASE_NAME}`
  const places = new Set([leaseNamespace, USUAL_NAMESPACE, ...(namespaces ?? [])])
  const read = (namespace: string) => getOrNull<Lease>(client, LEASES, { namespace, name: LEASE_NAME }, { signal })
  const found = await unlessForbidden(client.list<Lease>(LEASES, { fieldSelector, limit: MAX_LEASES, signal }))
  if (found !== null) return found.items
  const reads = [...places].slice(0, MAX_NAMESPACES).map((namespace) => unlessForbidden(read(namespace)))
  return (await Promise.all(reads)).filter((lease) => lease !== null)
}

async function unlessForbidden<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (hasStatus(error, 403)) return null
    throw error
  }
}

/** Returns a function that logs once that controllers of another installation hold our Lease: then ours never lead. */
export function createLeaseReporter(claims: Claims, log: Log): (lease: Lease) => void {
  let reported: string | null = null
  return (lease) => {
    const owner = otherOwnerOf(lease, claims)
    if (owner === null || owner === reported) return
    reported = owner
    log.error(
      { lease: keyOf(lease.metadata), owner, installation: claims.installation },
      'another installation holds the Lease of this one, so nothing is reconciled here: stop that one, or install each in a namespace of its own',
    )
  }
}
