/** Reads for the list of all checks of an organization: one statement for a page with its counts, one for the last runs of its checks. */

import type { Tenant } from '../../domain/access.ts'
import { COMPLETIONS, type Completion, type Instant, isCompletion, type ShownStatus } from '../../domain/check.ts'
import { type CheckPlace, STATUS_ORDER } from '../../domain/check-order.ts'
import { BAR_OUTCOMES, type RunBar, STRIP_RUNS, type SurveySort } from '../../domain/survey.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { LISTED_COLUMNS, type ListedCheck, toCheck } from './checks.ts'
import { narrow, pingTypeCode, statusCode } from './columns.ts'
import { DEADLINE, rankOf, rankSql, toOrderSql } from './orders.ts'

export interface SurveyFilter {
  readonly projectId?: string
  readonly status?: ShownStatus
  /** Of the last completion. */
  readonly outcome?: Completion
  /** Part of the name or of the slug, in any case. */
  readonly q?: string
}

export interface SurveyRow extends ListedCheck {
  readonly project: { readonly slug: string; readonly name: string }
  /** As the row was sorted. */
  readonly place: CheckPlace
}

export interface Survey {
  readonly rows: readonly SurveyRow[]
  /** Of all checks that pass the filter but for its status. */
  readonly counts: Readonly<Record<ShownStatus, number>>
  /** When the next one of the counted checks becomes late, unless a ping comes before. Null: none does. */
  readonly nextLateAt: Instant | null
}

/**
 * The time that the list shows as the next one of a check `s`, at the time $4: what is late is down at its deadline; another check is expected, or
 * the run of a check without an expected time must end.
 */
const NEXT = `case when s.status = ${statusCode('down')} then null
  when s.expected_at is null or (s.status = ${statusCode('up')} and s.expected_at <= $4::timestamptz) then ${DEADLINE} else s.expected_at end`

const RANK = rankSql('$4::timestamptz')

/**
 * Up to `limit` checks of the tenant that pass the filter, after `after`, how many checks have each status at `now`,
 * and when the next one becomes late. One scan finds all.
 */
export async function surveyRows(
  db: Queryable,
  tenant: Tenant,
  { projectId, status, outcome, q }: SurveyFilter,
  { sort, after, limit, now }: { sort: SurveySort; after: CheckPlace | null; limit: number; now: Instant },
): Promise<Survey> {
  const order = toOrderSql(sort, '$4::timestamptz', NEXT)
  const by = order.terms.map((_, index) => `by_${index}`)
  const values: unknown[] = [
    tenant.organizationId,
    tenant.projectId,
    projectId ?? null,
    timestamp(now),
    status === undefined ? null : rankOf(status),
    limit,
  ]
  const search = narrow(
    { ...(q === undefined ? {} : { q }), ...(outcome === undefined ? {} : { outcome: [outcome] }) },
    values.length + 1,
  )
  values.push(...search.values)
  const behind = order.behind(after, [...by, 'id'], values.length + 1)
  values.push(...behind.values)
  const rows = await db.queryColumns({
    text: `with matched as materialized (
        select c.key, c.id, s.expected_at, ${RANK} as status, ${order.terms.map((sql, index) => `${sql} as by_${index}`).join(', ')}
        from projects p join checks c on c.project_id = p.id join check_states s on s.check_key = c.key
        where p.organization_id = $1 and ($2::uuid is null or p.id = $2) and ($3::uuid is null or p.id = $3)${search.sql}),
      counts as (select ${STATUS_ORDER.map((_, index) => `count(*) filter (where status = ${index})`).join(', ')},
        min(expected_at) filter (where status = ${rankOf('up')}) as next_late_at from matched),
      page as (
        select key, ${[...by, 'id'].join(', ')} from matched where ($5::int4 is null or status = $5) ${behind.sql}
        order by ${order.sorted([...by, 'id'])} limit $6)
      select counts.*, ${[...by, 'p.slug', 'p.name'].join(', ')}, ${LISTED_COLUMNS}
      from counts left join (page
        -- By their keys: joins would read both tables once more.
        cross join lateral (select * from checks where key = page.key offset 0) c
        cross join lateral (select * from check_states where check_key = page.key offset 0) s
        join projects p on p.id = c.project_id) on true
      order by ${order.sorted([...by, 'page.id'])}`,
    values,
  })
  const [first] = rows
  const counts = Object.fromEntries(STATUS_ORDER.map((name, index) => [name, first![index] as number]))
  const byAt = STATUS_ORDER.length + 1
  const checkAt = byAt + by.length + 2
  return {
    counts: counts as Record<ShownStatus, number>,
    nextLateAt: first![STATUS_ORDER.length] as Instant | null,
    rows: rows.flatMap((row) => {
      if (row[checkAt] === null) return []
      const check = toCheck(row.slice(checkAt))
      const place = order.placeOf(row.slice(byAt, byAt + by.length), check.id)
      return [{ ...check, project: { slug: row[checkAt - 2] as string, name: row[checkAt - 1] as string }, place }]
    }),
  }
}

/** Rows of a check's history that are read for its strip: a check that sends logs alone must not be read as a whole. */
export const STRIP_PINGS = 200
export const STRIP_FLIPS = 100

const OUTCOMES = BAR_OUTCOMES.map((outcome, code) => ({ outcome, code }))
const codeOf = (wanted: RunBar['outcome']) => OUTCOMES.find(({ outcome }) => outcome === wanted)!.code
const REASONS = OUTCOMES.filter(({ outcome }) => !isCompletion(outcome))

/**
 * The last STRIP_RUNS runs of each check, oldest first: completions, and deadlines that passed without one. They are looked for among the newest
 * STRIP_PINGS pings and STRIP_FLIPS flips. Ids have the order of the history.
 */
export async function readStrips(db: Queryable, keys: readonly number[]): Promise<Map<number, RunBar[]>> {
  const rows = await db.queryColumns({
    name: 'read_strips',
    text: `select k.key, (
        select string_agg(runs.code || ':' || coalesce(runs.duration_ms::text, ''), ',' order by runs.id) from (
          (select p.id, case p.type ${COMPLETIONS.map((type) => `when ${pingTypeCode(type)} then ${codeOf(type)}`).join(' ')} end as code, p.duration_ms
            from (select id, type, duration_ms from pings where check_key = k.key order by id desc limit ${STRIP_PINGS}) p
            where p.type in (${COMPLETIONS.map(pingTypeCode).join(', ')}) order by p.id desc limit ${STRIP_RUNS})
          union all
          (select f.id, case f.reason ${REASONS.map(({ outcome, code }) => `when '${outcome}' then ${code}`).join(' ')} end, null
            from (select id, reason from flips where check_key = k.key order by id desc limit ${STRIP_FLIPS}) f
            where f.reason in (${REASONS.map(({ outcome }) => `'${outcome}'`).join(', ')}) order by f.id desc limit ${STRIP_RUNS})
          order by id desc limit ${STRIP_RUNS}) runs)
      from unnest($1::int8[]) k (key)`,
    values: [keys],
  })
  return new Map(rows.map(([key, runs]) => [key as number, parseRuns(runs as string | null)]))
}

/** `0:1500,2:` */
function parseRuns(text: string | null): RunBar[] {
  if (text === null) return []
  return text.split(',').map((run) => {
    const [code, duration] = run.split(':') as [string, string]
    return { outcome: BAR_OUTCOMES[Number(code)]!, durationMs: duration === '' ? null : Number(duration) }
  })
}
