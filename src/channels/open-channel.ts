/** Unsealing the settings of a channel. */

import { type ChannelSettings, INSTALLATION_CHANNEL_ID, type OpenChannel } from '../domain/channel.ts'
import { type ChannelRow, listSealed, type SealedChannel } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { type Sealer, UnreadableSettings } from './seal.ts'

/** The settings, or the reason why they cannot be read. */
export function openSettings(
  { id, sealed, sealedWith }: Pick<ChannelRow, 'id' | 'sealed' | 'sealedWith'>,
  sealer: Sealer,
): ChannelSettings | UnreadableSettings {
  try {
    // A constraint of the table: every channel of an organization has them.
    return sealer.open(id, { sealed: sealed!, sealedWith: sealedWith! })
  } catch (error) {
    if (error instanceof UnreadableSettings) return error
    throw error
  }
}

const BATCH = 100

/** The channels of organizations with their settings. `keyId`: those that are sealed under another key. */
export async function* openAll(
  { database, sealer }: { readonly database: Queryable; readonly sealer: Sealer },
  keyId: Buffer | null = null,
): AsyncGenerator<SealedChannel & { readonly settings: ChannelSettings | UnreadableSettings }> {
  let afterId: string | null = null
  for (;;) {
    const rows: SealedChannel[] = await listSealed(database, { keyId, afterId, limit: BATCH })
    for (const row of rows) yield { ...row, settings: openSettings(row, sealer) }
    if (rows.length < BATCH) return
    afterId = rows.at(-1)!.id
  }
}

/** `installationUrls`: ALERTMANAGER_URL. Throws an Error, with a message fit for users, when the settings cannot be read here. */
export function openChannel(row: ChannelRow, sealer: Sealer, installationUrls: readonly string[]): OpenChannel {
  const { id, name, organizationId, projectId } = row
  if (id === INSTALLATION_CHANNEL_ID) {
    if (installationUrls.length === 0) throw new Error('ALERTMANAGER_URL is not set in the replica that claimed it')
    const settings = { kind: 'alertmanager', urls: installationUrls, labels: {} } as const
    return { id, name, isTrusted: true, settings }
  }
  const settings = openSettings(row, sealer)
  if (settings instanceof UnreadableSettings) throw settings
  // A constraint of the table: only the channel of the installation has no organization.
  return { id, name, isTrusted: false, tenant: { organizationId: organizationId!, projectId }, settings }
}
