/**
 * Whether the rights are there that only reasons need: to list Events, and to get logs of pods. Without them runs are recorded and missed as they
 * are, so nothing is stalled; the status says what is missing.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { ApiError } from '../../kubernetes/errors.ts'
import type { ResourceType } from '../../kubernetes/objects.ts'

export interface ReasonRights {
  /** As `list events in the namespace payments`. */
  missing(namespace: string): readonly ReasonRight[]
  /** Finds out what is missing. One or two small requests for each watched namespace, one after the other. */
  probe(signal: AbortSignal): Promise<void>
}

export interface ReasonRight {
  readonly right: string
  /** What comes of it, in words. */
  readonly effect: string
}

export interface ReasonRightsOptions {
  readonly client: Pick<KubernetesClient, 'list' | 'raw'>
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  /** Whether logs are read. */
  readonly areLogsRead: boolean
}

const EVENTS: ResourceType = { group: '', version: 'v1', plural: 'events' }
const NONE: readonly ReasonRight[] = []
/** Any namespace, for a right to all of them. */
const SOME_NAMESPACE = 'default'
/** The right is looked at before the pod: none has this name. */
const NO_POD = 'heartbeat-operator-looks-whether-it-may-read-logs'

export function createReasonRights({ client, namespaces, areLogsRead }: ReasonRightsOptions): ReasonRights {
  const known = new Map<string | undefined, readonly ReasonRight[]>()

  /** Null: not known, as while the API server is away. */
  async function isForbidden(request: Promise<unknown>): Promise<boolean | null> {
    try {
      await request
      return false
    } catch (error) {
      const status = error instanceof ApiError ? error.status : null
      // Of the pod that does not exist.
      return status === 403 || status === 404 ? status === 403 : null
    }
  }

  async function look(namespace: string | undefined, signal: AbortSignal): Promise<readonly ReasonRight[] | null> {
    const where = namespace === undefined ? '' : ` in the namespace ${namespace}`
    const events = client.list(EVENTS, { ...(namespace === undefined ? {} : { namespace }), limit: 1, signal })
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace ?? SOME_NAMESPACE)}/pods/${NO_POD}/log`
    const areEventsForbidden = await isForbidden(events)
    const areLogsForbidden = areLogsRead ? await isForbidden(client.raw('GET', path, undefined, { signal })) : false
    if (areEventsForbidden === null || areLogsForbidden === null) return null
    return [
      ...(areEventsForbidden
        ? [{ right: `list events${where}`, effect: 'why a run does not start is not always known' }]
        : []),
      ...(areLogsForbidden
        ? [{ right: `get pods/log${where}`, effect: 'failures are recorded without their log' }]
        : []),
    ]
  }

  return {
    missing: (namespace) => known.get(namespaces === null ? undefined : namespace) ?? NONE,
    async probe(signal) {
      for (const namespace of namespaces ?? [undefined]) {
        if (signal.aborted) return
        const found = await look(namespace, signal)
        if (found !== null) known.set(namespace, found)
      }
    },
  }
}
