/**
 * `npm run bench:metrics`: what a scrape of the series of each check costs, against the same series kept in prom-client, the two
 * taking turns in one run. PostgreSQL and both servers are processes of their own on the same machine; answers are compressed, as
 * Prometheus asks for them. Half of the checks are Kubernetes' own, one in a hundred is down; each has five labels, of which `labels` exports three.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import type { Answer, Asked, Mode, Seen } from './metrics-server.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 100_000)
const FEW_CHECKS = CHECKS / 10
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
/** What the issue asks for. */
const LIMITS = { seconds: 1, heapMB: 100, blockedMs: 50, gzipMB: 8, fewSeconds: 0.15 }

interface Scrape extends Seen {
  readonly seconds: number
  readonly gzipMB: number
}

interface Scrapes {
  readonly memory: Scrape
  readonly timed: readonly Scrape[]
}

let areMissed = 0
function report(what: string, value: number, unit: string, limit?: number): void {
  const isHeld = limit === undefined || value <= limit
  if (!isHeld) areMissed += 1
  const shown = value.toFixed(value < 10 ? 2 : 0)
  const judged = limit === undefined ? '| |' : `${limit} ${unit} | ${isHeld ? 'held' : 'MISSED'} |`
  process.stdout.write(`| ${what} | ${shown} ${unit} | ${judged}\n`)
}

await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1, patient: true })
const servers = new Map<Mode, { child: ChildProcess; url: string }>()
try {
  await migrate(database)
  for (const mode of ['series', 'labels', 'prom-client'] as const) servers.set(mode, await startServer(mode))

  await seed(0, FEW_CHECKS)
  await assertSame()
  const few = await takeTurns(ROUNDS)
  await seed(FEW_CHECKS, CHECKS)
  const many = await takeTurns(ROUNDS)

  process.stdout.write(
    `median of ${ROUNDS} scrapes; event loop: the worst of them\n\n| what | measured | at most | |\n|---|---:|---:|---|\n`,
  )
  tell(`${CHECKS} checks`, many.get('series')!, LIMITS)
  tell(`${FEW_CHECKS} checks`, few.get('series')!, { seconds: LIMITS.fewSeconds })
  tell(`three METRIC_LABELS, ${CHECKS} checks`, many.get('labels')!, {})
  tell(`prom-client, ${CHECKS} checks`, many.get('prom-client')!, {})
  tell(`prom-client, ${FEW_CHECKS} checks`, few.get('prom-client')!, {})
} finally {
  for (const { child } of servers.values()) child.kill('SIGKILL')
  await database.close()
}
if (areMissed > 0) process.exitCode = 1

function tell(name: string, { memory, timed }: Scrapes, limits: Partial<typeof LIMITS>): void {
  report(`${name}: a scrape`, median(timed, 'seconds'), 's', limits.seconds)
  report(`${name}: processor time of the server`, median(timed, 'busySeconds'), 's')
  report(`${name}: heap above rest`, memory.heapMB, 'MB', limits.heapMB)
  report(`${name}: resident above rest`, memory.residentMB, 'MB')
  report(`${name}: event loop blocked`, worst(timed, 'blockedMs'), 'ms', limits.blockedMs)
  report(`${name}: compressed`, median(timed, 'gzipMB'), 'MB', limits.gzipMB)
}

async function startServer(mode: Mode): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(new URL('./metrics-server.ts', import.meta.url), [mode, postgres.url], {
    execArgv: ['--expose-gc', ...(mode === 'prom-client' ? ['--max-old-space-size=8192'] : [])],
  })
  const [answer] = (await once(child, 'message')) as [{ port: number }]
  return { child, url: `http://127.0.0.1:${answer.port}/metrics` }
}

async function ask(child: ChildProcess, asked: Asked): Promise<Answer> {
  child.send(asked)
  const [answer] = (await once(child, 'message')) as [Answer]
  return answer
}

async function scrape(mode: Mode, watched: 'begin' | 'memory' = 'begin'): Promise<{ scraped: Scrape; bytes: Buffer }> {
  const { child, url } = servers.get(mode)!
  await ask(child, watched)
  const startedAt = performance.now()
  const bytes = await fetchBytes(url)
  const seconds = (performance.now() - startedAt) / 1_000
  const seen = (await ask(child, 'end')) as Seen
  return { scraped: { ...seen, seconds, gzipMB: bytes.length / 1e6 }, bytes }
}

/** Not fetch, which would undo the compression here, on the server's time. */
function fetchBytes(url: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'Accept-Encoding': 'gzip' } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks)))
      response.on('error', reject)
    }).on('error', reject)
  })
}

/** `rounds` of scrapes that are timed, and one before them that warms up and tells of memory. */
async function takeTurns(rounds: number): Promise<Map<Mode, Scrapes>> {
  const scrapes = new Map<Mode, { memory?: Scrape; timed: Scrape[] }>()
  for (const mode of servers.keys()) scrapes.set(mode, { timed: [] })
  for (let round = 0; round <= rounds; round += 1) {
    for (const [mode, taken] of scrapes) {
      const { scraped } = await scrape(mode, round === 0 ? 'memory' : 'begin')
      if (round === 0) taken.memory = scraped
      else taken.timed.push(scraped)
      process.stderr.write(`${mode}: ${JSON.stringify(scraped)}\n`)
    }
  }
  return scrapes as Map<Mode, Scrapes>
}

