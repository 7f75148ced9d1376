/** Deadlines of checks that follow CronJobs: they wait until all Jobs are recorded, and their flips say why no run has started. */

import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { abandonRuns } from '../../../src/checks/jobs/abandon-runs.ts'
import { findRecorded } from '../../../src/checks/jobs/find-recorded.ts'
import { markSeen } from '../../../src/checks/jobs/mark-seen.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { STATUSES } from '../../../src/domain/check.ts'
import { areaOf } from '../../../src/domain/watch-area.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { oldestOverdueSeconds } from '../../../src/store/checks/states.ts'
import type { DeadlineDetail } from '../../../src/store/jobs/cron-jobs.ts'
import { saveSource } from '../../../src/store/jobs/cron-jobs.ts'
import {
  listDueAreas,
  listFollowed,
  listFollowedDue,
  listOverdueRuns,
} from '../../../src/store/jobs/followed-checks.ts'
import { listSeen, saveUnseen } from '../../../src/store/jobs/seen-areas.ts'
import { takeClusterName } from '../../../src/store/leases/clusters.ts'
import type { Statement } from '../../../src/store/postgres/database.ts'
import { beat } from '../../support/beats.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { NOW, openTransaction, ping, pruneAll, useFixture } from '../checks/fixture.ts'
import {
  addFollowed,
  CLUSTER,
  cronJobOf,
  deletedAt,
  eventsOf,
  type Followed,
  failAt,
  flipsOf,
  reportOf,
  startAt,
  stateOf,
  successAt,
} from './fixture.ts'

const t = useFixture()

beforeEach(() => beat(t))

/** One evaluation by one replica; returns the reasons of its flips. */
async function expire(): Promise<string[]> {
  const { flips, failed } = await expireOverdue({ database: t.database, now: systemClock.now }, 100)
  expect(failed).toEqual([])
  return flips.map(({ reason }) => reason)
}

/** As the controller of a cluster does that watches these areas. */
const seenOf = (areas: readonly string[], until: number, cluster = CLUSTER, watched = areas) => ({
  cluster,
  watched,
  areas,
  until,
})
const see = (until: number, details: readonly DeadlineDetail[]) =>
  markSeen(t.context, seenOf([CLUSTER], until), details)

const detailOf = ({ resource }: Followed, dueAt: number, given: Partial<DeadlineDetail> = {}): DeadlineDetail => ({
  resource,
  source: resource.name,
  dueAt,
  job: 'nightly-2',
  detail: 'Job nightly-2 waits: exceeded quota: pods',
  ...given,
})

// NOW is a full hour in the past of the database's clock. The slot of 11:00 was due at 11:05.
const SLOT = NOW - HOUR
const DUE = SLOT + 5 * MINUTE
const addOverdue = (name = 'nightly', jobArea = CLUSTER) =>
  addFollowed(t, name, { agoMs: HOUR + 30 * MINUTE, spec: { jobArea } })

