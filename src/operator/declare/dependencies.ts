/** Which HeartbeatChecks depend on which, by the names in spec.dependsOn, each in its namespace. */

import { describeRing, findRing, reach } from '../../domain/dependencies.ts'
import { LIMITS } from '../../domain/limits.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { HeartbeatCheck } from '../heartbeat-check.ts'

export interface Dependents {
  /** The resource as it is now; undefined: it is gone. */
  note(key: string, object: HeartbeatCheck | undefined): void
  /** The keys of those that depend on the resource of this key, also over others, whether or not it is there. */
  leadingTo(key: string): Iterable<string>
}

const NONE: string[] = []

export function createDependents(): Dependents {
  const byTarget = new Map<string, Set<string>>()
  const targets = new Map<string, readonly string[]>()
  const dependentsOf = (key: string): Iterable<string> => byTarget.get(key) ?? NONE

  return {
    note(key, object) {
      for (const target of targets.get(key) ?? NONE) {
        const others = byTarget.get(target)!
        others.delete(key)
        if (others.size === 0) byTarget.delete(target)
      }
      const { metadata: { namespace = '' } = {}, spec: { dependsOn = NONE } = {} } = object ?? {}
      if (dependsOn.length === 0) targets.delete(key)
      else targets.set(key, [...new Set(dependsOn.map((name) => keyOf({ namespace, name })))])
      for (const target of targets.get(key) ?? NONE) {
        const others = byTarget.get(target)
        if (others === undefined) byTarget.set(target, new Set([key]))
        else others.add(key)
      }
    },
    leadingTo: (key) => reach(dependentsOf(key), dependentsOf).keys(),
  }
}

/** Whether it may matter to those that depend on it: they find its check by its name, and rings by its names. */
export function isRelinked(before: HeartbeatCheck | undefined, after: HeartbeatCheck | undefined): boolean {
  const [one, other] = [before, after].map(
    (object) => object && JSON.stringify([object.status?.checkId, object.spec.dependsOn]),
  )
  return one !== other
}

export interface Named {
  /** Null: the resource is in none. */
  readonly ring: readonly string[] | null
  /** Without those that lead back to the resource. */
  readonly names: readonly string[]
}

/** What the resource depends on, by the resources of its namespace. */
export function readNames(
  { metadata: { namespace = '', name }, spec: { dependsOn = NONE } }: HeartbeatCheck,
  get: (key: string) => HeartbeatCheck | undefined,
): Named {
  const edgesOf = (one: string) => get(keyOf({ namespace, name: one }))?.spec.dependsOn ?? NONE
  const ringOver = (first: readonly string[]) => findRing(name, first, edgesOf, LIMITS.reachedDependencies)
  const ring = ringOver(dependsOn)
  return { ring, names: ring === null ? dependsOn : dependsOn.filter((one) => ringOver([one]) === null) }
}

/** What became of the names of a resource that depends on some. */
export interface DependencyFindings {
  readonly ring: readonly string[] | null
  /** Names without a check. */
  readonly missing: readonly string[]
  /** Names whose checks, as they are stored, depend on that of the resource. */
  readonly ringed: readonly string[]
}

/** The condition DependenciesResolved. */
export function describeDependencies({ ring, missing, ringed }: DependencyFindings) {
  const faults = [
    ...(ring === null ? [] : [`a ring is left out: ${describeRing(ring)}; take a name out of spec.dependsOn`]),
    ...(ringed.length === 0 ? [] : [`not in effect yet, as their checks depend on this one: ${ringed.join(', ')}`]),
    ...(missing.length === 0 ? [] : [`no HeartbeatCheck of this namespace with a check: ${missing.join(', ')}`]),
  ]
  const type = 'DependenciesResolved'
  if (faults.length === 0)
    return { type, status: 'True', reason: 'Resolved', message: 'the check depends on those of all names' } as const
  const reason = ring === null && ringed.length === 0 ? 'NotFound' : 'Ring'
  return { type, status: 'False', reason, message: faults.join('; ') } as const
}