/** Or the comparison would be worth nothing. */
async function assertSame(): Promise<void> {
  const samplesOf = async (mode: Mode) => {
    const text = gunzipSync((await scrape(mode)).bytes).toString()
    return text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .sort()
  }
  const [ours, theirs] = [await samplesOf('series'), await samplesOf('prom-client')]
  const different = ours.findIndex((line, index) => line !== theirs[index])
  if (ours.length !== theirs.length || different >= 0)
    throw new Error(
      `not the same: ${ours.length} and ${theirs.length} samples, ${ours[different]} and ${theirs[different]}`,
    )
}

function median(scrapes: readonly Scrape[], of: keyof Scrape): number {
  return scrapes.map((one) => one[of]).sort((one, other) => one - other)[scrapes.length >> 1]!
}

function worst(scrapes: readonly Scrape[], of: keyof Scrape): number {
  return Math.max(...scrapes.map((one) => one[of]))
}

/**
 * Checks `from` to `to`: 50 jobs for each namespace and each project, in the order in which they were made. Their schedules, times,
 * statuses and durations as in a cluster at noon: most jobs are fine.
 */
async function seed(from: number, to: number): Promise<void> {
  await database.query(`select setseed(0.5)`)
  await database.query(
    `insert into organizations (id, name) values ('00000000-0000-7000-8000-000000000000', 'Bench') on conflict do nothing`,
  )
  const things = `array['orders', 'customers', 'carts', 'invoices', 'sessions', 'events', 'products', 'tenants', 'quotas', 'audit-log']`
  const verbs = `array['nightly-backup', 'report-mailer', 'cache-warmer', 'invoice-export', 'index-rebuild', 'token-cleanup', 'snapshot-prune', 'usage-rollup', 'cert-renewal', 'queue-drain']`
  const teams = `array['payments', 'billing', 'search', 'platform', 'data-warehouse', 'identity', 'ledger', 'shipping', 'growth', 'mobile']`
  await database.query(
    `insert into projects (id, organization_id, name, slug)
      select gen_random_uuid(), '00000000-0000-7000-8000-000000000000', 'Project ' || n, (${teams})[1 + n % 10] || '-'
        || (array['production', 'staging'])[1 + n / 10 % 2] || case when n % 2 = 0 then '' else '-api' end || '-' || n / 20
      from generate_series($1::int / 50, $2::int / 50 - 1) n`,
    [from, to],
  )
  await database.query(
    `with jobs as (
        select n, p.id as project_id, p.slug as project, n / 50 % 2 = 0 as is_declared,
          (${verbs})[1 + n % 10] || '-' || (${things})[1 + (n / 10 + n / 50) % 10] as name
        from generate_series($1::int, $2::int - 1) n
        join (select id, slug, row_number() over (order by split_part(name, ' ', 2)::int) - 1 as place from projects) p on p.place = n / 50),
      made as (
        insert into checks (id, public_id, project_id, name, slug, created_at, managed_by, kubernetes_cluster, kubernetes_namespace, kubernetes_name, labels)
        select gen_random_uuid(), gen_random_uuid(), project_id, name, name, now(),
          case when is_declared then 'kubernetes' else 'api' end, case when is_declared then 'default' end,
          case when is_declared then project end, case when is_declared then name end,
          jsonb_build_object('app.kubernetes.io/name', name, 'app.kubernetes.io/part-of', project, 'app.kubernetes.io/managed-by', 'Helm',
            'team', split_part(project, '-', 1), 'tier', (array['gold', 'silver', 'bronze'])[1 + n % 3])
        from jobs order by n returning key),
      times as (
        select key, random() as fate, (array[300, 900, 3600, 86400])[1 + floor(random() * 4)::int] as period,
          (array[60, 300, 600, 3600])[1 + floor(random() * 4)::int] as grace, random() as ago, random() as length
        from made),
      states as (
        select *, case when fate < 0.01 then 2 when fate < 0.03 then 0 when fate < 0.05 then 3 else 1 end as status,
          date_trunc('milliseconds', now() - ago * period * interval '1 second') as pinged_at from times)
    insert into check_states (check_key, period_seconds, schedule, time_zone, grace_seconds, status, since, stamped_at, last_ping_at,
        last_success_at, last_duration_ms, expected_at, due_at, wake_at, runs)
      select key, case when key % 3 > 0 then period end, case when key % 3 = 0 then '0 2 * * *' end, case when key % 3 = 0 then 'UTC' end,
        grace, status, now(), now(), case when status > 0 then pinged_at end,
        case when status = 2 then pinged_at - period * interval '1 second' when status > 0 then pinged_at end,
        case when status > 0 then round(exp(length * 8 + 5)) end,
        case when status = 1 then case when fate > 0.98 then now() - interval '1 second'
          else greatest(pinged_at + period * interval '1 second', now() + interval '10 minutes') end end,
        case when status = 1 then pinged_at + (period + grace) * interval '1 second' end, now() + interval '1 hour',
        case when fate between 0.5 and 0.55 then jsonb_build_array(jsonb_build_object('id', null, 'startedAt',
          floor(extract(epoch from now()) * 1000 - 5000), 'deadlineAt', null)) end
      from states`,
    [from, to],
  )
  await database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
      select gen_random_uuid(), check_key, since, since, 1, 2, (array['missed', 'failed', 'overran'])[1 + check_key % 3]
      from check_states where status = 2 on conflict do nothing`,
  )
  await database.query('vacuum analyze')
}
