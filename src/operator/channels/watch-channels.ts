/** The HeartbeatChannels of the watched namespaces, in one cache. A standby keeps it up to date too. */

import { watchAreas } from '../../kubernetes/areas.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import { HEARTBEAT_CHANNELS, RESTORE_RIGHTS, VERSION } from '../names.ts'
import { haveFinalizersChanged, isEdited, trim } from '../resource/changes.ts'
import type { HeartbeatChannel } from '../schema/channel.ts'
import type { CheckWatchOptions } from '../watch-checks.ts'

export type ChannelWatch = ReturnType<typeof createChannelWatch>

export function createChannelWatch(options: Omit<CheckWatchOptions, 'installation'>) {
  const { stallMs, onChange } = options
  const areas = watchAreas<HeartbeatChannel>({
    ...options,
    type: HEARTBEAT_CHANNELS,
    stallMs,
    trim,
    name: 'HeartbeatChannels',
    grant: RESTORE_RIGHTS,
    explain: (error) =>
      hasStatus(error, 404)
        ? `the cluster does not know HeartbeatChannels of version ${VERSION}: apply crds/heartbeatchannels.yaml; it is looked for again`
        : null,
    onChange(key, { before, after }) {
      if (before !== undefined && after !== undefined && !isRelevant(before, after)) return
      onChange(key, areas.isListed(splitKey(key).namespace) ? 'live' : 'background')
    },
  })
  const { start, stop, get, keys, put, isListed, takeRecovery } = areas
  return { start, stop, get, keys, put, isListed, takeRecovery }
}

/** Our own writes of the status need no reconcile. */
const isRelevant = (before: HeartbeatChannel, after: HeartbeatChannel): boolean =>
  isEdited(before, after) ||
  haveFinalizersChanged(before, after) ||
  before.status?.installation !== after.status?.installation
