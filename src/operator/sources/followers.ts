/** Which HeartbeatChecks follow which source: several may follow one. */

import { keyOf } from '../../kubernetes/objects.ts'
import type { HeartbeatCheck } from '../heartbeat-check.ts'

export interface Followers {
  /** The resource as it is now; undefined: it is gone. */
  note(key: string, object: HeartbeatCheck | undefined): void
  /** The keys of the HeartbeatChecks that follow the source of this key, also those of another installation. */
  of(source: string): Iterable<string>
  /** The keys of all that follow one. */
  all(): Iterable<string>
}

const NONE: readonly string[] = []

export function createFollowers(): Followers {
  const bySource = new Map<string, Set<string>>()
  const sources = new Map<string, string>()

  function remove(key: string): void {
    const source = sources.get(key)
    if (source === undefined) return
    sources.delete(key)
    const others = bySource.get(source)!
    others.delete(key)
    if (others.size === 0) bySource.delete(source)
  }

  return {
    note(key, object) {
      const source = object === undefined ? null : sourceKeyOf(object)
      if (source !== null && sources.get(key) === source) return
      // The source of a resource never changes, but a new one of its name may have another.
      remove(key)
      if (source === null) return
      sources.set(key, source)
      const others = bySource.get(source)
      if (others === undefined) bySource.set(source, new Set([key]))
      else others.add(key)
    },
    of: (source) => bySource.get(source) ?? NONE,
    all: () => sources.keys(),
  }
}

/** The key of the source of the resource, in its own namespace; null: it follows none. */
export function sourceKeyOf({ metadata: { namespace = '' }, spec }: HeartbeatCheck): string | null {
  const { sourceRef } = spec
  return sourceRef === undefined ? null : keyOf({ namespace, name: sourceRef.name })
}
