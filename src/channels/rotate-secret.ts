import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { saveChannel } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { lockForChange, openSettings } from './find-channels.ts'
import { UnreadableSettings } from './seal.ts'
import { makeSecret, rotateSecrets } from './signing-secret.ts'

/**
 * Gives a webhook a new signing secret, which is shown here and never again; the one before it signs along for SECRET_OVERLAP_MS.
 * Rotations at once take turns. Throws AppError `not_found`; `conflict` for other kinds, the channel of the installation, and
 * settings that cannot be read.
 */
export function rotateSecret(
  { database, clock, sealer }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<{ readonly secret: string }> {
  return database.transaction(async (tx) => {
    const row = await lockForChange(tx, tenant, id)
    if (row.kind !== 'webhook') {
      throw new AppError('conflict', `only webhooks have a signing secret; the channel is of the kind ${row.kind}`)
    }
    const settings = openSettings(row, sealer)
    if (settings instanceof UnreadableSettings) throw new AppError('conflict', settings.message)
    if (settings.kind !== 'webhook') throw new Error(`channel ${id} holds settings of another kind: ${settings.kind}`)
    const secret = makeSecret()
    const secrets = rotateSecrets(settings.secrets, secret, clock.now())
    await saveChannel(tx, { ...row, ...sealer.seal(row.id, { ...settings, secrets }) })
    return { secret }
  })
}
