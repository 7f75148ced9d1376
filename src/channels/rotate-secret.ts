import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { saveChannel } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { lockForChange } from './find-channels.ts'
import type { WebhookSettings } from './kinds/webhook/config.ts'
import { makeSecret, rotateSecrets } from './kinds/webhook/signature.ts'
import { openSettings } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

/**
 * Returns the new signing secret, which is not shown again. The previous secret also signs for SECRET_OVERLAP_MS. Concurrent rotations wait for
 * each other. Throws AppError `not_found`; `conflict` for other kinds, the installation's channel, and settings that cannot be read.
 */
export function rotateSecret(
  { database, clock, sealer }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<{ readonly secret: string }> {
  return database.transaction(async (tx) => {
    const row = await lockForChange(tx, tenant, id)
    if (row.kind !== 'webhook') {
      throw new AppError('conflict', `only webhooks have a signing secret; the kind of the channel is ${row.kind}`)
    }
    const settings = openSettings(row, sealer)
    if (settings instanceof UnreadableSettings) throw new AppError('conflict', settings.message)
    if (settings.kind !== 'webhook') throw new Error(`channel ${id} holds settings of another kind: ${settings.kind}`)
    const secret = makeSecret()
    const webhook = settings as WebhookSettings
    const secrets = rotateSecrets(webhook.secrets, secret, clock.now())
    await saveChannel(tx, { ...row, ...sealer.seal(row.id, { ...webhook, secrets } as WebhookSettings) })
    return { secret }
  })
}
