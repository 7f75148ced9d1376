import type { Tenant } from '../domain/access.ts'
import type { ChannelKind } from '../domain/channel.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { type ChannelRow, failPending, saveChannel } from '../store/outbox/channels.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { type ChannelRecord, lockForChange, toRecord } from './find-channels.ts'
import { toSettings } from './kinds/index.ts'
import { openSettings } from './open-channel.ts'
import { type Sealer, UnreadableSettings } from './seal.ts'

/** An omitted field keeps its value. */
export interface ChannelUpdate {
  /** The kind cannot change: it must be the present one. */
  readonly kind?: ChannelKind
  readonly name?: string
  /** Null: the whole organization. */
  readonly projectId?: string | null
  readonly events?: readonly CheckEventType[]
  /** True fails the pending deliveries, in the same transaction. */
  readonly muted?: boolean
  /** Reads the config of the request as one of this kind. Throws AppError `invalid`. */
  readonly readConfig?: (kind: ChannelKind) => object
}

/** The last_error of deliveries that were pending when their channel was muted or moved. */
const MUTED = 'the channel was muted'
/** Events of the old project: users of the new one may not see them. */
const MOVED = 'the channel serves another project now'

/**
 * Throws AppError `not_found` for a channel or project that is not the caller's, `conflict` for the installation's channel, `forbidden` when
 * a caller bound to a project makes it serve the whole organization, `invalid` for another kind or a config that is not valid for its kind.
 */
export function updateChannel(
  { database, sealer }: ChannelContext,
  tenant: Tenant,
  id: string,
  update: ChannelUpdate,
): Promise<ChannelRecord> {
  return database.transaction(async (tx) => {
    // Project before channel: the removal of a project locks them in this order, too.
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
    const { name = stored.name, projectId = stored.projectId, events: eventTypes = stored.eventTypes } = update
    const { muted = stored.muted } = update
    const row = { ...stored, ...reseal(stored, update, sealer), name, projectId, eventTypes, muted }
    await saveChannel(tx, row)
    if (update.muted === true) await failPending(tx, id, MUTED)
    else if (projectId !== null && projectId !== stored.projectId) await failPending(tx, id, MOVED, projectId)
    return toRecord(row, sealer)
  })
}

function reseal(stored: ChannelRow, { readConfig }: ChannelUpdate, sealer: Sealer) {
  if (readConfig === undefined) return {}
  const before = openSettings(stored, sealer)
  const { id, kind } = stored
  return sealer.seal(id, toSettings(kind, readConfig(kind), before instanceof UnreadableSettings ? null : before))
}

function otherKind(kind: ChannelKind): AppError {
  return invalidField('kind', `must be ${kind}: the kind of a channel cannot change, create another channel instead`)
}