describe('a deadline', () => {
  it('waits while no controller records Jobs, whichever replica evaluates, and passes once all Jobs of then are recorded', async () => {
    const check = await addOverdue()
    expect(await Promise.all([expire(), expire()])).toEqual([[], []])
    await see(DUE - 1, [])
    expect(await Promise.all([expire(), expire()])).toEqual([[], []])
    expect((await stateOf(t, check.key)).dueAt).toBe(DUE)
    await see(DUE, [])
    expect((await Promise.all([expire(), expire()])).flat()).toEqual(['missed'])
    expect(await eventsOf(t, check.key)).toHaveLength(1)
  })

  it('of another cluster, or of a check that is pinged, does not wait for this one', async () => {
    const check = await addFollowed(t, 'pinged', { agoMs: HOUR + 30 * MINUTE, spec: { jobArea: null } })
    await addFollowed(t, 'elsewhere', { agoMs: HOUR + 30 * MINUTE, spec: { jobArea: 'other' } })
    await see(DUE, [])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, check.key)).toHaveLength(1)
  })

  it('is not passed by what is recorded first: a controller that was away records, and then marks', async () => {
    const check = await addOverdue()
    await recordJobs(t.context, [reportOf(check, [startAt(SLOT + SECOND, SLOT), successAt(SLOT + MINUTE)])])
    await see(NOW, [])
    expect(await expire()).toEqual([])
    expect(await flipsOf(t, check.key)).toMatchObject([{ reason: 'first_success' }])
  })

  it('waits for its namespace alone, where each has a watch of its own', async () => {
    const areas = ['payments', 'shop'].map((namespace) => areaOf(CLUSTER, namespace))
    const checks = await Promise.all(areas.map((jobArea, index) => addOverdue(`nightly-${index}`, jobArea)))
    const statuses = () => Promise.all(checks.map(async ({ key }) => STATUSES[(await stateOf(t, key)).status]))
    await markSeen(t.context, seenOf(areas.slice(0, 1), DUE, CLUSTER, areas), [])
    expect(await expire()).toEqual(['missed'])
    expect(await statuses()).toEqual(['down', 'new'])
    await markSeen(t.context, seenOf(areas, DUE), [])
    expect(await expire()).toEqual(['missed'])
    expect(await statuses()).toEqual(['down', 'down'])
  })

  it('waits alone while something of it is not recorded', async () => {
    const [held, free] = [await addOverdue('held'), await addOverdue('free')]
    const seen = seenOf([CLUSTER], NOW - 1)
    const unknown = { namespace: 'payments', name: 'unknown' }
    await markSeen(t.context, { ...seen, held: [held.resource, unknown] }, [])
    expect(await expire()).toEqual(['missed'])
    expect((await flipsOf(t, free.key)).map(({ reason }) => reason)).toEqual(['missed'])
    expect(await oldestOverdueSeconds(t.database)).toBe(0)
    // A leader that was paused writes late.
    await markSeen(t.context, { ...seen, until: NOW - 2 }, [])
    expect(await expire()).toEqual([])
    await markSeen(t.context, { ...seen, until: NOW }, [])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, held.key)).toMatchObject([{ at: DUE }])
  })

  it.each([
    ['the cluster to namespaces', CLUSTER, `${CLUSTER}/payments`],
    ['namespaces to the cluster', `${CLUSTER}/payments`, CLUSTER],
  ])('waits, after a change of the watches from %s, until its check is declared there', async (_, before, after) => {
    const check = await addOverdue('nightly', before)
    await markSeen(t.context, seenOf([before], DUE - 1), [])
    await markSeen(t.context, seenOf([after], NOW), [])
    expect(await expire()).toEqual([])
    await t.database.query('update check_states set job_area = $1', [after])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, check.key)).toMatchObject([{ at: DUE }])
  })

  it('never waits again for what was seen: a leader that was paused writes late', async () => {
    await addOverdue()
    await see(DUE, [])
    await see(DUE - HOUR, [])
    expect(await expire()).toEqual(['missed'])
  })
})

describe('the flip of a run that has not started', () => {
  it('says why, in its event too, with the Job that waits', async () => {
    const check = await addOverdue()
    const detail = detailOf(check, DUE)
    await see(DUE, [detail])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, check.key)).toEqual([
      { reason: 'missed', at: DUE, detail: detail.detail, job: 'nightly-2' },
    ])
    const kubernetes = { ...check.resource, source: { kind: 'CronJob', name: 'nightly' }, run: 'nightly-2' }
    expect(await eventsOf(t, check.key)).toEqual([
      { type: 'check.down', reason: 'missed', detail: detail.detail, kubernetes },
    ])
  })

  it('says nothing where the detail is about another slot, or there is none', async () => {
    const [other, none] = [await addOverdue('other'), await addOverdue('none')]
    await saveSource(t.database, none.key, 'none')
    await see(DUE, [detailOf(other, DUE - HOUR)])
    expect(await expire()).toEqual(['missed', 'missed'])
    for (const { key } of [other, none]) {
      expect(await flipsOf(t, key)).toEqual([{ reason: 'missed', at: DUE, detail: null, job: null }])
      expect(await eventsOf(t, key)).toMatchObject([{ detail: null }])
    }
    expect((await eventsOf(t, none.key))[0]!.kubernetes).toEqual({
      ...none.resource,
      source: { kind: 'CronJob', name: 'none' },
    })
  })

  it('may have no Job, and at most 1,024 characters that PostgreSQL stores', async () => {
    const check = await addOverdue()
    await see(DUE, [detailOf(check, DUE, { job: null, detail: `\0${'x'.repeat(1_023)}😀` })])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, check.key)).toMatchObject([{ detail: `${'x'.repeat(1_023)}\ufffd`, job: null }])
  })

  it('has the newest detail; one that is the same writes nothing, and one of an unknown resource is left out', async () => {
    const check = await addOverdue()
    const version = async () => (await t.database.query('select xmin::text from cron_jobs')).rows
    const unknown = { ...check, resource: { ...check.resource, name: 'gone' } }
    await see(1, [detailOf(check, DUE, { detail: 'first' }), detailOf(check, DUE), detailOf(unknown, DUE)])
    const before = await version()
    await see(2, [detailOf(check, DUE)])
    expect(await version()).toEqual(before)
    await see(DUE, [detailOf(check, DUE, { detail: 'newest' })])
    expect(await expire()).toEqual(['missed'])
    expect(await flipsOf(t, check.key)).toMatchObject([{ detail: 'newest' }])
  })
})

