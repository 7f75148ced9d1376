/** What is around a check that may be notified (domain/circumstances.ts), and waking the checks that it keeps quiet. */

import { type CheckState, type Instant, STATUSES } from '../../domain/check.ts'
import { type Circumstances, type Dependency, NO_CIRCUMSTANCES } from '../../domain/circumstances.ts'
import { SERVES } from '../outbox/channels.ts'
import type { Queryable, Statement } from '../postgres/database.ts'
import { inOrder } from '../postgres/in-order.ts'
import { timestamp } from '../postgres/instants.ts'
import { COVERS, findCovering } from '../silences/silences.ts'

/** A check that changes in the transaction at hand: its row is not saved yet. */
export interface Changing {
  readonly key: number
  readonly state: Pick<CheckState, 'status' | 'since'>
  readonly wakeAt: Instant | null
}

/**
 * Of these checks, by their keys, as it is at `now`. A check without an entry has nothing around it. `changing`: the
 * checks that change with them.
 */
export async function readCircumstances(
  tx: Queryable,
  keys: readonly number[],
  now: Instant,
  changing: readonly Changing[],
): Promise<Map<number, Circumstances>> {
  const [covering, dependencies, escalations] = await inOrder([
    findCovering(tx, keys, now),
    findDependencies(tx, keys, changing),
    findEscalations(tx, keys),
  ])
  const around = new Map<number, Circumstances>()
  const put = (key: number, part: Partial<Circumstances>) =>
    around.set(key, { ...NO_CIRCUMSTANCES, ...around.get(key), ...part })
  for (const [key, others] of dependencies) put(key, { dependencies: others })
  for (const { key, after } of escalations) put(key, { escalations: after.map((seconds) => seconds * 1_000) })
  for (const { key, ...silence } of covering) {
    const last = around.get(key)?.silence
    if (last == null || last.until < silence.until) put(key, { silence })
  }
  return around
}

/** Without locks: a check whose change is committed at the same time wakes those that depend on it, or they look. */
async function findDependencies(
  tx: Queryable,
  keys: readonly number[],
  changing: readonly Changing[],
): Promise<Map<number, Dependency[]>> {
  type Row = Omit<Dependency, 'status'> & { readonly key: number; readonly other: number; readonly code: number }
  const { rows } = await tx.query<Row>({
    name: 'find_dependencies',
    text: `select c.key, d.key as other, d.id, s.status as code, s.since, s.wake_at as "wakeAt"
      from checks c cross join lateral unnest(c.depends_on) with ordinality o (id, place)
        join checks d on d.id = o.id join check_states s on s.check_key = d.key
      where c.key = any($1::int8[]) and c.depends_on is not null order by c.key, o.place`,
    values: [keys],
  })
  const changed = new Map(changing.map((one) => [one.key, one]))
  const found = new Map<number, Dependency[]>()
  for (const { key, other, id, code, since, wakeAt } of rows) {
    const stored = { wakeAt, state: { status: STATUSES[code]!, since } }
    const { state, wakeAt: next } = changed.get(other) ?? stored
    const dependency = { id, status: state.status, since: state.since, wakeAt: next }
    found.set(key, [...(found.get(key) ?? []), dependency])
  }
  return found
}

/** As `SERVES` reads them. */
const SERVED = `(select k.key, k.project_id, p.organization_id, k.channels as chosen
  from checks k join projects p on p.id = k.project_id) t`

/** The `after_seconds` of the channels that want the `check.down` of these checks later. */
async function findEscalations(tx: Queryable, keys: readonly number[]) {
  const { rows } = await tx.query<{ key: number; after: number[] }>({
    name: 'find_escalations',
    text: `select t.key, array_agg(distinct c.after_seconds order by c.after_seconds) as after
      from ${SERVED} join channels c on ${SERVES}
      where t.key = any($1::int8[]) and c.after_seconds > 0 and 'check.down' = any(c.event_types)
      group by t.key`,
    values: [keys],
  })
  return rows
}

/**
 * The checks that a silence covers are evaluated at once; call it before the silence changes. A check whose row another
 * transaction holds is looked at within a minute (`Hold.lookAt`): waiting for rows here could deadlock with the pings
 * that hold them.
 */
export async function wakeSilenced(tx: Queryable, silenceId: string, now: Instant): Promise<void> {
  const held = `(t.hold ->> 'by' = 'silence' or t.escalation is not null)
    and t.check_key in (select c.key from silences q join checks c on ${COVERS} where q.id = $1)`
  await tx.query(wake('wake_silenced', held, silenceId, now))
}

/**
 * Checks whose tags, dependencies or channels have changed are evaluated at once, if they are held or have an incident;
 * its escalation as for `wakeServed`. The transaction has locked their rows.
 */
export async function wakeHeld(tx: Queryable, keys: readonly number[]): Promise<void> {
  const text = `update check_states set wake_at = now(), escalation = null
    where check_key = any($1::int8[]) and (hold is not null or incident_since is not null)`
  await tx.query(text, [keys])
}

/**
 * The checks that a channel serves and recipients know as down are evaluated at once. Their escalation begins anew: the
 * channel may want what others were sent before. `insertEvents` sends no channel an incident twice. A check whose row
 * another transaction holds is left out, and is not escalated to the channel in this incident: see `wakeSilenced`.
 */
export async function wakeServed(tx: Queryable, channelId: string, now: Instant): Promise<void> {
  const held = `t.status = ${STATUSES.indexOf('down')} and t.incident_since is not null and t.notified is null
    and t.check_key in (select t.key from ${SERVED} join channels c on ${SERVES} where c.id = $1)`
  await tx.query(wake('wake_served', held, channelId, now, ', escalation = null'))
}

/** The checks that are held because these were down are evaluated at once. Locked rows: as for silences. */
export function wakeDependents(keys: readonly number[], now: Instant): Statement {
  const held = `t.hold ->> 'by' = 'dependency' and t.check_key in (
    select c.key from checks d join checks c on c.depends_on @> array[d.id] where d.key = any($1::int8[]))`
  return wake('wake_dependents', held, keys, now)
}

function wake(name: string, held: string, of: unknown, now: Instant, also = ''): Statement {
  return {
    name,
    text: `update check_states s set wake_at = least(s.wake_at, $2::timestamptz)${also} where s.check_key in (
      select t.check_key from check_states t where ${held} for no key update of t skip locked)`,
    values: [of, timestamp(now)],
  }
}
