/** A process reports every few seconds that it works, so that users see the replicas and the controller's leader (design, section 8). */

import { hostname } from 'node:os'
import { newId } from '../runtime/ids.ts'
import { VERSION } from '../runtime/version.ts'
import type { Context } from '../store/context.ts'
import { deleteReplica, reportReplica } from '../store/leases/replicas.ts'

/** A controller is replaced as leader no sooner than 15 s after its last renewal: by then the report of the last leader is too old. */
export const REPORT_MS = 5_000
/** A process that did not stop cleanly is shown as missing for so long. */
const FORGET_SECONDS = 3_600
/** POSIX, HOST_NAME_MAX and the length of a domain name. */
const MAX_HOST_LENGTH = 255

export interface ReporterOptions extends Context {
  readonly role: string
  /** The cluster that this process reconciles or would reconcile; null without a controller. */
  readonly cluster: string | null
  readonly isLeading: () => boolean
  readonly host?: string
}

export function createReporter(options: ReporterOptions) {
  const { database, clock, role, cluster, isLeading, host = hostname() } = options
  const id = newId(clock.now())
  const shared = { id, host: host.slice(0, MAX_HOST_LENGTH), role, version: VERSION, cluster }
  return {
    /** The run of a loop. */
    async run() {
      await reportReplica(database, { ...shared, isLeading: isLeading() }, FORGET_SECONDS)
      return 'done' as const
    },
    /** For a clean stop: the process is not missing. */
    stop: () => deleteReplica(database, id),
  }
}
