import { INSTALLATION_CHANNEL_ID, standardEventsOf } from '../domain/channel.ts'
import type { Context } from '../store/context.ts'
import { deleteInstallationChannel, saveInstallationChannel } from '../store/outbox/channels.ts'

/** During a rollout, replicas with the old configuration still run. */
const UNSEEN_MS = 5 * 60_000

/**
 * Creates or removes the channel of ALERTMANAGER_URL, which belongs to no organization and serves all of them. A process with the
 * variable saves the channel repeatedly; others remove it, and its pending deliveries, when no process has saved it for five minutes.
 */
export async function setInstallationChannel({ database, clock }: Context, isConfigured: boolean): Promise<void> {
  const now = clock.now()
  if (!isConfigured) return deleteInstallationChannel(database, INSTALLATION_CHANNEL_ID, now - UNSEEN_MS)
  await saveInstallationChannel(database, {
    id: INSTALLATION_CHANNEL_ID,
    name: 'Alertmanager of the installation',
    eventTypes: standardEventsOf('alertmanager'),
    now,
  })
}
