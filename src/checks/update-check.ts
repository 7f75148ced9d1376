import type { Principal } from '../domain/access.ts'
import type { CheckTexts } from '../domain/check.ts'
import { slugTaken } from '../domain/errors.ts'
import { toMicrosecond } from '../domain/instant.ts'
import {
  type CheckRecord,
  findCheck,
  SLUG_IS_UNIQUE,
  saveSlugLeftEmpty,
  saveSpec,
  saveTexts,
  saveUpdatedAt,
} from '../store/checks/checks.ts'
import { wakeHeld } from '../store/checks/circumstances.ts'
import {
  type GivenSpec,
  isSameSpec,
  isSameTexts,
  isSameTiming,
  type StoredSpec,
  textsOf,
} from '../store/checks/columns.ts'
import { lockDependencies } from '../store/checks/dependencies.ts'
import type { Context } from '../store/context.ts'
import { makeAlertsDue } from '../store/outbox/alerts.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { constraintOf } from '../store/postgres/sqlstate.ts'
import { chooseChannels } from './choose-channels.ts'
import { chooseDependencies } from './choose-dependencies.ts'
import { completeSpec, readSpec, splitSpec } from './read-spec.ts'
import { actsOfChange, applyEvents, type LockedWork, rejectIfManaged, withLockedCheck } from './with-locked-check.ts'

/** A field that is left out keeps its value. A schedule replaces the period, and a period the schedule. */
export interface CheckUpdate extends Partial<CheckTexts>, Partial<Omit<GivenSpec, 'jobArea'>> {
  readonly slug?: string
  /** A client of healthchecks' API gave an empty slug: the check keeps its own. */
  readonly slugLeftEmpty?: true
  readonly periodSeconds?: number
  readonly schedule?: string
  readonly timeZone?: string
}

/**
 * Changes texts and spec. A changed spec recomputes the deadline in the same transaction, never earlier than now +
 * grace (design, section 3.2). Returns the check as it is stored. Throws AppError `not_found`; `invalid_request` for a
 * schedule that makes no sense, alone or with the stored fields, and for a channel that its project cannot use; for
 * `dependsOn` as `chooseDependencies` does;
 * `conflict` for a slug that is taken or a check that is managed by Kubernetes.
 */
export async function updateCheck(
  context: Context,
  by: Principal,
  id: string,
  update: CheckUpdate,
): Promise<CheckRecord> {
  const first = update.dependsOn?.length ? (tx: Queryable) => lockDependencies(tx, by) : undefined
  try {
    const work = async (given: LockedWork) => {
      const { tx, record } = given
      rejectIfManaged(record)
      const { slug = record.slug } = update
      const { channels: chosen, dependsOn: needed } = update
      const channels = chosen === undefined ? record.channels : await chooseChannels(tx, record.projectId, chosen)
      const dependsOn = needed === undefined ? record.dependsOn : await chooseDependencies(tx, by, needed, record)
      const texts = textsOf({ ...record, ...update, channels, dependsOn })
      const spec = mergeSpec(record.spec, update)
      const isRescheduled = !isSameSpec(spec, record.spec)
      const isRedescribed = slug !== record.slug || !isSameTexts(texts, record)
      const slugLeftEmpty = update.slugLeftEmpty ?? (update.slug === undefined ? record.slugLeftEmpty : undefined)
      const isRenamed = slugLeftEmpty !== record.slugLeftEmpty
      if (!isRescheduled && !isRedescribed && !isRenamed) return { result: record, acts: [] }
      if (isRescheduled) await changeSpec(context, given, spec)
      if (isRedescribed) await saveTexts(tx, record.key, slug, texts)
      if (isRenamed) await saveSlugLeftEmpty(tx, record.key, slugLeftEmpty === true)
      if (isRedescribed) {
        // An alert has the slug, and ends where its channel is no longer chosen.
        await makeAlertsDue(tx, record.key)
        await wakeHeld(tx, [record.key])
      }
      await saveUpdatedAt(tx, record.key, toMicrosecond(context.clock.now()))
      const result = (await findCheck(tx, by, id))!
      return { result, acts: actsOfChange(record, result) }
    }
    return await withLockedCheck(context, by, id, work, { first })
  } catch (error) {
    if (update.slug !== undefined && constraintOf(error) === SLUG_IS_UNIQUE)
      throw slugTaken('check of the project', update.slug)
    throw error
  }
}

function mergeSpec(stored: StoredSpec, update: CheckUpdate): StoredSpec {
  const { given } = splitSpec(update)
  const { schedule, timeZone } = update
  // A check of the API follows no source.
  const merged = { ...stored, ...given, jobArea: null }
  // readSpec rejects a period beside a schedule.
  if (given.periodSeconds !== undefined)
    return { ...merged, schedule: schedule ?? null, timeZone: timeZone ?? null, dialect: null }
  return schedule === undefined ? merged : completeSpec({ ...merged, periodSeconds: null }, 'api')
}

async function changeSpec(context: Context, { tx, record, locked }: LockedWork, stored: StoredSpec): Promise<void> {
  const spec = readSpec(stored)
  await saveSpec(tx, record.key, stored)
  const event = { kind: 'update', isSameTiming: isSameTiming(stored, record.spec) } as const
  await applyEvents(tx, { ...locked, spec }, [event], context)
}
