import { INSTALLATION_CHANNEL_ID } from '../domain/channel.ts'
import { STANDARD_EVENT_TYPES } from '../domain/event.ts'
import type { Context } from '../store/context.ts'
import { deleteInstallationChannel, keepInstallationChannel } from '../store/outbox/installation-channel.ts'

/** Replicas with another configuration may be about while a change is rolled out. */
const UNSEEN_MS = 5 * 60_000

/**
 * Brings the channel of ALERTMANAGER_URL in line with this process's configuration. It belongs to no organization and serves all of
 * them. Who has the variable says so again and again; a process without it removes the channel when nobody has said so for
 * five minutes, and what it was still to deliver with it: nobody knows where to.
 */
export async function setInstallationChannel({ database, clock }: Context, isConfigured: boolean): Promise<void> {
  const now = clock.now()
  if (!isConfigured) return deleteInstallationChannel(database, INSTALLATION_CHANNEL_ID, now - UNSEEN_MS)
  await keepInstallationChannel(database, {
    id: INSTALLATION_CHANNEL_ID,
    name: 'Alertmanager of the installation',
    eventTypes: STANDARD_EVENT_TYPES,
    now,
  })
}
