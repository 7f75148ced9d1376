/**
 * A service with realistic data, for pictures and for tests of pages: projects, users, channels, and twenty checks with their history, which is
 * made by the product's own state machine. It is filled before the service starts, whose evaluator would find each deadline of the past missed.
 */

import { createChannel } from '../../src/channels/create-channel.ts'
import { createSealer } from '../../src/channels/seal.ts'
import { createCheck } from '../../src/checks/create-check.ts'
import { declareCheck } from '../../src/checks/declare/declare-check.ts'
import { pauseCheck } from '../../src/checks/pause-resume.ts'
import { createPingRecorder, type Ping } from '../../src/checks/ping/record.ts'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import { applyEvents, withLockedCheck } from '../../src/checks/with-locked-check.ts'
import { createTargetRule } from '../../src/delivery/targets.ts'
import { NO_TEXTS } from '../../src/domain/check.ts'
import { nextSlot, parseCron } from '../../src/domain/cron.ts'
import { deriveSlug } from '../../src/domain/slug.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { GivenSpec } from '../../src/store/checks/columns.ts'
import type { Database } from '../../src/store/postgres/database.ts'
import { createProject } from '../../src/tenancy/projects.ts'
import { createUser } from '../../src/tenancy/users.ts'
import { DAY, HOUR, MINUTE } from '../../test/support/builders.ts'
import { createRandom, type Random } from '../../test/support/random.ts'
import { anAdmin } from '../../test/support/tenant.ts'
import { DEMO_JOBS, DEMO_PROJECTS, type DemoJob } from './demo-jobs.ts'

export interface DemoOptions {
  readonly database: Database
  readonly secretKey: Buffer
  /** Where webhook and Slack channels send to. Default: no channel. */
  readonly receiverUrl?: string
  /** How far the history goes back; at most 90. */
  readonly days?: number
  readonly jobs?: readonly DemoJob[]
  /** Of users whose addresses begin with `write` and `read`. */
  readonly password?: string
}

export interface DemoCheck {
  readonly id: string
  readonly publicId: string
  readonly job: DemoJob
}

export interface Demo {
  /** By name. */
  readonly checks: ReadonlyMap<string, DemoCheck>
  /** Ids by name. */
  readonly projects: ReadonlyMap<string, string>
}

const SEED = 18
/** All but the newest, which the service sends when it starts. The ticket system has moved two days ago. */
const SEND_OLD_DELIVERIES = `
  with old as (
    select d.event_id, d.channel_id, c.name = 'Ticket system' and d.created_at > now() - interval '2 days' as is_gone
    from deliveries d join channels c on c.id = d.channel_id
    where d.created_at < now() - interval '10 minutes'
  )
  update deliveries d set attempts = 1, next_attempt_at = null,
    status = case when is_gone then 2 else 1 end, last_status = case when is_gone then 410 else 204 end,
    last_error = case when is_gone then 'tickets.example.com responded 410: this address is gone' end,
    delivered_at = case when is_gone then null else d.created_at + interval '340 milliseconds' end
  from old where old.event_id = d.event_id and old.channel_id = d.channel_id`
/** The most runs of a job, so that an hourly one does not take most of the time. */
const MAX_RUNS = 400

export async function fillDemo(options: DemoOptions): Promise<Demo> {
  const { database, days = 90, jobs = DEMO_JOBS } = options
  const now = Date.now()
  const random = createRandom(SEED)
  const { rows } = await database.query<{ id: string }>('select id from organizations')
  const by = anAdmin(rows[0]!.id)
  const at = (time: number) => ({ database, clock: { now: () => time } })

  const projects = new Map<string, string>()
  for (const name of DEMO_PROJECTS) projects.set(name, (await createProject(at(now - days * DAY), by, { name })).id)
  const { password } = options
  if (password !== undefined) {
    for (const scope of ['write', 'read'] as const)
      await createUser(at(now - days * DAY), by, { email: `${scope}@example.com`, password, scope })
  }
  if (options.receiverUrl !== undefined) await addChannels(options, at(now - days * DAY), by, options.receiverUrl)

  const recorder = createPingRecorder({
    database,
    now: systemClock.now,
    onGroup: () => {},
    onError: (error) => {
      throw error
    },
  })
  const checks = new Map<string, DemoCheck>()
  for (const job of jobs) {
    const spec = specOf(job)
    const projectId = projects.get(job.project)!
    const texts = { ...NO_TEXTS, name: job.name, description: job.description ?? null, tags: [...job.tags] }
    const start = at(job.ending === 'new' ? now - HOUR : now - days * DAY)
    const check =
      job.namespace === undefined
        ? await createCheck(start, by, { ...texts, projectId, spec })
        : (
            await declareCheck(start, {
              ...texts,
              resource: { cluster: 'default', namespace: job.namespace, name: deriveSlug(job.name, 'check') },
              projectId,
              spec,
              suspend: null,
              adoptId: null,
            })
          ).check
    checks.set(job.name, { id: check.id, publicId: check.publicId, job })
    const record = async (pings: readonly Omit<Ping, 'publicId'>[]) => {
      const results = await Promise.all(pings.map((ping) => recorder.record({ publicId: check.publicId, ...ping })))
      if (results.some((result) => result !== 'stored')) throw new Error(`${job.name}: ${results.join()}`)
    }
    let pings: Omit<Ping, 'publicId'>[] = []
    for (const run of listRuns(job, now, days, random)) {
      if (run.outcome === 'missed') {
        // The check must have gone down before the ping that takes it up again.
        await record(pings)
        pings = []
        await evaluate(check.id, run.startedAt + job.graceMs + MINUTE)
      } else pings.push(...pingsOf(job, run, now))
      if (pings.length > 200) {
        await record(pings)
        pings = []
      }
    }
    await record(pings)
    if (job.ending === 'missed') await evaluate(check.id, now)
    if (job.ending === 'paused') await pauseCheck(at(now - 9 * DAY), by, check.id)
  }
  await recorder.stop()
  await database.query(SEND_OLD_DELIVERIES)
  return { checks, projects }

  /** As the evaluator does it, at that time. */
  async function evaluate(id: string, time: number): Promise<void> {
    await withLockedCheck(at(time), by, id, async ({ tx, locked }) => {
      await applyEvents(tx, locked, [{ kind: 'deadline', gaps: [] }], at(time))
      return { result: undefined, acts: [] }
    })
  }
}

