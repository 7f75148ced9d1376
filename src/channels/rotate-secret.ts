import { audited } from '../audit/audited.ts'
import type { Principal, Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { findChannelRow, saveChannel } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { actOn, lockForChange } from './find-channels.ts'
import { KINDS } from './kinds/index.ts'
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
    const { secret } = KINDS[row.kind].config
    if (secret === undefined) throw new AppError('conflict', { why: 'no_secret', kind: row.kind })
    const settings = openSettings(row, sealer)
    if (settings instanceof UnreadableSettings) throw new AppError('conflict', settings.message)
    if (seen !== undefined && seen !== secret.rotationOf(settings))
      throw new AppError('conflict', { why: 'secret_rotated' })
    const rotated = secret.rotate(settings, clock.now())
    await saveChannel(tx, { ...row, ...sealer.seal(row.id, rotated) })
    return { result: { secret: secret.newest(rotated) }, acts: [actOn(row, 'channel.secret_rotated')] }
  })
}

/** Which rotation was the last one: another text after each. For a channel without a secret, or one that cannot be read, `none`. */
export async function findRotation(context: ChannelContext, tenant: Tenant, id: string): Promise<string> {
  const row = isUuid(id) ? await findChannelRow(context.database, tenant, id) : null
  const secret = row === null ? undefined : KINDS[row.kind].config.secret
  const settings = row === null || secret === undefined ? null : openSettings(row, context.sealer)
  if (settings === null || settings instanceof UnreadableSettings) return 'none'
  return secret!.rotationOf(settings)
}
