import { type Audited, audited } from '../../audit/audited.ts'
import { controllerOf } from '../../domain/access.ts'
import { type CheckEvent, NEXT } from '../../domain/check-event.ts'
import { readerOf } from '../../domain/cron.ts'
import { LIMITS } from '../../domain/limits.ts'
import { deleteCheck, type Resource, type StoredCheck, saveSpec } from '../../store/checks/checks.ts'
import { isSameSpec, NO_ORIGIN, type StoredSpec } from '../../store/checks/columns.ts'
import { detachFromResource } from '../../store/checks/declared-checks.ts'
import { leaveLists } from '../../store/checks/dependencies.ts'
import { insertRetention, type PublishedObjectName } from '../../store/checks/retained-checks.ts'
import { type LockedCheck, lockStates } from '../../store/checks/states.ts'
import { insertTombstone } from '../../store/checks/tombstones.ts'
import type { Context } from '../../store/context.ts'
import { saveSource } from '../../store/jobs/cron-jobs.ts'
import { makeAlertsDue } from '../../store/outbox/alerts.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { completeSpec, readSpec } from '../read-spec.ts'
import { actOn, actsOfChange, applyEvents } from '../with-locked-check.ts'
import { actsOfEvents } from './act.ts'
import { lockDeclared } from './gather.ts'

export type { PublishedObjectName } from '../../store/checks/retained-checks.ts'

/**
 * Detaches or deletes the check of a resource that is deleted (design, section 6). `Delete` leaves a tombstone, for a
 * resource that is created again. `Retain`: the check belongs to the API from now on, and follows no source;
 * `published` keeps its URL for the resource. Returns `absent` when the resource has no check.
 */
export async function retireCheck(
  context: Context,
  resource: Resource,
  policy: 'Delete' | 'Retain',
  published: PublishedObjectName | null = null,
): Promise<Retired> {
  let retired: Retired | null = null
  while (retired === null) retired = await tryRetire(context, resource, policy, published)
  return retired
}

type Retired = 'removed' | 'released' | 'absent'

/** Null while checks are left that depend on one that is to be removed. */
function tryRetire(
  context: Context,
  resource: Resource,
  policy: 'Delete' | 'Retain',
  published: PublishedObjectName | null,
): Promise<Retired | null> {
  return audited<Retired | null>(context, controllerOf(resource.cluster), async (tx) => {
    const found = await lockDeclared(tx, resource, policy === 'Delete')
    if (found === null) return { result: 'absent', acts: [] }
    const { record, locked } = found
    if (policy === 'Delete' && !(await leaveLists(tx, record))) return { result: null, acts: [] }
    if (policy === 'Delete') return { result: 'removed', acts: await bury(context, tx, resource, record, locked) }
    await makeAlertsDue(tx, record.key)
    await detachFromResource(tx, record.key)
    const events = await detachFromSource(context, tx, record, locked)
    const { origin = NO_ORIGIN, updatedAt } = record
    await insertRetention(
      tx,
      record.key,
      resource,
      { ...origin, updatedAt, retainedAt: context.clock.now() },
      published,
    )
    const acts = [...actsOfChange(record, { ...record, managedBy: 'api' }), ...actsOfEvents(record, events)]
    return { result: 'released', acts }
  })
}

/**
 * A check of the API follows no source, and cron reads its schedule. One that followed a source is paused until a
 * person resumes it, since its job need not know its ping URL: with nothing that reports, an alert would follow.
 * Returns what happened to it.
 */
async function detachFromSource(
  context: Context,
  tx: Queryable,
  { key, spec: stored, state }: StoredCheck,
  locked: LockedCheck,
): Promise<readonly CheckEvent[]> {
  const detached = detach(stored)
  if (isSameSpec(detached, stored)) return []
  await saveSpec(tx, key, detached)
  const isFollowing = stored.jobArea !== null
  if (isFollowing) await saveSource(tx, key, null)
  // A schedule that cannot be read has nothing to expect.
  if (locked.spec === null) return []
  const goesOn = NEXT[state.status].pause !== state.status || state.pause?.until != null
  const isPaused = isFollowing && goesOn
  const events: readonly CheckEvent[] = [{ kind: 'update' }, ...(isPaused ? [{ kind: 'pause' } as const] : [])]
  await applyEvents(tx, { ...locked, spec: readSpec(detached) }, events, context)
  return events
}

/**
 * A schedule that cron does not read, such as one with `?`, stays as Kubernetes reads it until a call of the API gives
 * another one.
 */
function detach(stored: StoredSpec): StoredSpec {
  const hasNone = stored.schedule === null && stored.periodSeconds === null
  const detached = { ...stored, ...(hasNone ? { periodSeconds: LIMITS.periodSeconds.default } : {}), jobArea: null }
  const spec = completeSpec(detached, 'api')
  return spec.schedule === null ? spec : { ...spec, dialect: readerOf(spec.schedule) }
}

/**
 * Removes the check of a resource, whose lock the transaction holds, and leaves its tombstone. Returns what was done.
 */
export async function bury(
  context: Pick<Context, 'clock'>,
  tx: Queryable,
  resource: Resource,
  record: StoredCheck,
  locked: LockedCheck,
): Promise<Audited<unknown>['acts']> {
  const { state } = locked
  await makeAlertsDue(tx, record.key)
  const { origin = NO_ORIGIN } = record
  const { stampedAt } = await closeIncident(context, tx, locked)
  await insertTombstone(tx, resource, {
    ...record,
    ...origin,
    ...state,
    stampedAt,
    deletedAt: context.clock.now(),
  })
  await deleteCheck(tx, record.key)
  return [actOn(record, 'check.removed')]
}

const REMOVED = { pause: { detail: 'its HeartbeatCheck was deleted, and the check with it' } } as const

/**
 * The recipients of check.down wait for an end, which a check of a CronJob that is gone never reports. Returns the
 * check as it is then; its tombstone keeps what it was before.
 */
async function closeIncident(
  context: Pick<Context, 'clock'>,
  tx: Queryable,
  locked: LockedCheck,
): Promise<Pick<LockedCheck, 'stampedAt'>> {
  const { key, spec, state } = locked
  const isKnownAsDown = state.incidentSince !== null && state.status !== 'paused'
  if (spec?.awaits !== 'start' || !isKnownAsDown) return locked
  await applyEvents(tx, locked, [{ kind: 'pause' }], context, REMOVED)
  const [paused] = await lockStates(tx, [key])
  return paused!
}