it('the flip of a run that took too long names its Job, the limit and where it is set, also beside a newer one', async () => {
  const check = await addFollowed(t, 'nightly', { agoMs: 3 * HOUR })
  const runs = [NOW - 2 * HOUR, NOW - 90 * MINUTE].map((at, index) =>
    reportOf(check, [startAt(at, at)], { job: `nightly-${index}` }),
  )
  await saveSource(t.database, check.key, 'nightly', 'the default')
  await recordJobs(t.context, runs)
  const deadline = NOW - 90 * MINUTE
  await see(deadline, [])
  expect(await expire()).toEqual(['overran'])
  const detail = 'Job nightly-0 has run for longer than 1800 s (the default)'
  expect(await flipsOf(t, check.key)).toEqual([{ reason: 'overran', at: deadline, detail, job: 'nightly-0' }])
  expect(await eventsOf(t, check.key)).toMatchObject([{ reason: 'overran', detail, kubernetes: { run: 'nightly-0' } }])
})

it('the flip of a run whose deadline passed before the check was up has the time of that flip, and names its Job', async () => {
  const check = await addFollowed(t, 'nightly', { agoMs: 3 * HOUR })
  const [hung, quick] = [NOW - 2 * HOUR, NOW - 100 * MINUTE]
  const ended = NOW - 80 * MINUTE
  const deadline = hung + 30 * MINUTE
  await recordJobs(t.context, [
    reportOf(check, [startAt(hung, hung)], { job: 'nightly-0' }),
    reportOf(check, [startAt(quick, quick), successAt(ended)], { job: 'nightly-1' }),
  ])
  await see(ended, [detailOf(check, deadline, { job: 'nightly-0', detail: 'pod nightly-0-x7k2p on node worker-3' })])
  expect(await expire()).toEqual(['overran'])
  const detail = 'Job nightly-0 has run for longer than 1800 s: pod nightly-0-x7k2p on node worker-3'
  expect((await flipsOf(t, check.key)).at(-1)).toEqual({ reason: 'overran', at: ended, detail, job: 'nightly-0' })
})

