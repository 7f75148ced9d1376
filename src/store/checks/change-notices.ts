/**
 * Notices about checks of an organization that changed, for those who look at them: sent in the transaction of each
 * flip (../history/new-flips.ts), of a declared check that is new (new-checks.ts), and of each change or removal
 * (../audit/entries.ts). A channel of its own: an operator of the release before ignores what it does not know.
 */

import { isUuid } from '../../domain/ids.ts'
import { createListener, type Listener, type ListenerOptions } from '../postgres/listener.ts'

/** The channel of LISTEN and NOTIFY. The payload is JSON: the organization's id and the check's. */
export const CHANGE_CHANNEL = 'heartbeat_changes'

export interface ChangeListenerOptions extends Omit<ListenerOptions, 'name' | 'channel' | 'onNotice'> {
  readonly onChange: (organizationId: string, checkId: string) => void
}

export function listenForChanges({ onChange, ...options }: ChangeListenerOptions): Listener {
  return createListener({
    ...options,
    name: 'changes',
    channel: CHANGE_CHANNEL,
    onNotice(payload) {
      const ids = readNotice(payload)
      if (ids !== null) onChange(...ids)
    },
  })
}

/** Null for a notice that is not ours. */
function readNotice(payload: string): [organizationId: string, checkId: string] | null {
  try {
    const parts: unknown = JSON.parse(payload)
    if (!Array.isArray(parts) || parts.length !== 2) return null
    const [organizationId, checkId] = parts.map(String) as [string, string]
    return isUuid(organizationId) && isUuid(checkId) ? [organizationId, checkId] : null
  } catch {
    return null
  }
}
