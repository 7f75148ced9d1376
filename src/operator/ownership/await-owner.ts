/**
 * A resource that has our finalizer and names no installation has lost its status, by hand or by a restore without it. It
 * may be another installation's, which has a check for it, and writes its name again as soon as it sees the resource. So an
 * installation without a check for the resource leaves it alone for a moment: longer than the other one takes to elect a leader.
 */

import { splitKey } from '../../kubernetes/objects.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import { FINALIZER, type HeartbeatCheck } from '../heartbeat-check.ts'

export interface OwnerWait {
  /** For how many ms the resource is left to its owner; 0: it is ours, or may become ours. */
  leftMs(key: string, object: HeartbeatCheck): Promise<number>
  forget(key: string): void
}

export interface OwnerWaitOptions {
  readonly context: Pick<Context, 'database'>
  readonly cluster: string
  readonly now: () => number
}

export const OWNER_WAIT_MS = 20_000

export function createOwnerWait({ context, cluster, now }: OwnerWaitOptions): OwnerWait {
  const since = new Map<string, number>()

  async function mayBeOfAnother(key: string, { metadata, status }: HeartbeatCheck): Promise<boolean> {
    if (status?.installation !== undefined || metadata.finalizers?.includes(FINALIZER) !== true) return false
    return (await findDeclaredCheck(context.database, { cluster, ...splitKey(key) })) === null
  }

  return {
    async leftMs(key, object) {
      if (!(await mayBeOfAnother(key, object))) {
        since.delete(key)
        return 0
      }
      const seenAt = since.get(key) ?? now()
      since.set(key, seenAt)
      return Math.max(0, seenAt + OWNER_WAIT_MS - now())
    },
    forget: (key) => void since.delete(key),
  }
}