describe('a run that took too long', () => {
  const runs = async (name: string, until: number) =>
    (await listOverdueRuns(t.database, [CLUSTER], until)).filter(({ resource }) => resource.name === name)
  const addRun = async (name: string, agoMs = 90 * MINUTE) => {
    const check = await addFollowed(t, name, { agoMs: 3 * HOUR })
    const runId = randomUUID()
    await recordJobs(t.context, [reportOf(check, [startAt(NOW - agoMs, NOW - agoMs)], { runId, job: `${name}-1` })])
    return { check, runId, deadline: NOW - agoMs + 30 * MINUTE }
  }

  it('is listed from its deadline until it is explained, and its flip says what its pods do', async () => {
    const { check, runId, deadline } = await addRun('nightly')
    expect(await runs('nightly', deadline - 1)).toEqual([])
    const found = await runs('nightly', deadline)
    expect(found).toEqual([{ resource: check.resource, source: 'nightly', runId, deadlineAt: deadline }])
    const detail = 'pod nightly-1-x7k2p on node worker-3'
    await see(deadline, [detailOf(check, deadline, { job: 'nightly-1', detail })])
    expect(await runs('nightly', deadline)).toEqual([])
    expect(await expire()).toEqual(['overran'])
    expect(await flipsOf(t, check.key)).toMatchObject([
      { reason: 'overran', detail: `Job nightly-1 has run for longer than 1800 s: ${detail}`, job: 'nightly-1' },
    ])
  })

  it('says nothing of another Job or deadline, and is cut to the length of a detail', async () => {
    const [own, otherJob, before] = [await addRun('own'), await addRun('other'), await addRun('before')]
    const { deadline } = own
    const detail = 'x'.repeat(1_024)
    await see(deadline, [
      detailOf(own.check, deadline, { job: 'own-1', detail }),
      detailOf(otherJob.check, deadline, { job: 'other-2', detail }),
      detailOf(before.check, deadline - 1, { job: 'before-1', detail }),
    ])
    expect(await expire()).toEqual(['overran', 'overran', 'overran'])
    const said = async ({ check }: typeof own) => (await flipsOf(t, check.key))[0]!.detail
    expect(await said(own)).toBe(`Job own-1 has run for longer than 1800 s: ${detail}`.slice(0, 1_024))
    expect(await said(otherJob)).toBe('Job other-1 has run for longer than 1800 s')
    expect(await said(before)).toBe('Job before-1 has run for longer than 1800 s')
  })

  it('is listed where it takes its check down: not beside an earlier deadline, nor while that is down or elsewhere', async () => {
    // Its slot of 11:00 was due at 11:05, and its run should have ended at 11:00 and at 11:10.
    const { runId } = await addRun('first', 90 * MINUTE)
    expect((await runs('first', NOW)).map((run) => run.runId)).toEqual([runId])
    const { check } = await addRun('second', 80 * MINUTE)
    expect((await stateOf(t, check.key)).dueAt).toBe(DUE)
    expect(await runs('second', NOW)).toEqual([])
    await t.database.query('update check_states set due_at = null, job_area = $1', ['other'])
    expect(await runs('second', NOW)).toEqual([])
    await t.database.query('update check_states set job_area = $1, status = 2', [CLUSTER])
    expect(await runs('second', NOW)).toEqual([])
    await t.database.query('update check_states set status = 1', [])
    expect(await runs('second', NOW)).toHaveLength(1)
  })
})

