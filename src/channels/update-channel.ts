import { isDeepStrictEqual } from 'node:util'
import { type Audited, audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { changedFields } from '../domain/audit.ts'
import { type ChannelKind, WITHDRAWN } from '../domain/channel.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { wakeServed } from '../store/checks/circumstances.ts'
import { type ChannelRow, failPending, saveChannel } from '../store/outbox/channels.ts'
import { findChoosersElsewhere } from '../store/outbox/choosers.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { assertReachable } from './check-reach.ts'
import type { ChannelContext } from './context.ts'
import { assertRoom } from './create-channel.ts'
import { actOn, type ChannelRecord, lockForChange, toRecord } from './find-channels.ts'
import { settingsOf } from './kinds/index.ts'
import { openSettings } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

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
  readonly afterSeconds?: number
  /** Reads the config of the request as one of this kind. Throws AppError `invalid_request`. */
  readonly readConfig?: (kind: ChannelKind) => object
  /** With a config, of a kind that signs. Default: the secrets stay, or if they cannot be read there is a new one. */
  readonly signingSecret?: string | undefined
}

/**
 * Throws AppError `not_found` for a channel or project that is not the caller's, `conflict` for the installation's
 * channel and for a project that has MAX_CHANNELS channels, or while checks of other projects have chosen the channel,
 * `forbidden` when a caller bound to a project makes it serve the whole organization, `invalid_request` for another
 * kind or a config that is not valid for its kind or cannot work.
 */
export function updateChannel(
  context: ChannelContext,
  by: Principal,
  id: string,
  update: ChannelUpdate,
): Promise<ChannelRecord> {
  return audited(context, by, (tx) => changeChannel(tx, context, by, id, update))
}

/** The same in a transaction of the caller's. */
export async function changeChannel(
  tx: Queryable,
  context: ChannelContext,
  by: Principal,
  id: string,
  update: ChannelUpdate,
): Promise<Audited<ChannelRecord>> {
  // Its channels are counted.
  if (update.projectId !== undefined) await lockOrganization(tx, by.organizationId)
  // Project before channel: the removal of a project locks them in this order, too.
  if (typeof update.projectId === 'string' && !(await hasProject(tx, by, update.projectId, 'keep')))
    throw notFound('project')
  const stored = await lockForChange(tx, by, id)
  if (update.kind !== undefined && update.kind !== stored.kind) throw otherKind(stored.kind)
  if (update.projectId === null && by.projectId !== null)
    throw new AppError('forbidden', { why: 'key_bound', asked: 'make a channel serve the whole organization' })
  const { name = stored.name, projectId = stored.projectId, events: eventTypes = stored.eventTypes } = update
  const { muted = stored.muted, afterSeconds = stored.afterSeconds } = update
  if (projectId !== stored.projectId) {
    if (projectId !== null) await assertUnchosenElsewhere(tx, id, projectId)
    await assertRoom(tx, by.organizationId, projectId)
  }
  const { sealed, isChanged } = reseal(stored, update, context)
  const row = { ...stored, ...sealed, name, projectId, eventTypes, muted, afterSeconds }
  await saveChannel(tx, row)
  if (update.muted === true) await failPending(tx, id, WITHDRAWN.muted)
  else if (projectId !== null && projectId !== stored.projectId) await failPending(tx, id, WITHDRAWN.moved, projectId)
  const result = toRecord(row, context)
  const fields = ['name', 'projectId', 'events', 'muted', 'afterSeconds'] as const
  const changed = changedFields(toRecord(stored, context), result, fields)
  if (isChanged) changed.push('config')
  if (afterSeconds > 0 && changed.length > 0) await wakeServed(tx, id, context.clock.now())
  return { result, acts: changed.length === 0 ? [] : [actOn(row, 'channel.changed', { changed })] }
}

/** Checks of other projects would be left without it. The lock of the channel keeps further ones from choosing it. */
async function assertUnchosenElsewhere(tx: Queryable, id: string, projectId: string): Promise<void> {
  const { count, names } = await findChoosersElsewhere(tx, id, projectId)
  if (count === 0) return
  throw new AppError('channel_in_use', { checks: count, names }, { field: 'projectId' })
}

function reseal(stored: ChannelRow, { readConfig, signingSecret }: ChannelUpdate, { sealer, reach }: ChannelContext) {
  if (readConfig === undefined) return { sealed: {}, isChanged: false }
  const opened = openSettings(stored, sealer)
  const before = opened instanceof UnreadableSettings ? null : opened
  const { id, kind } = stored
  const after = settingsOf(kind, readConfig(kind), before, signingSecret)
  assertReachable(kind, after, reach)
  return { sealed: sealer.seal(id, after), isChanged: !isDeepStrictEqual(before, after) }
}

function otherKind(kind: ChannelKind): AppError {
  return invalidField('kind', `must be ${kind}: the kind of a channel cannot change, create another channel instead`)
}
