/** Listens for the flips of declared checks as they are committed; ../history/new-flips.ts sends the notices. */

import type { Resource } from '../checks/checks.ts'
import { FLIP_CHANNEL } from '../history/new-flips.ts'
import { createListener, type Listener, type ListenerOptions } from '../postgres/listener.ts'

export interface FlipListenerOptions extends Omit<ListenerOptions, 'name' | 'channel' | 'onNotice'> {
  /** Flips of other clusters are ignored. */
  readonly cluster: string
  readonly onFlip: (resource: Resource) => void
}

export function listenForFlips({ cluster, onFlip, ...options }: FlipListenerOptions): Listener {
  return createListener({
    ...options,
    name: 'flips',
    channel: FLIP_CHANNEL,
    onNotice(payload) {
      const resource = readNotice(payload)
      if (resource?.cluster === cluster) onFlip(resource)
    },
  })
}

/** Null for a notice that is not ours. */
function readNotice(payload: string): Resource | null {
  try {
    const parts: unknown = JSON.parse(payload)
    if (!Array.isArray(parts) || parts.length !== 3 || !parts.every((part) => typeof part === 'string')) return null
    const [cluster, namespace, name] = parts as [string, string, string]
    return { cluster, namespace, name }
  } catch {
    return null
  }
}
