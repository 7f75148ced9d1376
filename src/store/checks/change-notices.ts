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

export interface Notice {
  readonly organizationId: string
  readonly checkId: string
  /** Of a flip of a declared check. */
  readonly resource: Resource | null
}

export type NoticeListenerOptions = Omit<ListenerOptions, 'channel' | 'onNotice'> & {
  readonly onNotice: (notice: Notice) => void
}

export function listenForNotices({ onNotice, ...options }: NoticeListenerOptions): Listener {
  return createListener({
    ...options,
    channel: CHANGE_CHANNEL,
    onNotice(payload) {
      const notice = readNotice(payload)
      if (notice !== null) onNotice(notice)
    },
  })
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
