import type { Sealer } from '../channels/seal.ts'
import { INSTALLATION_CHANNEL_ID, type OpenChannel } from '../domain/channel.ts'
import type { ChannelRow } from '../store/outbox/channels.ts'

/** Throws an error with a message for people when its settings are not to be had here. */
export function openChannel(row: ChannelRow, sealer: Sealer, installationUrls: readonly string[]): OpenChannel {
  const { id, name, sealed, sealedWith } = row
  if (id === INSTALLATION_CHANNEL_ID) {
    if (installationUrls.length === 0) throw new Error('ALERTMANAGER_URL is not set in the replica that took it')
    return { id, name, isTrusted: true, settings: { kind: 'alertmanager', urls: installationUrls, labels: {} } }
  }
  if (sealed === null || sealedWith === null) throw new Error('the channel has no settings: update or remove it')
  return { id, name, isTrusted: false, settings: sealer.open(id, { sealed, sealedWith }) }
}
