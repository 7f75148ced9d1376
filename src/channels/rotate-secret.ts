import { audited } from '../audit/audited.ts'
import type { Principal, Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { findChannelRow, saveChannel } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { actOn, lockForChange } from './find-channels.ts'
import type { WebhookSettings } from './kinds/webhook/config.ts'
import { makeSecret, rotateSecrets } from './kinds/webhook/signature.ts'
import { openSettings } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

/**
 * Returns the new signing secret, which is not shown again. The previous secret also signs for SECRET_OVERLAP_MS. Concurrent rotations wait for
 * each other. Throws AppError `not_found`; `conflict` for other kinds, the installation's channel, settings that cannot be read, and a rotation
 * other than `seen` (`findRotation`).
 */
export function rotateSecret(
  context: ChannelContext,
  by: Principal,
  id: string,
  seen?: string,
): Promise<{ readonly secret: string }> {
  const { clock, sealer } = context
  return audited(context, by, async (tx) => {
    const row = await lockForChange(tx, by, id)
    if (row.kind !== 'webhook') throw new AppError('conflict', { why: 'no_secret', kind: row.kind })
    const settings = openSettings(row, sealer)
    if (settings instanceof UnreadableSettings) throw new AppError('conflict', settings.message)
    if (settings.kind !== 'webhook') throw new Error(`channel ${id} holds settings of another kind: ${settings.kind}`)
    const webhook = settings as WebhookSettings
    if (seen !== undefined && seen !== rotationOf(webhook)) throw new AppError('conflict', { why: 'secret_rotated' })
    const secret = makeSecret()
    const secrets = rotateSecrets(webhook.secrets, secret, clock.now())
    await saveChannel(tx, { ...row, ...sealer.seal(row.id, { ...webhook, secrets } as WebhookSettings) })
    return { result: { secret }, acts: [actOn(row, 'channel.secret_rotated')] }
  })
}

/** Which rotation was the last one: another text after each. For a channel without a secret, or one that cannot be read, `none`. */
export async function findRotation(context: ChannelContext, tenant: Tenant, id: string): Promise<string> {
  const row = isUuid(id) ? await findChannelRow(context.database, tenant, id) : null
  const settings = row === null ? null : openSettings(row, context.sealer)
  const isWebhook = settings !== null && !(settings instanceof UnreadableSettings) && settings.kind === 'webhook'
  return isWebhook ? rotationOf(settings as WebhookSettings) : 'none'
}

/** By the end of the previous secret, which each rotation sets anew. */
function rotationOf({ secrets }: WebhookSettings): string {
  return String(secrets[1]?.expiresAt ?? 'none')
}