describe('a controller that starts', () => {
  it('finds what is recorded of runs', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    const [running, succeeded, failed, deleted, fresh] = Array.from({ length: 5 }, () => randomUUID())
    await recordJobs(t.context, [
      reportOf(check, [startAt(NOW)], { runId: running! }),
      reportOf(check, [startAt(NOW), successAt(NOW)], { runId: succeeded! }),
      reportOf(check, [failAt(NOW)], { runId: failed! }),
      reportOf(check, [startAt(NOW), deletedAt(NOW, 'x')], { runId: deleted! }),
    ])
    const runs = [running, succeeded, failed, deleted, fresh].map((runId) => ({
      resource: check.resource,
      runId: runId!,
      at: NOW,
    }))
    const unknown = { resource: { ...check.resource, name: 'gone' }, runId: succeeded!, at: NOW }
    const ends = ['success', 'fail', 'log'] as const
    const known = await findRecorded(t.context, [unknown, ...runs])
    expect(known.map((types) => types && [...types].toSorted())).toEqual(
      [
        null,
        ['start'],
        ['start', 'suspend', ...ends],
        ['suspend', ...ends],
        ['start', 'suspend', ...ends],
        ['suspend'],
      ].map((types) => types?.toSorted() ?? null),
    )
  })

  it('takes runs that are older than the pruned history for recorded', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: 9 * HOUR })
    const reports = [8, 6, 4, 2].map((hours) => reportOf(check, [successAt(NOW - hours * HOUR)]))
    await recordJobs(t.context, reports)
    const run = (hours: number) => ({ resource: check.resource, runId: randomUUID(), at: NOW - hours * HOUR })
    const first = run(9)
    expect(await findRecorded(t.context, [first])).toEqual([new Set(['suspend'])])
    await pruneAll(t, { maxPings: 2 })
    const [old, recent] = [run(7), run(3)]
    expect(await findRecorded(t.context, [old, recent])).toEqual([
      new Set(['start', 'success', 'fail', 'log', 'suspend']),
      new Set(['suspend']),
    ])
  })

  it('closes runs whose Job is gone without a record, and leaves the others', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    const [gone, open] = [randomUUID(), randomUUID()]
    await recordJobs(
      t.context,
      [gone, open].map((runId) => reportOf(check, [startAt(NOW)], { runId })),
    )
    await abandonRuns(t.context, check.resource, [gone, randomUUID()])
    expect(await stateOf(t, check.key)).toMatchObject({ runs: [{ id: open }], pingsTotal: 2 })
    const { version } = await stateOf(t, check.key)
    await abandonRuns(t.context, check.resource, [gone])
    await abandonRuns(t.context, { ...check.resource, name: 'gone' }, [open])
    expect((await stateOf(t, check.key)).version).toBe(version)
  })

  it('does not wait for a check that another transaction holds, to close its runs', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    const runId = randomUUID()
    await recordJobs(t.context, [reportOf(check, [startAt(NOW)], { runId })])
    const holding = await openTransaction(t, (tx) =>
      tx.query('select from check_states where check_key = $1 for update', [check.key]),
    )
    expect(await abandonRuns(t.context, check.resource, [runId])).toBe('held')
    await holding.rollback()
    expect(await abandonRuns(t.context, check.resource, [runId])).toBe('closed')
    expect(await stateOf(t, check.key)).toMatchObject({ runs: null })
  })

  it('lists the checks of its cluster, with the open runs of Jobs alone', async () => {
    const followed = [await addOverdue('a'), await addFollowed(t, 'b', { agoMs: HOUR / 2 })] as const
    await addFollowed(t, 'pinged', { spec: { jobArea: null } })
    await addFollowed(t, 'elsewhere', { spec: { jobArea: 'other' } })
    await saveSource(t.database, followed[0].key, 'nightly')
    const runId = randomUUID()
    await recordJobs(t.context, [reportOf(followed[1], [startAt(NOW - MINUTE)], { runId, source: 'b' })])
    await ping(t.database, followed[1], 'start', NOW, { runId: randomUUID() })
    await ping(t.database, followed[1], 'start', NOW)
    await see(1, [detailOf(followed[0], DUE, { source: 'nightly' })])
    const listed = await listFollowed(t.database, CLUSTER)
    expect(listed).toEqual([
      {
        key: followed[0].key,
        resource: followed[0].resource,
        source: 'nightly',
        createdAt: NOW - HOUR - 30 * MINUTE,
        status: 'new',
        dueAt: DUE,
        graceMs: 300_000,
        openJobRuns: [],
        explainedFor: DUE,
      },
      expect.objectContaining({ key: followed[1].key, source: 'b', openJobRuns: [runId], explainedFor: null }),
    ])
    expect(await listFollowed(t.database, CLUSTER, followed[0].key)).toEqual([listed[1]])
    expect(await listFollowed(t.database, CLUSTER, followed[1].key)).toEqual([])
    expect(await listFollowedDue(t.database, [CLUSTER], DUE - 1)).toEqual([])
    expect(await listFollowedDue(t.database, [CLUSTER], DUE)).toEqual([listed[0]])
    expect(await listFollowedDue(t.database, [`${CLUSTER}/payments`, 'other'], DUE)).toEqual([])
    // Those too whose area has changed since they were declared.
    await t.database.query('update check_states set job_area = $2 where check_key = $1', [
      followed[0].key,
      `${CLUSTER}/a`,
    ])
    expect(await listFollowed(t.database, CLUSTER)).toEqual(listed)
    expect(await listFollowedDue(t.database, [CLUSTER, `${CLUSTER}/a`], DUE)).toEqual([listed[0]])
    await t.database.query('update check_states set due_at = $1, wake_at = $1', [new Date(DUE)])
    expect(await listFollowedDue(t.database, [CLUSTER, `${CLUSTER}/a`], DUE, 2)).toHaveLength(2)
    expect(await listFollowedDue(t.database, [CLUSTER, `${CLUSTER}/a`], DUE, 1)).toHaveLength(1)
  })
})

