import type { Tenant } from '../domain/access.ts'
import type { ChannelKind } from '../domain/channel.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { type ChannelRow, failPending, saveChannel } from '../store/outbox/channels.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { type ChannelRecord, lockForChange, openSettings, toRecord } from './find-channels.ts'
import { type ConfigInput, toSettings } from './present-config.ts'
import { type Sealer, UnreadableSettings } from './seal.ts'

/** What is left out keeps its value. */
export interface ChannelUpdate {
  /** It cannot change; what is given must be what it is. */
  readonly kind?: ChannelKind
  readonly name?: string
  /** Null: the whole organization. */
  readonly projectId?: string | null
  readonly events?: readonly CheckEventType[]
  /** True fails what is pending, in the same transaction. */
  readonly muted?: boolean
  /** What was sent as the config, read as one of this kind; throws AppError `invalid`. */
  readonly readConfig?: (kind: ChannelKind) => ConfigInput
}

/** Written to a delivery that was pending when its channel was muted. */
const MUTED = 'the channel was muted'
/** Who may change the channel now need not know of what happened in another project. */
const MOVED = 'the channel serves another project now'

/**
 * Throws AppError `not_found` for a channel or project that is not the caller's, `conflict` for the channel of the installation,
 * `forbidden` when a caller that is bound to a project asks for the whole organization, `invalid` for another kind and for a
 * config that does not fit.
 */
export function updateChannel(
  { database, sealer }: ChannelContext,
  tenant: Tenant,
  id: string,
  update: ChannelUpdate,
): Promise<ChannelRecord> {
  return database.transaction(async (tx) => {
    // The project before the channel, in the order in which a project's removal takes them.
    if (typeof update.projectId === 'string' && !(await hasProject(tx, tenant, update.projectId, 'keep')))
      throw notFound('project')
    const stored = await lockForChange(tx, tenant, id)
    if (update.kind !== undefined && update.kind !== stored.kind) throw otherKind(stored.kind)
    if (update.projectId === null && tenant.projectId !== null) {
      throw new AppError(
        'forbidden',
        'an API key that is bound to a project may not make a channel serve the whole organization',
      )
    }
    const {
      name = stored.name,
      projectId = stored.projectId,
      events = stored.eventTypes,
      muted = stored.muted,
    } = update
    const row = { ...stored, ...sealAnew(stored, update, sealer), name, projectId, eventTypes: events, muted }
    await saveChannel(tx, row)
    if (update.muted === true) await failPending(tx, id, MUTED)
    else if (projectId !== null && projectId !== stored.projectId) await failPending(tx, id, MOVED, projectId)
    return toRecord(row, sealer)
  })
}

function sealAnew(stored: ChannelRow, { readConfig }: ChannelUpdate, sealer: Sealer) {
  if (readConfig === undefined) return {}
  const before = openSettings(stored, sealer)
  return sealer.seal(
    stored.id,
    toSettings(readConfig(stored.kind), before instanceof UnreadableSettings ? null : before),
  )
}

function otherKind(kind: ChannelKind): AppError {
  return invalidField('kind', `must be ${kind}, as it is: the kind of a channel cannot change, make another channel`)
}
