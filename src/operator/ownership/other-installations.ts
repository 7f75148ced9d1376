/**
 * Whether another installation reconciles this cluster already (design, section 6). `npm start` finds clusters by itself, so it begins
 * nothing beside the Lease of another installation: that one may be in production.
 *
 * The resources of an installation are its own also while it is stopped, so its Lease counts whether it is held, given back or expired,
 * and also where our own would be.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { LEASES, type Lease, readLease } from '../../kubernetes/lease.ts'
import { INSTALLATION_ANNOTATION, LEASE_NAME } from '../heartbeat-check.ts'
import type { Claims } from './ownership.ts'

export interface OtherInstallationsOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'list'>
  readonly claims: Pick<Claims, 'installation' | 'takeOver'>
  /** Where our own Lease is. */
  readonly leaseNamespace: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
}

export interface OtherInstallations {
  /** Null: no other one was found. Else why nothing is reconciled, and what to do. Throws while the API server cannot be asked. */
  look(signal: AbortSignal): Promise<string | null>
}

/** Where the manifests install. */
const USUAL_NAMESPACE = 'heartbeat-operator'
/** Without the right to list Leases, each namespace is a request. */
const MAX_NAMESPACES = 20
/** A cluster has one Lease for each installation. */
const MAX_LEASES = 500

export function createOtherInstallations(options: OtherInstallationsOptions): OtherInstallations {
  const { client, claims, leaseNamespace, namespaces } = options

  async function listLeases(signal: AbortSignal): Promise<readonly Lease[]> {
    try {
      const fieldSelector = `metadata.name=${LEASE_NAME}`
      return (await client.list<Lease>(LEASES, { fieldSelector, limit: MAX_LEASES, signal })).items
    } catch (error) {
      if (!isForbidden(error)) throw error
    }
    const places = new Set([leaseNamespace, USUAL_NAMESPACE, ...(namespaces ?? [])])
    const read = [...places].slice(0, MAX_NAMESPACES).map((namespace) => readIfAllowed(namespace, signal))
    return (await Promise.all(read)).filter((lease) => lease !== null)
  }

  async function readIfAllowed(namespace: string, signal: AbortSignal): Promise<Lease | null> {
    try {
      return await readLease(client, { namespace, name: LEASE_NAME }, { signal })
    } catch (error) {
      if (isForbidden(error)) return null
      throw error
    }
  }

  function isOfOthers(lease: Lease): boolean {
    const owner = lease.metadata.annotations?.[INSTALLATION_ANNOTATION]
    if (owner !== undefined) return owner !== claims.installation && owner !== claims.takeOver
    // A version before the annotation holds it. In our place it is the version that we replace.
    return lease.metadata.namespace !== leaseNamespace && Boolean(lease.spec?.holderIdentity)
  }

  return {
    async look(signal) {
      const other = (await listLeases(signal)).find(isOfOthers)
      return other === undefined ? null : explain(other)
    },
  }
}

function explain({ metadata }: Lease): string {
  const owner = metadata.annotations?.[INSTALLATION_ANNOTATION]
  const lease = `the Lease ${metadata.namespace}/${metadata.name} belongs to`
  const [who, takeOver] =
    owner === undefined
      ? ['an installation of an older version', '']
      : [`the installation ${owner}`, `, or take its resources over with TAKE_OVER=${owner}`]
  return (
    `${lease} ${who}: HeartbeatChecks are not reconciled here. ` +
    `If that one is gone for good, delete the Lease (kubectl delete lease -n ${metadata.namespace} ${metadata.name})${takeOver}. ` +
    'To run beside it, set KUBERNETES=required; without a cluster, KUBERNETES=off'
  )
}

function isForbidden(error: unknown): boolean {
  return hasStatus(error, 403)
}
