/**
 * Resources of other installations (design, section 6). They are neither reconciled nor finalized: their finalizer belongs to their
 * owner. Each gets the conditions Ready and Stalled once per start of this process, and one Event; when its owner overwrites
 * the conditions, they stay as the owner wrote them.
 */

import { isDeepStrictEqual } from 'node:util'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import type { Log } from '../../runtime/log.ts'
import type { Context } from '../../store/context.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, STATUS_FIELD_MANAGER } from '../heartbeat-check.ts'
import { regarding } from '../status/report.ts'
import { addForeign } from '../status/status.ts'
import type { FormerChecks } from './former-checks.ts'
import { type Claims, describeForeign } from './ownership.ts'

/** What one process remembers over its terms as leader. */
export interface ForeignMemory {
  /** The uids of the resources that have their report, by key. */
  readonly reported: Map<string, string>
  /** The installations that are in the log. */
  readonly logged: Set<string>
}

export interface ForeignOptions {
  readonly client: Pick<KubernetesClient, 'mergePatch'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Pick<Context, 'clock'>
  readonly formerChecks: FormerChecks
  readonly recorder: Pick<Recorder, 'record'>
  readonly claims: Claims
  readonly memory: ForeignMemory
  readonly log: Log
  /** Called with the number of foreign resources when it has changed. */
  readonly onCount: (count: number) => void
}

export interface ForeignResources {
  /** Reports a resource of this installation, and settles the check that we had for it. Throws errors that a retry may resolve. */
  leave(key: string, object: HeartbeatCheck, installation: string): Promise<ReconcileResult>
  /** The resource is gone, or ours. */
  forget(key: string, isGone: boolean): void
}

export function createForeignResources(options: ForeignOptions): ForeignResources {
  const { client, cache, context, formerChecks, recorder, claims, memory, log, onCount } = options
  const foreign = new Set<string>()

  async function report(key: string, object: HeartbeatCheck, installation: string): Promise<void> {
    const { uid } = object.metadata
    if (memory.reported.get(key) === uid) return
    const message = describeForeign(installation, claims)
    await writeConditions(object, message)
    memory.reported.set(key, uid)
    const id = `ManagedElsewhere ${installation}`
    const event = { type: 'Warning', reason: 'ManagedElsewhere', action: 'Reconcile', note: message, id } as const
    recorder.record(regarding(object), event)
  }

  async function writeConditions(object: HeartbeatCheck, message: string): Promise<void> {
    const { namespace, name, resourceVersion } = object.metadata
    const conditions = addForeign(object, message, context.clock.now())
    // By an earlier start, or another replica.
    if (isDeepStrictEqual(conditions, object.status?.conditions)) return
    // The version is a precondition: the owner may be writing the other conditions.
    const patch = { metadata: { resourceVersion }, status: { conditions } }
    const options = { subresource: 'status', fieldManager: STATUS_FIELD_MANAGER } as const
    try {
      cache.put(await client.mergePatch(HEARTBEAT_CHECKS, { namespace: namespace!, name }, patch, options))
    } catch (error) {
      if (!hasStatus(error, 404)) throw error
    }
  }

  return {
    async leave(key, object, installation) {
      if (!foreign.has(key)) onCount(foreign.add(key).size)
      if (!memory.logged.has(installation)) {
        memory.logged.add(installation)
        log.error(
          { installation, ours: claims.installation, resource: splitKey(key) },
          'this cluster has HeartbeatChecks of another installation, which are not reconciled: heartbeat_installation_conflicts counts them, their status says what to do',
        )
      }
      const afterMs = await formerChecks.settle(key, object, installation)
      await report(key, object, installation)
      return afterMs === null ? { kind: 'done' } : { kind: 'again', afterMs, priority: 'background' }
    },
    forget(key, isGone) {
      formerChecks.forget(key)
      if (isGone) memory.reported.delete(key)
      if (foreign.delete(key)) onCount(foreign.size)
    },
  }
}
