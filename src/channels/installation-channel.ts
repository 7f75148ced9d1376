import type { Parts } from '../checks/parts.ts'
import { INSTALLATION_CHANNEL_ID } from '../domain/channel.ts'
import { STANDARD_EVENT_TYPES } from '../domain/event.ts'
import { deleteInstallationChannel, keepInstallationChannel } from '../store/installation-channel.ts'

/**
 * Brings the channel of ALERTMANAGER_URL in line with this process's configuration. It belongs to no organization and serves all of
 * them. Without the variable it goes, and what it was still to deliver with it: nobody knows where to.
 */
export async function setInstallationChannel({ database, clock }: Parts, isConfigured: boolean): Promise<void> {
  if (!isConfigured) return deleteInstallationChannel(database, INSTALLATION_CHANNEL_ID)
  await keepInstallationChannel(database, {
    id: INSTALLATION_CHANNEL_ID,
    name: 'Alertmanager of the installation',
    eventTypes: STANDARD_EVENT_TYPES,
    createdAt: clock.now(),
  })
}
