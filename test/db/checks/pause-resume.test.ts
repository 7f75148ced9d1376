import { beforeEach, describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { doerOf } from '../../../src/domain/access.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { listFlips } from '../../support/lists.ts'
import { eventTypesOf, versionsOf, wakeOf } from '../../support/state.ts'
import { addCheck, countRows, cronSpec, manageByKubernetes, NOW, openTransaction, ping, useFixture } from './fixture.ts'

const fixture = useFixture()
let check: CheckRecord
const { tenant } = fixture
beforeEach(async () => {
  check = await addCheck(fixture, tenant)
})

const pause = () => pauseCheck(fixture.context, tenant, check.id)
const resume = () => resumeCheck(fixture.context, tenant, check.id)
const pinged = (type: 'success' | 'start', at: number) =>
  fixture.database.transaction((tx) => ping(tx, check, type, at))
const reasons = async () =>
  (await listFlips(fixture.context, tenant, check.id, { limit: 99, after: null })).rows.map(({ from, to, reason }) => [
    from,
    to,
    reason,
  ])
const events = () => eventTypesOf(fixture, check)
const versions = () => versionsOf(fixture, check)

describe('pausing', () => {
  it('expects nothing any more, drops open runs, and writes an event', async () => {
    await pinged('success', NOW)
    await pinged('start', NOW + MINUTE)
    fixture.clock.time = NOW + 2 * MINUTE
    const paused = await pause()
    expect(paused.state).toEqual({
      status: 'paused',
      since: NOW + 2 * MINUTE,
      reason: 'paused',
      lastPingAt: NOW,
      lastOutcome: 'success',
      lastSuccessAt: NOW,
      lastDurationMs: null,
      lastStartAt: NOW + MINUTE,
      expectedAt: null,
      dueAt: null,
      runs: [],
      pingsTotal: 2,
      incidentSince: null,
      changes: [],
      notified: null,
      quietAt: null,
      hold: null,
      escalation: null,
      warnedAt: null,
      consecutiveFailures: 0,
      consecutiveMisses: 0,
      pause: { by: doerOf(tenant), until: null, comment: null },
      acknowledged: null,
      repeats: [],
      downNotifiedAt: null,
      reminders: 0,
    })
    expect(await getCheck(fixture.context, tenant, check.id)).toEqual(paused)
    expect((await reasons())[0]).toEqual(['up', 'paused', 'paused'])
    expect(await events()).toEqual(['check.paused'])
    expect(await wakeOf(fixture, check)).toBeNull()
  })

  it('changes nothing of a paused check', async () => {
    const paused = await pause()
    const before = await versions()
    fixture.clock.time = NOW + HOUR
    expect(await pause()).toEqual(paused)
    expect(await versions()).toEqual(before)
    expect(await reasons()).toHaveLength(2)
    expect(await events()).toHaveLength(1)
  })

  it('counts after the ping that was committed while it waited', async () => {
    const pinging = await openTransaction(fixture, (tx) => ping(tx, check, 'success', NOW + 5))
    const pausing = pinging.commitBefore(() => pause())
    expect((await pausing).state).toMatchObject({ status: 'paused', lastPingAt: NOW + 5, dueAt: null })
    expect(await reasons()).toEqual([
      ['up', 'paused', 'paused'],
      ['new', 'up', 'first_success'],
      [null, 'new', 'created'],
    ])
    expect(await countRows(fixture, 'pings', check.key)).toBe(1)
  })

  it('twice at once makes one flip', async () => {
    await Promise.all([pause(), pause(), pause()])
    expect(await reasons()).toHaveLength(2)
  })

  it('is rejected for a stored schedule that cannot be read, with the schedule named', async () => {
    check = await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *') })
    await fixture.database.query(`update check_states set schedule = 'broken' where schedule is not null`)
    await expect(pause()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('schedule') })
  })
})

describe('resuming', () => {
  it('makes the check new, arms it from now on, and writes an event', async () => {
    await pinged('success', NOW)
    await pause()
    fixture.clock.time = NOW + 24 * HOUR
    const resumed = await resume()
    expect(resumed.state).toMatchObject({
      status: 'new',
      since: NOW + 24 * HOUR,
      lastPingAt: NOW,
      expectedAt: NOW + 25 * HOUR,
      dueAt: NOW + 25 * HOUR + 5 * MINUTE,
    })
    expect(await getCheck(fixture.context, tenant, check.id)).toEqual(resumed)
    expect((await reasons())[0]).toEqual(['paused', 'new', 'resumed'])
    expect(await events()).toEqual(['check.paused', 'check.resumed'])
    // In time for the deadline, and before it, to see whether the check is late.
    expect(await wakeOf(fixture, check)).toBeGreaterThan(NOW + 24 * HOUR)
    expect(await wakeOf(fixture, check)).toBeLessThanOrEqual(resumed.state.dueAt!)
  })

  it('changes nothing of a check that is not paused', async () => {
    expect(await resume()).toMatchObject(check)
    await pinged('success', NOW)
    const up = await getCheck(fixture.context, tenant, check.id)
    const before = await versions()
    fixture.clock.time = NOW + MINUTE
    expect(await resume()).toEqual(up)
    expect(await versions()).toEqual(before)
    expect(await reasons()).toHaveLength(2)
    expect(await events()).toEqual([])
  })
})

describe('who may pause and resume', () => {
  it('the API pauses and resumes a check of a resource that leaves spec.suspend unset', async () => {
    await manageByKubernetes(fixture, check, null)
    expect((await pause()).state.status).toBe('paused')
    expect((await resume()).state.status).toBe('new')
  })

  it.each([true, false])('the API is rejected while spec.suspend is %s', async (suspend) => {
    await manageByKubernetes(fixture, check, suspend)
    for (const act of [pause, resume]) {
      await expect(act()).rejects.toMatchObject({
        code: 'managed_by_kubernetes',
        message: expect.stringContaining(
          `HeartbeatCheck payments/nightly in cluster default sets spec.suspend to ${suspend}`,
        ),
      })
    }
    expect(await reasons()).toHaveLength(1)
  })
})
