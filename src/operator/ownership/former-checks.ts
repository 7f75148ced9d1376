/**
 * Checks of resources that another installation has taken over (design, section 6): their jobs report to the new owner, so ours would
 * alarm. An account with the right to write a status can name another owner in it, and a takeover is no use to a job that still has our URL. So a check
 * goes only when the published object proves the takeover: it is of this resource and holds another URL than ours. Else the check stays
 * armed and judged, and the object is read again later.
 */

import { retireCheck } from '../../checks/declare/retire-check.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import { type HeartbeatCheck, readHeartbeatCheck } from '../heartbeat-check.ts'
import { findPublishedUrls } from '../publish/publish.ts'

export interface FormerChecksOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly context: Context
  readonly cluster: string
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface FormerChecks {
  /** Retires the check that we had for a resource of this installation, if its takeover is proved. Resolves with the ms until the next look; null: none is needed. */
  settle(key: string, object: HeartbeatCheck, installation: string): Promise<number | null>
  /** The resource is gone, or ours. */
  forget(key: string): void
}

/** Each status of its new owner may prove it, and such a status may come any time. */
const FIRST_LOOK_MS = 1_000
const LONGEST_MS = 600_000
/** With more than 10,000 resources the longest wait grows, so that there are fewer than 20 reads in a second. */
const MS_FOR_EACH = 60

interface Look {
  readonly at: number
  readonly count: number
}

export function createFormerChecks(options: FormerChecksOptions): FormerChecks {
  const { client, context, cluster, pingUrl, clock, random, log } = options
  const looks = new Map<string, Look>()

  /** By the target of the specification, which the writer of a status cannot choose. */
  async function isTakeoverProved(object: HeartbeatCheck, ourUrl: string): Promise<boolean> {
    const read = readHeartbeatCheck(object)
    // A resource that publishes nothing proves nothing.
    if (!read.ok || read.declaration.publish === null) return false
    const urls = await findPublishedUrls(client, object, read.declaration.publish)
    return urls.length > 0 && !urls.includes(ourUrl)
  }

  return {
    async settle(key, object, installation) {
      const last = looks.get(key)
      const waitMs = last === undefined ? 0 : last.at + FIRST_LOOK_MS - clock.now()
      if (waitMs > 0) return waitMs
      const resource = { cluster, ...splitKey(key) }
      const { checkId } = object.status ?? {}
      const check = checkId === undefined ? null : await findDeclaredCheck(context.database, resource)
      // With the id of our check, this database is an earlier state of the owner's, or a copy, with an id of its own.
      if (check === null || check.id === checkId) {
        looks.delete(key)
        return null
      }
      if (await isTakeoverProved(object, `${pingUrl()}/ping/${check.publicId}`)) {
        await retireCheck(context, resource, 'Delete')
        looks.delete(key)
        log.warn(
          { resource, installation },
          'another installation has taken over a HeartbeatCheck, and its ping URL is published: the check here is removed',
        )
        return null
      }
      const count = (last?.count ?? 0) + 1
      looks.set(key, { at: clock.now(), count })
      const maxMs = Math.max(LONGEST_MS, looks.size * MS_FOR_EACH)
      return backoffMs(count - 1, { firstMs: FIRST_LOOK_MS, maxMs }, random)
    },
    forget: (key) => void looks.delete(key),
  }
}