describe('the areas for which it matters now what Jobs report', () => {
  /** Checks of the areas `a` and `b`. */
  async function open() {
    const [a, b] = [
      await addFollowed(t, 'a', { spec: { jobArea: 'a' } }),
      await addFollowed(t, 'b', { spec: { jobArea: 'b' } }),
    ]
    await addFollowed(t, 'pinged', { spec: { jobArea: null } })
    const set = ({ key }: Followed, wakeAt: number | null, dueAt: number | null, graceSeconds = 300) =>
      t.database.query('update check_states set wake_at = $2, due_at = $3, grace_seconds = $4 where check_key = $1', [
        key,
        wakeAt === null ? null : new Date(wakeAt),
        dueAt === null ? null : new Date(dueAt),
        graceSeconds,
      ])
    await set(a, null, null)
    await set(b, null, null)
    const at = (until: number, areas = ['a', 'b', 'c']) => listDueAreas(t.database, areas, until, MINUTE)
    return { a, b, set, at }
  }

  it('are those with a check that is to be looked at', async () => {
    const { a, b, set, at } = await open()
    expect(await at(DUE)).toEqual([])
    // Of a later deadline, as after a run: the time to look is an old one.
    await set(a, DUE, DUE + HOUR)
    await set(b, DUE + 1, null)
    expect(await at(DUE - 1)).toEqual([])
    expect(await at(DUE)).toEqual(['a'])
    expect(await at(DUE + 1)).toEqual(['a', 'b'])
    expect(await at(DUE + 1, ['b'])).toEqual(['b'])
  })

  it.each([
    ['a minute before the deadline', 300, MINUTE],
    ['half of a short grace time before the deadline', 61, 30_500],
  ])('are from %s on those of which its reason is looked for', async (_, graceSeconds, aheadMs) => {
    const { a, b, set, at } = await open()
    await set(a, DUE, DUE, graceSeconds)
    await set(b, DUE + HOUR, DUE + HOUR, graceSeconds)
    expect(await at(DUE - aheadMs - 1)).toEqual([])
    expect(await at(DUE - aheadMs)).toEqual(['a'])
  })
})

it('up to when Jobs are recorded is listed of the clusters in which a check follows a CronJob', async () => {
  await see(NOW, [])
  await markSeen(t.context, seenOf(['idle'], NOW, 'idle'), [])
  expect(await listSeen(t.database, 10)).toEqual([])
  const check = await addOverdue()
  await saveSource(t.database, check.key, 'nightly')
  expect(await listSeen(t.database, 10)).toEqual([{ cluster: CLUSTER, seenAt: NOW }])
})

it('it is that of the namespace which was seen last the longest ago, of those that are watched and followed', async () => {
  const areas = ['a', 'b', 'unused', 'left'].map((namespace) => areaOf(CLUSTER, namespace))
  for (const [index, jobArea] of areas.entries()) {
    if (index === 2) continue
    const { key } = await addOverdue(`nightly-${index}`, jobArea)
    await saveSource(t.database, key, 'nightly')
  }
  const seenAt = async () => (await listSeen(t.database, 10)).map(({ cluster, seenAt }) => [cluster, seenAt])
  for (const [index, area] of areas.entries())
    await markSeen(t.context, seenOf([area], NOW - index * MINUTE, CLUSTER, areas), [])
  expect(await seenAt()).toEqual([[CLUSTER, NOW - 3 * MINUTE]])
  // A namespace that is watched no longer holds nothing back.
  await markSeen(t.context, seenOf(areas.slice(0, 1), NOW + 1, CLUSTER, areas.slice(0, 3)), [])
  expect(await seenAt()).toEqual([[CLUSTER, NOW - MINUTE]])
  const { rows } = await t.database.query<{ area: string }>('select area from seen_areas order by area')
  expect(rows.map(({ area }) => area)).toEqual(areas.slice(0, 3))
})