function specOf({ schedule, timeZone, graceMs, maxRuntimeMs }: DemoJob): GivenSpec {
  const isCron = typeof schedule === 'string'
  return {
    ...NO_SPEC,
    periodSeconds: isCron ? null : schedule / 1_000,
    schedule: isCron ? schedule : null,
    timeZone: isCron ? (timeZone ?? 'UTC') : null,
    graceSeconds: graceMs / 1_000,
    maxRuntimeSeconds: maxRuntimeMs === undefined ? null : maxRuntimeMs / 1_000,
  }
}

interface Run {
  readonly startedAt: number
  /** After `now`: it is still running. */
  readonly endedAt: number
  readonly outcome: 'success' | 'failed' | 'missed'
}

/** Oldest first. */
function listRuns(job: DemoJob, now: number, days: number, random: Random): Run[] {
  const times = listTimes(job, now, days).slice(-MAX_RUNS)
  return times.map((time, index): Run => {
    const fromLast = times.length - index
    // Jobs take longer as their data grows, and longer on some days.
    const growth = 0.8 + (0.2 * index) / times.length
    const noise = 0.9 + random.int(0, 20) / 100 + (random.chance(0.04) ? 0.6 : 0)
    const durationMs = Math.round((job.durationMs ?? 0) * growth * noise)
    const startedAt = time + random.int(500, 4_000)
    const trouble = job.troubles?.[fromLast] ?? (job.ending === 'failed' && fromLast === 1 ? 'failed' : null)
    const endedAt = startedAt + (trouble === 'failed' ? Math.round(durationMs / 3) : durationMs)
    return { startedAt, endedAt, outcome: trouble ?? 'success' }
  })
}

function listTimes(
  { schedule, timeZone = 'UTC', graceMs, durationMs = 0, ending }: DemoJob,
  now: number,
  days: number,
) {
  if (ending === 'new') return []
  const begin = now - days * DAY
  const times: number[] = []
  if (typeof schedule === 'number') {
    // The end of the last run decides about the status.
    const sinceEnd = { late: schedule + graceMs / 4, missed: schedule + graceMs + 3 * HOUR, paused: 9 * DAY }
    const end = sinceEnd[ending as keyof typeof sinceEnd] ?? Math.min(schedule * 0.4, 5 * HOUR)
    const last = ending === 'running' ? now - durationMs / 3 : now - end - durationMs
    for (let time = last; time > begin + HOUR; time -= schedule) times.unshift(time)
    return times
  }
  const cron = parseCron(schedule, timeZone, 'cron')
  for (let time = nextSlot(cron, begin); time !== null && time < now; time = nextSlot(cron, time)) times.push(time)
  const isOver = (time: number) => time + durationMs < now
  if (ending === 'failed') return times.filter(isOver)
  // The slots that did not happen: at least one whose grace is over.
  return ending === 'missed' ? times.filter((time) => time + graceMs < now - MINUTE).slice(0, -1) : times
}

function pingsOf(job: DemoJob, { startedAt, endedAt, outcome }: Run, now: number): Omit<Ping, 'publicId'>[] {
  const base = { exitCode: null, durationMs: null, runId: null, body: null }
  const start: Omit<Ping, 'publicId'>[] =
    job.durationMs === undefined ? [] : [{ ...base, type: 'start', at: startedAt }]
  if (endedAt >= now) return start
  const text = outcome === 'failed' ? job.error : job.output
  const body = text === undefined ? null : Buffer.from(text)
  const end: Omit<Ping, 'publicId'> =
    outcome === 'failed'
      ? { ...base, type: 'fail', exitCode: 1, body, at: endedAt }
      : { ...base, type: 'success', exitCode: job.durationMs === undefined ? null : 0, body, at: endedAt }
  return [...start, end]
}

async function addChannels(
  { secretKey }: DemoOptions,
  context: { database: Database; clock: { now: () => number } },
  by: ReturnType<typeof anAdmin>,
  receiverUrl: string,
): Promise<void> {
  const reach = { findObjection: createTargetRule(['127.0.0.0/8']).findObjection, hasSmtp: true }
  const channelContext = { ...context, sealer: createSealer(secretKey), reach }
  const webhook = { url: `${receiverUrl}/on-call` }
  await createChannel(channelContext, by, { kind: 'webhook', name: 'On call', config: webhook })
  await createChannel(channelContext, by, {
    kind: 'slack',
    name: '#operations',
    config: { url: `${receiverUrl}/slack` },
  })
  await createChannel(channelContext, by, {
    kind: 'webhook',
    name: 'Ticket system',
    config: { url: `${receiverUrl}/broken` },
  })
}
