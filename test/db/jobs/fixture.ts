/** Checks that follow CronJobs, what their Jobs report, and what is stored of it. */

import { randomUUID } from 'node:crypto'
import type { JobEntry, JobReport } from '../../../src/checks/jobs/job-report.ts'
import { type Instant, PING_SOURCES, PING_TYPES, type PingSource, type PingType } from '../../../src/domain/check.ts'
import type { LastRun } from '../../../src/domain/last-run.ts'
import type { Resource } from '../../../src/store/checks/checks.ts'
import type { StoredSpec } from '../../../src/store/checks/columns.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { addCheck, cronSpec, type Fixture, NOW, type TestTenant } from '../checks/fixture.ts'

export const CLUSTER = 'default'

export interface Followed {
  readonly key: number
  readonly id: string
  readonly resource: Resource
}

/** Each hour, five minutes of grace, half an hour for a run; made `agoMs` ago, and armed then. */
export async function addFollowed(
  fixture: Fixture & { readonly tenant: TestTenant },
  name: string,
  { spec = {}, agoMs = 0 }: { spec?: Partial<StoredSpec>; agoMs?: number } = {},
): Promise<Followed> {
  const { clock, database, tenant } = fixture
  const now = clock.time
  clock.time = now - agoMs
  const { key, id } = await addCheck(fixture, tenant, {
    name,
    armed: true,
    spec: cronSpec('0 * * * *', { graceSeconds: 300, maxRuntimeSeconds: 1_800, jobArea: CLUSTER, ...spec }),
  })
  clock.time = now
  const resource = { cluster: CLUSTER, namespace: 'payments', name }
  await database.query(
    `update checks set managed_by = 'kubernetes', kubernetes_cluster = $2, kubernetes_namespace = $3, kubernetes_name = $4 where key = $1`,
    [key, resource.cluster, resource.namespace, resource.name],
  )
  return { key, id, resource }
}

export const startAt = (at: Instant, slotAt = at): JobEntry => ({ type: 'start', at, slotAt })
export const successAt = (at: Instant, durationMs: number | null = null): JobEntry => ({
  type: 'success',
  at,
  durationMs,
})
export const failAt = (at: Instant, body = 'container backup failed (exit code 3)\nmore'): JobEntry => ({
  type: 'fail',
  at,
  durationMs: null,
  exitCode: 3,
  body,
})
export const deletedAt = (at: Instant, job: string, overran?: string): JobEntry => ({
  type: 'log',
  at,
  body: `Job ${job} was deleted before it ended`,
  ...(overran === undefined ? {} : { overran }),
})

export function reportOf(
  { resource }: Followed,
  entries: readonly JobEntry[],
  given: Partial<JobReport> = {},
): JobReport {
  return {
    resource,
    source: resource.name,
    runId: randomUUID(),
    job: `${resource.name}-1`,
    entries,
    lastRun: null,
    ...given,
  }
}

export function aLastRun(run: Partial<LastRun> = {}): LastRun {
  return {
    job: 'nightly-1',
    startTime: new Date(NOW).toISOString(),
    completionTime: null,
    outcome: 'Running',
    exitCode: null,
    reason: null,
    message: null,
    ...run,
  }
}

export interface StoredPing {
  readonly type: PingType
  readonly source: PingSource
  readonly runId: string | null
  readonly at: Instant
  readonly durationMs: number | null
  readonly exitCode: number | null
  readonly body: string | null
}

/** The history of a check, oldest first. Times without the microseconds. */
export async function pingsOf({ database }: { database: Queryable }, key: number): Promise<StoredPing[]> {
  const { rows } = await database.query<
    Omit<StoredPing, 'type' | 'source' | 'body'> & { type: number; source: number; body: Buffer | null }
  >(
    `select p.type, p.source, p.run_id as "runId", date_trunc('milliseconds', p.created_at) as at, p.duration_ms as "durationMs", p.exit_code as "exitCode", b.body
      from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id where p.check_key = $1 order by p.id`,
    [key],
  )
  return rows.map((row) => ({
    ...row,
    type: PING_TYPES[row.type]!,
    source: PING_SOURCES[row.source]!,
    body: row.body?.toString() ?? null,
  }))
}

export interface StoredFlip {
  readonly reason: string
  readonly at: Instant
  readonly detail: string | null
  readonly job: string | null
}

/** Without the first one. */
export async function flipsOf({ database }: { database: Queryable }, key: number): Promise<StoredFlip[]> {
  const { rows } = await database.query<StoredFlip>(
    `select reason, at, detail, job from flips where check_key = $1 and reason <> 'created' order by id`,
    [key],
  )
  return rows
}

export interface StoredEvent {
  readonly type: string
  readonly reason: string
  readonly detail: string | null
  readonly kubernetes: unknown
}

export async function eventsOf({ database }: { database: Queryable }, key: number): Promise<StoredEvent[]> {
  const { rows } = await database.query<StoredEvent>(
    `select type, data ->> 'reason' as reason, data ->> 'detail' as detail, subject -> 'kubernetes' as kubernetes
      from events where check_key = $1 order by id`,
    [key],
  )
  return rows
}

export async function stateOf({ database }: { database: Queryable }, key: number) {
  const { rows } = await database.query<{
    status: number
    since: Instant
    lastPingAt: Instant | null
    dueAt: Instant | null
    runs: { id: string }[] | null
    pingsTotal: number
    version: string
  }>(
    `select status, since, last_ping_at as "lastPingAt", due_at as "dueAt", runs, pings_total as "pingsTotal", xmin::text as version
      from check_states where check_key = $1`,
    [key],
  )
  return rows[0]!
}

export async function cronJobOf({ database }: { database: Queryable }, key: number) {
  const { rows } = await database.query<{ name: string; lastRun: LastRun | null; jobs: Record<string, string> }>(
    'select name, last_run as "lastRun", jobs from cron_jobs where check_key = $1',
    [key],
  )
  return rows[0] ?? null
}
