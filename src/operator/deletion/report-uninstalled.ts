/** What the status of a HeartbeatCheck says once its operator is uninstalled: nothing keeps it true any more. */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError, hasStatus, TransportError } from '../../kubernetes/errors.ts'
import { type Condition, toTime } from '../../kubernetes/objects.ts'
import type { Clock } from '../../runtime/clock.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, STATUS_FIELD_MANAGER } from '../heartbeat-check.ts'

const MESSAGE =
  'the operator was uninstalled: the state and all else in this status are of that time. Install it again, or delete this HeartbeatCheck'

/**
 * Returns a function that sets the condition Ready to Unknown. It is no condition of an uninstallation: without the right, or when the resource is
 * changed meanwhile, the status stays as it is.
 */
export function createUninstalledReporter(client: Pick<KubernetesClient, 'mergePatch'>, clock: Pick<Clock, 'now'>) {
  let isForbidden = false
  return async function report({ metadata, status }: HeartbeatCheck): Promise<void> {
    const { conditions = [] } = status ?? {}
    const { namespace, name, resourceVersion, deletionTimestamp } = metadata
    const before = conditions.find((condition) => condition.type === 'Ready')
    if (isForbidden || before === undefined || deletionTimestamp !== undefined) return
    const ready: Condition = {
      ...before,
      status: 'Unknown',
      reason: 'Uninstalled',
      message: MESSAGE,
      lastTransitionTime: before.status === 'Unknown' ? before.lastTransitionTime : toTime(clock.now()),
    }
    const all = conditions.map((condition) => (condition === before ? ready : condition))
    try {
      const patch = { metadata: { resourceVersion }, status: { conditions: all } }
      const writing = { subresource: 'status', fieldManager: STATUS_FIELD_MANAGER } as const
      await client.mergePatch(HEARTBEAT_CHECKS, { namespace: namespace!, name }, patch, writing)
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof TransportError)) throw error
      isForbidden ||= hasStatus(error, 403)
    }
  }
}
