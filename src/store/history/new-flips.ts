/** Writes flips, and announces them. Part of a change set (../checks/change-sets.ts). */

import type { FlipReason, Instant, StoredStatus } from '../../domain/check.ts'
import { DETAIL_CHARS } from '../../domain/last-run.ts'
import { CHANGE_CHANNEL } from '../checks/change-notices.ts'
import { statusCode } from '../checks/columns.ts'
import { instantArray, int2Array, int8Array, textArray, uuidArray } from '../postgres/binary-arrays.ts'
import type { Statement } from '../postgres/database.ts'

export interface NewFlip {
  readonly id: Buffer
  readonly key: number
  readonly at: Instant
  readonly detectedAt: Instant
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  readonly pingId: Buffer | null
  /** The deadline that passed: the flip can be later. Absent: none passed. */
  readonly deadlineAt?: Instant | null | undefined
  /** Why, in words: of the run of a CronJob, which `job` names. Absent: as the table cron_jobs has it, if it has it. */
  readonly detail?: string | null | undefined
  readonly job?: string | null | undefined
}

/** The channel of LISTEN and NOTIFY that announces the flips of declared checks. */
export const FLIP_CHANNEL = 'heartbeat_flips'
/** PostgreSQL rejects a longer payload, and the transaction with it. */
const NOTICE_BYTES = 8_000

/** Of the flip `i` and the CronJob `j`: a column about the run that waits, if the flip is that this run was missed. */
const WAITING = (column: string) =>
  `case when i.reason = 'missed' and j.waiting_for = i.deadline_at then j.${column} end`

/** What the pods of the Job `o` do that takes too long, where that was found out for this deadline. */
const HELD_BY = `case when j.waiting_for = i.deadline_at and j.waiting_job = o.job then ': ' || j.waiting_detail end`

/** The Job of the run whose deadline passed with the flip `i`, and the seconds that the run may take. */
const OVERRAN = `select j.jobs ->> (r ->> 'id') as job, s.max_runtime_seconds as seconds
          from check_states s cross join lateral jsonb_array_elements(s.runs) r
          where i.reason = 'overran' and j.jobs <> '{}' and s.check_key = i.key
            and (r ->> 'deadlineAt')::numeric = extract(epoch from i.deadline_at) * 1000 limit 1`

/**
 * Notifies of each flip when the transaction commits. CHANGE_CHANNEL (change-notices.ts): of any check. FLIP_CHANNEL (flip-notices.ts): of a
 * declared check, with the resource as JSON, which saves a look-up; not of its first flip, which its declarer knows. A name that is too long
 * for a notice (written by hand) must not stop a check: its flip is found by polling. The inner limit is a fence: a join would scan all
 * checks as long as there are few, and a plan lives long. So would a join of the project.
 *
 * A flip that comes without a detail and a Job has those of the run that waits, or that takes too long (cron_jobs).
 */
export function insertFlips(flips: readonly NewFlip[]): Statement {
  return {
    name: 'insert_flips',
    text: `with added as (
        insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, ping_id, detail, job)
        select id, key, at, detected_at, from_status, to_status, reason, ping_id,
          left(coalesce(i.detail, ${WAITING('waiting_detail')}, 'Job ' || o.job || ' has run for longer than ' || o.seconds || ' s' || coalesce(' (' || j.limit_from || ')', '')
            || coalesce(${HELD_BY}, '')), ${DETAIL_CHARS}),
          coalesce(i.job, ${WAITING('waiting_job')}, o.job)
        from unnest($1::uuid[], $2::int8[], $3::timestamptz[], $4::timestamptz[], $5::int2[], $6::int2[], $7::text[], $8::uuid[],
          $9::text[], $10::text[], $11::timestamptz[]) i (id, key, at, detected_at, from_status, to_status, reason, ping_id, detail, job, deadline_at)
        left join lateral (select * from cron_jobs where check_key = i.key limit 1) j on true
        left join lateral (${OVERRAN}) o on true
        returning check_key, from_status)
      select pg_notify(channel, notice) from added cross join lateral (
          select json_build_array((select organization_id from projects p where p.id = c.project_id), c.id)::text as change,
            case when c.managed_by = 'kubernetes' and added.from_status is not null
              then json_build_array(c.kubernetes_cluster, c.kubernetes_namespace, c.kubernetes_name)::text end as flip
          from checks c where c.key = added.check_key limit 1) n
        cross join lateral (values ('${CHANGE_CHANNEL}', change), ('${FLIP_CHANNEL}', flip)) v (channel, notice)
        where octet_length(notice) < ${NOTICE_BYTES}`,
    values: [
      uuidArray(flips.map((flip) => flip.id)),
      int8Array(flips.map((flip) => flip.key)),
      instantArray(flips.map((flip) => flip.at)),
      instantArray(flips.map((flip) => flip.detectedAt)),
      int2Array(flips.map((flip) => (flip.from === null ? null : statusCode(flip.from)))),
      int2Array(flips.map((flip) => statusCode(flip.to))),
      textArray(flips.map((flip) => flip.reason)),
      uuidArray(flips.map((flip) => flip.pingId)),
      textArray(flips.map((flip) => flip.detail ?? null)),
      textArray(flips.map((flip) => flip.job ?? null)),
      instantArray(flips.map((flip) => flip.deadlineAt ?? null)),
    ],
  }
}
