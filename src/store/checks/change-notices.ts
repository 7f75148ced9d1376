/**
 * Notices about checks that changed, for those who look at them: sent in the transaction of each flip
 * (../history/new-flips.ts), also of the first one of a new check, and of each change or removal (../audit/entries.ts).
 * The notice of a flip of a declared check names its resource, which saves the operator a look-up.
 */

import { isUuid } from '../../domain/ids.ts'
import { createListener, type Listener, type ListenerOptions } from '../postgres/listener.ts'
import type { Resource } from './checks.ts'

/**
 * The channel of LISTEN and NOTIFY. The payload is JSON: the ids of organization and check, then the names of a
 * resource.
 */
export const CHANGE_CHANNEL = 'heartbeat_changes'

type Options = Omit<ListenerOptions, 'name' | 'channel' | 'onNotice'>

export interface ChangeListenerOptions extends Options {
  readonly onChange: (organizationId: string, checkId: string) => void
}

export function listenForChanges({ onChange, ...options }: ChangeListenerOptions): Listener {
  return createListener({
    ...options,
    name: 'changes',
    channel: CHANGE_CHANNEL,
    onNotice(payload) {
      const notice = readNotice(payload)
      if (notice !== null) onChange(notice.organizationId, notice.checkId)
    },
  })
}

export interface FlipListenerOptions extends Options {
  /** Flips of other clusters are ignored. */
  readonly cluster: string
  readonly onFlip: (resource: Resource) => void
}

/** Listens for the flips of declared checks. */
export function listenForFlips({ cluster, onFlip, ...options }: FlipListenerOptions): Listener {
  return createListener({
    ...options,
    name: 'flips',
    channel: CHANGE_CHANNEL,
    onNotice(payload) {
      const resource = readNotice(payload)?.resource
      if (resource?.cluster === cluster) onFlip(resource)
    },
  })
}

interface Notice {
  readonly organizationId: string
  readonly checkId: string
  readonly resource: Resource | null
}

/** Null for a notice that is not ours. */
function readNotice(payload: string): Notice | null {
  try {
    const parts: unknown = JSON.parse(payload)
    if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) return null
    const [organizationId = '', checkId = '', cluster = '', namespace = '', name = ''] = parts as string[]
    if ((parts.length !== 2 && parts.length !== 5) || !isUuid(organizationId) || !isUuid(checkId)) return null
    return { organizationId, checkId, resource: parts.length === 2 ? null : { cluster, namespace, name } }
  } catch {
    return null
  }
}
