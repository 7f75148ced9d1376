/** Data for the benchmarks of the dashboard: an organization with many checks of every kind, and their history. */

import type { Queryable } from '../../src/store/postgres/database.ts'

export interface DashboardSeed {
  /** A check with the most pings that are kept, each with a text of 10 KB. */
  readonly heavyId: string
  /** Of checks that can be pinged, without the heavy one. */
  readonly publicIds: readonly string[]
}

/**
 * Adds `checks` checks to the project, half of them of a cluster: names of other scripts and of 100 characters, periods and cron expressions, every
 * status, 20 runs each with a start and a completion. Then the heavy one.
 */
export async function seedDashboard(
  db: Queryable,
  projectId: string,
  { checks, heavyPings = 1_000 }: { checks: number; heavyPings?: number },
): Promise<DashboardSeed> {
  await db.query(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at, managed_by, kubernetes_cluster, kubernetes_namespace, kubernetes_name)
        select gen_random_uuid(), gen_random_uuid(), $1,
          case n % 10 when 0 then repeat('Ü', 90) || n when 1 then 'نسخ احتياطي ' || n when 2 then '夜間バックアップ ' || n else 'Nightly backup of ledger ' || n end,
          'check-' || n, now() - interval '40 days',
          case n % 2 when 0 then 'api' else 'kubernetes' end, case n % 2 when 1 then 'default' end,
          case n % 2 when 1 then 'team-' || n % 20 end, case n % 2 when 1 then 'backup-' || n end
        from generate_series(1, $2::int) n returning key)
      insert into check_states (check_key, period_seconds, schedule, time_zone, grace_seconds, status, reason, since, stamped_at,
        last_ping_at, last_success_at, last_duration_ms, expected_at, due_at, wake_at)
      select key, case key % 3 when 0 then null else 86400 end, case key % 3 when 0 then key % 60 || ' 2 * * *' end,
        case key % 3 when 0 then 'Europe/Berlin' end, 3600, status,
        (array['created', 'recovered', 'missed', 'paused'])[status + 1], now() - key % 1000 * interval '1 minute', now(),
        case when status > 0 then now() - key % 1440 * interval '1 minute' end, now() - interval '1 day', 90000,
        case when status = 1 then expected end, case when status = 1 then expected + interval '1 hour' end,
        case when status = 1 then expected + interval '1 hour' end
      from (select key, case when key % 50 = 0 then 2 when key % 50 = 1 then 3 when key % 50 = 2 then 0 else 1 end as status,
        now() + (case when key % 50 = 3 then -10 else key % 1440 end) * interval '1 minute' as expected from made) s`,
    [projectId, checks],
  )
  await db.query(
    `insert into pings (id, check_key, type, exit_code, duration_ms, source, created_at)
      select ${idAt('at')}, check_key, case when n % 2 = 1 then 1 when (n + check_key) % 26 = 0 then 2 else 0 end,
        case when n % 2 = 0 then 0 end, case when n % 2 = 0 then 60000 + (check_key * n) % 120000 end, 0, at
      from check_states, generate_series(1, 40) n, lateral (select now() - (41 - n) * interval '12 hours' as at) t`,
  )
  const { rows } = await db.query<{ id: string; key: number; publicId: string }>(
    'select id, key, public_id as "publicId" from checks where project_id = $1 order by key',
    [projectId],
  )
  const [heavy, ...others] = rows
  await db.query(
    `with pinged as (
        insert into pings (id, check_key, type, duration_ms, source, created_at)
        select ${idAt('at')}, $1, case n % 2 when 0 then 0 else 1 end, case n % 2 when 0 then n * 100 end, 0, at
        from generate_series(1, $2::int) n, lateral (select now() - ($2 - n) * interval '1 minute' as at) t returning id, check_key)
      insert into ping_bodies (check_key, ping_id, body) select check_key, id, decode(repeat('01', 10240), 'hex') from pinged`,
    [heavy!.key, heavyPings],
  )
  await db.query('vacuum analyze')
  return { heavyId: heavy!.id, publicIds: others.slice(0, 1_000).map(({ publicId }) => publicId) }
}

/** An id of a history that carries the time `at`, as runtime/ids.ts writes them. */
function idAt(at: string): string {
  return `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7000' || '8' || substr(md5(random()::text), 1, 15))::uuid`
}