it('the checks that follow CronJobs are read once, however many namespaces have none', async () => {
  const areas = Array.from({ length: 50 }, (_, index) => areaOf(CLUSTER, `empty-${index}`))
  await markSeen(t.context, seenOf(areas, NOW), [])
  const { key } = await addOverdue()
  await saveSource(t.database, key, 'nightly')
  await t.database.query(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), project_id, name, 'copy-' || n, now()
        from checks, generate_series(1, 5000) n where key = $1 returning key),
      states as (
        insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, job_area)
        select key, 3600, 300, 0, now(), now(), $2 from made)
      insert into cron_jobs (check_key, name) select key, 'nightly' from made`,
    [key, CLUSTER],
  )
  await t.database.query('analyze')
  const query = vi.spyOn(t.database, 'query')
  await listSeen(t.database, 10)
  const { text, values } = query.mock.calls[0]![0] as Statement
  query.mockRestore()
  const { rows } = await t.database.query<{ 'QUERY PLAN': string }>(`explain (analyze, timing off) ${text}`, values)
  const scans = rows.map((row) => row['QUERY PLAN']).filter((line) => /on (cron_jobs|check_states) .*loops=/.test(line))
  expect(scans.length).toBeGreaterThan(0)
  for (const scan of scans) expect(scan).toMatch(/loops=1\)/)
})

it('the source of a check is saved, changed and removed with it', async () => {
  const check = await addOverdue()
  await saveSource(t.database, check.key, 'nightly')
  await saveSource(t.database, check.key, 'weekly')
  expect(await cronJobOf(t, check.key)).toEqual({ name: 'weekly', lastRun: null, jobs: {} })
  await saveSource(t.database, check.key, null)
  expect(await cronJobOf(t, check.key)).toBeNull()
})

it('where the limit of its runs is set is saved when it changes, and nothing is written when it does not', async () => {
  const check = await addOverdue()
  /** What is stored, and whether the transaction had to write. */
  const save = (limitFrom?: string) =>
    t.database.transaction(async (tx) => {
      await saveSource(tx, check.key, 'nightly', limitFrom)
      const { rows } = await tx.query<{ from: string | null; wrote: boolean }>(
        `select limit_from as "from", pg_current_xact_id_if_assigned() is not null as wrote from cron_jobs where check_key = $1`,
        [check.key],
      )
      return rows[0]
    })
  expect(await save()).toEqual({ from: null, wrote: true })
  expect(await save()).toEqual({ from: null, wrote: false })
  expect(await save('the default')).toEqual({ from: 'the default', wrote: true })
  expect(await save('the default')).toEqual({ from: 'the default', wrote: false })
  expect(await save('its HeartbeatCheck')).toEqual({ from: 'its HeartbeatCheck', wrote: true })
  // Not known now: as before.
  expect(await save()).toEqual({ from: 'its HeartbeatCheck', wrote: false })
})

it('what is seen registers no cluster: a controller that may read its uid later takes the name at once', async () => {
  await see(NOW, [])
  expect(await takeClusterName(t.database, { name: CLUSTER, uid: 'uid', holderSeconds: 30 })).toBe(true)
})

describe('an area that was never seen', () => {
  const unseen = (areas: readonly string[]) => saveUnseen(t.database, CLUSTER, areas)
  const now = async () => (await t.database.query<{ now: number }>('select clock_timestamp() as now')).rows[0]!.now

  it('is listed since it is watched, without a check and whatever comes', async () => {
    const from = await now()
    await unseen([CLUSTER])
    const [first] = await listSeen(t.database, 10)
    expect(first!.cluster).toBe(CLUSTER)
    expect(first!.seenAt).toBeGreaterThanOrEqual(Math.floor(from))
    expect(first!.seenAt).toBeLessThanOrEqual(await now())
    await unseen([CLUSTER])
    expect(await listSeen(t.database, 10)).toEqual([first])
  })

  it('is forgotten with its HeartbeatChecks, and when it is seen', async () => {
    await unseen([CLUSTER])
    await unseen([])
    expect(await listSeen(t.database, 10)).toEqual([])
    await unseen([CLUSTER])
    const later = (await now()) + HOUR
    await markSeen(t.context, seenOf([CLUSTER], later), [])
    expect(await listSeen(t.database, 10)).toEqual([])
    await saveSource(t.database, (await addOverdue()).key, 'nightly')
    expect(await listSeen(t.database, 10)).toEqual([{ cluster: CLUSTER, seenAt: later }])
    // One that was seen is not taken for one that never was.
    await unseen([CLUSTER])
    await unseen([])
    expect(await listSeen(t.database, 10)).toEqual([{ cluster: CLUSTER, seenAt: later }])
  })

  it('has no deadline that passes', async () => {
    await addOverdue()
    await unseen([CLUSTER])
    expect(await expire()).toEqual([])
    expect(await oldestOverdueSeconds(t.database)).toBe(0)
  })
})
