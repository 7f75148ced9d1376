/** The last full sync of each resource, for one term as leader: it decides whether the next reconcile is a full one too. */

import { hasFinalizer } from '../deletion/finalize.ts'
import { ADOPT_CHECK_ANNOTATION, type HeartbeatCheck, RECONCILE_ANNOTATION } from '../heartbeat-check.ts'
import { creatorOf } from '../opt-in/plan.ts'
import type { SyncFindings } from '../status/report.ts'

export interface LastSync {
  readonly findings: SyncFindings
  /** When it is repeated, by this process's clock. */
  readonly nextAt: number
}

export interface Syncs {
  /** The last full sync, as long as it is enough: the resource is the same, its time has not come, and nothing has called for another. */
  find(key: string, object: HeartbeatCheck): LastSync | null
  /** A full sync begins: what has called for it until now is handled by it. */
  begin(key: string): void
  /** A full sync of this object has succeeded. */
  keep(key: string, object: HeartbeatCheck, sync: LastSync): void
  /** The next reconcile is a full one, also if a full sync is in progress now. */
  callFor(key: string): void
  /** The resource is gone. */
  forget(key: string): void
}

export function createSyncs(now: () => number): Syncs {
  const synced = new Map<string, LastSync & { readonly identity: string }>()
  const calledFor = new Set<string>()

  return {
    find(key, object) {
      const last = synced.get(key)
      if (last === undefined || calledFor.has(key) || now() >= last.nextAt) return null
      return last.identity === identityOf(object) ? last : null
    },
    begin(key) {
      synced.delete(key)
      calledFor.delete(key)
    },
    keep: (key, object, sync) => void synced.set(key, { ...sync, identity: identityOf(object) }),
    callFor: (key) => void calledFor.add(key),
    forget(key) {
      synced.delete(key)
      calledFor.delete(key)
    },
  }
}

/** What of a resource a full sync depends on. */
function identityOf(object: HeartbeatCheck): string {
  const { uid, generation = 0, annotations, labels } = object.metadata
  const texts = [ADOPT_CHECK_ANNOTATION, RECONCILE_ANNOTATION].map((name) => annotations?.[name] ?? null)
  return JSON.stringify([uid, generation, ...texts, labels, creatorOf(object), hasFinalizer(object)])
}
