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
  /** Why, in words: of the run of a CronJob, which `job` names. The first DETAIL_CHARS characters are stored. */
  readonly detail?: string | null | undefined
  readonly job?: string | null | undefined
}

/** PostgreSQL rejects a longer payload, and the transaction with it. */
const NOTICE_BYTES = 8_000

/**
 * Notifies of each flip when the transaction commits (../checks/change-notices.ts); with the resource of a declared
 * check, but for its first flip, which its declarer knows. A name that is too long for a notice must not stop a check:
 * its flip is found by polling. The inner limit is a fence: a join would scan all checks as long as there are few.
 */
export function insertFlips(flips: readonly NewFlip[]): Statement {
  return {
    name: 'insert_flips',
    text: `with added as (
        insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, ping_id, detail, job)
        select id, key, at, detected_at, from_status, to_status, reason, ping_id,
          left(detail, ${DETAIL_CHARS}), job
        from unnest($1::uuid[], $2::int8[], $3::timestamptz[], $4::timestamptz[], $5::int2[], $6::int2[], $7::text[], $8::uuid[],
          $9::text[], $10::text[]) i (id, key, at, detected_at, from_status, to_status, reason, ping_id, detail, job)
        returning check_key, from_status)
      select pg_notify('${CHANGE_CHANNEL}', case when octet_length(flip) < ${NOTICE_BYTES} then flip else change end)
        from added cross join lateral (
          select json_build_array(organization_id, c.id)::text as change,
            case when c.managed_by = 'kubernetes' and added.from_status is not null then json_build_array(
              organization_id, c.id, c.kubernetes_cluster, c.kubernetes_namespace, c.kubernetes_name)::text end as flip
          from checks c cross join lateral (
            select (select organization_id from projects p where p.id = c.project_id) as organization_id) o
          where c.key = added.check_key limit 1) n`,
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
    ],
  }
}
