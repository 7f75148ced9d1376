import { describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { type CheckUpdate, updateCheck } from '../../../src/checks/update-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { DAY, HOUR, MINUTE } from '../../support/builders.ts'
import { listFlips } from '../../support/lists.ts'
import { versionsOf, wakeOf } from '../../support/state.ts'
import { useEach } from '../../support/use.ts'
import {
  addCheck,
  contextWithin,
  cronSpec,
  manageByKubernetes,
  NOW,
  openTransaction,
  periodSpec,
  ping,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))

const update = ({ id }: CheckRecord, given: CheckUpdate) => updateCheck(fixture.context, tenant, id, given)
const read = ({ id }: CheckRecord) => getCheck(fixture.context, tenant, id)
const pinged = (check: CheckRecord, type: 'success' | 'start' | 'fail', at: number) =>
  fixture.database.transaction((tx) => ping(tx, check, type, at))
/** In time for the deadline, and perhaps before it, to see whether the check is late. */
async function expectWoken(check: CheckRecord, deadline: number): Promise<void> {
  const wakeAt = await wakeOf(fixture, check)
  expect(wakeAt).toBeGreaterThan(fixture.clock.time)
  expect(wakeAt).toBeLessThanOrEqual(deadline)
}

describe('an update of texts', () => {
  it('changes what is given and keeps the rest', async () => {
    const check = await addCheck(fixture, tenant, { slug: 'nightly', description: 'old' })
    const renamed = await update(check, { name: 'Weekly' })
    expect(renamed).toMatchObject({
      name: 'Weekly',
      slug: 'nightly',
      description: 'old',
      spec: check.spec,
      state: check.state,
    })
    expect(await read(check)).toEqual(renamed)
    expect(await update(check, { slug: 'weekly', description: null })).toMatchObject({
      name: 'Weekly',
      slug: 'weekly',
      description: null,
    })
    expect(await read(check)).toMatchObject({ name: 'Weekly', slug: 'weekly', description: null })
  })

  it('is a conflict that names the slug when it is taken, and changes nothing else either', async () => {
    await addCheck(fixture, tenant, { slug: 'taken' })
    await expect(update(check, { slug: 'taken', graceSeconds: 1 })).rejects.toMatchObject({
      code: 'slug_taken',
      message: expect.stringContaining('"taken"'),
    })
    expect(await read(check)).toEqual({ ...check, kubernetesSuspend: null })
  })

  it('can take the slug of a removed check', async () => {
    const removed = await addCheck(fixture, tenant, { slug: 'taken' })
    await removeCheck(fixture.context, tenant, removed.id)
    expect(await update(check, { slug: 'taken' })).toMatchObject({ slug: 'taken' })
  })

  it('is a conflict for two updates that swap their slugs at once', async () => {
    const one = await addCheck(fixture, tenant, { slug: 'one' })
    const two = await addCheck(fixture, tenant, { slug: 'two' })
    const outcomes = await Promise.allSettled([update(one, { slug: 'two' }), update(two, { slug: 'one' })])
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'slug_taken' } })
    expect([(await read(one)).slug, (await read(two)).slug]).toEqual(['one', 'two'])
  })
})

describe('an update that changes nothing', () => {
  it.each<[string, CheckUpdate]>([
    ['nothing given', {}],
    ['the same period', { periodSeconds: 3_600 }],
    [
      'the same of everything',
      {
        name: 'Nightly backup',
        slug: 'nightly-backup',
        description: null,
        periodSeconds: 3_600,
        graceSeconds: 300,
        maxRuntimeSeconds: null,
      },
    ],
  ])('writes no row and no history: %s', async (_, given) => {
    await pinged(check, 'success', NOW)
    const before = { versions: await versionsOf(fixture, check), record: await read(check) }
    fixture.clock.time = NOW + 5 * MINUTE
    expect(await update(check, given)).toEqual(before.record)
    expect(await versionsOf(fixture, check)).toEqual(before.versions)
    expect((await listFlips(fixture.context, tenant, check.id, { limit: 9, after: null })).rows).toHaveLength(2)
  })

  it('writes no row for the same schedule either', async () => {
    const check = await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *', { timeZone: 'Europe/Berlin' }) })
    const versions = await versionsOf(fixture, check)
    await update(check, { schedule: '0 2 * * *' })
    await update(check, { timeZone: 'Europe/Berlin' })
    expect(await versionsOf(fixture, check)).toEqual(versions)
  })
})

describe('an update of the schedule', () => {
  it('replaces the period, and a period the schedule', async () => {
    expect((await update(check, { schedule: '0 2 * * *' })).spec).toMatchObject({
      periodSeconds: null,
      schedule: '0 2 * * *',
      timeZone: 'UTC',
    })
    expect((await update(check, { timeZone: 'Europe/Berlin' })).spec).toMatchObject({
      schedule: '0 2 * * *',
      timeZone: 'Europe/Berlin',
    })
    expect((await update(check, { schedule: '0 3 * * *' })).spec).toMatchObject({
      schedule: '0 3 * * *',
      timeZone: 'Europe/Berlin',
    })
    expect((await update(check, { periodSeconds: 60 })).spec).toMatchObject({
      periodSeconds: 60,
      schedule: null,
      timeZone: null,
    })
    expect((await read(check)).spec).toEqual(periodSpec({ periodSeconds: 60 }))
  })

  it.each<[string, CheckUpdate]>([
    ['schedule', { schedule: '0 2 * * *', periodSeconds: 60 }],
    ['timeZone', { timeZone: 'UTC' }],
  ])('is rejected with a fault of %s: %j', async (field, given) => {
    await expect(update(check, { ...given, name: 'Other' })).rejects.toMatchObject({ code: 'invalid_request', field })
    expect(await read(check)).toEqual({ ...check, kubernetesSuspend: null })
  })

  it('is rejected with a zone beside a period that replaces a schedule', async () => {
    const check = await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *') })
    await expect(update(check, { periodSeconds: 60, timeZone: 'UTC' })).rejects.toMatchObject({ field: 'timeZone' })
  })

  it('can replace a stored schedule that cannot be read', async () => {
    const check = await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *') })
    await fixture.database.query(`update check_states set schedule = 'broken' where check_key = $1`, [check.key])
    await expect(update(check, { graceSeconds: 1 })).rejects.toMatchObject({
      code: 'invalid_request',
      field: 'schedule',
    })
    await expect(update(check, { name: 'Other' })).resolves.toMatchObject({ name: 'Other' })
    await expect(update(check, { periodSeconds: 60 })).resolves.toMatchObject({ spec: { schedule: null } })
  })
})

describe('the deadline after an update', () => {
  it('is that of the new spec, and the evaluator is woken when the check may be late', async () => {
    await pinged(check, 'success', NOW)
    fixture.clock.time = NOW + MINUTE
    const longer = await update(check, { periodSeconds: 86_400 })
    expect(longer.state).toMatchObject({
      status: 'up',
      lastPingAt: NOW,
      expectedAt: NOW + DAY,
      dueAt: NOW + DAY + 5 * MINUTE,
    })
    expect(await read(check)).toEqual(longer)
    expect(await wakeOf(fixture, check)).toBe(longer.state.expectedAt)
    const shorter = await update(check, { periodSeconds: 3_600, graceSeconds: 60 })
    expect(shorter.state).toMatchObject({ expectedAt: NOW + HOUR, dueAt: NOW + HOUR + MINUTE })
    expect(await wakeOf(fixture, check)).toBe(shorter.state.expectedAt)
  })

  it('follows the new longest run time for an open run', async () => {
    await pinged(check, 'start', NOW)
    fixture.clock.time = NOW + MINUTE
    const { state } = await update(check, { maxRuntimeSeconds: 7_200 })
    expect(state.runs).toEqual([{ id: null, startedAt: NOW, deadlineAt: NOW + 2 * HOUR }])
    expect(await read(check)).toMatchObject({ state })
    await expectWoken(check, NOW + 2 * HOUR)
    expect((await update(check, { maxRuntimeSeconds: null })).state.runs).toEqual([
      { id: null, startedAt: NOW, deadlineAt: null },
    ])
  })

  it('is not set for a check that waits for nothing', async () => {
    const fresh = await addCheck(fixture, tenant)
    expect((await update(fresh, { periodSeconds: 60 })).state.dueAt).toBeNull()
    const paused = await addCheck(fixture, tenant)
    await pauseCheck(fixture.context, tenant, paused.id)
    expect((await update(paused, { periodSeconds: 60 })).state).toMatchObject({ status: 'paused', dueAt: null })
    const down = await addCheck(fixture, tenant)
    await pinged(down, 'fail', NOW)
    expect((await update(down, { periodSeconds: 60 })).state).toMatchObject({ status: 'down', dueAt: null })
    expect([await wakeOf(fixture, fresh), await wakeOf(fixture, paused), await wakeOf(fixture, down)]).toEqual([
      null,
      null,
      null,
    ])
  })
})

describe('who may update', () => {
  it('the API is rejected for a check that Kubernetes manages', async () => {
    await manageByKubernetes(fixture, check, null)
    await expect(update(check, {})).rejects.toMatchObject({
      code: 'managed_by_kubernetes',
      message: 'check is managed by HeartbeatCheck payments/nightly in cluster default; change the resource instead',
    })
  })
})

describe('at the same time', () => {
  it('two updates of different fields both count', async () => {
    await Promise.all([
      update(check, { name: 'Weekly' }),
      update(check, { graceSeconds: 60 }),
      update(check, { periodSeconds: 120 }),
    ])
    expect(await read(check)).toMatchObject({ name: 'Weekly', spec: { periodSeconds: 120, graceSeconds: 60 } })
  })

  it('an update sees the ping that was committed while it waited', async () => {
    const pinging = await openTransaction(fixture, (tx) => ping(tx, check, 'success', NOW))
    expect((await pinging.commitBefore(() => update(check, { periodSeconds: 60 }))).state).toMatchObject({
      status: 'up',
      lastPingAt: NOW,
      expectedAt: NOW + MINUTE,
      dueAt: NOW + 6 * MINUTE,
    })
  })

  it('an update of a check that is being removed finds none', async () => {
    const removing = await openTransaction(fixture, (tx) => removeCheck(contextWithin(fixture, tx), tenant, check.id))
    await expect(removing.commitBefore(() => update(check, { name: 'x' }))).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('a schedule that only Kubernetes reads, of a check that was declared', () => {
  const stored = async (schedule: string) => {
    const check = await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *') })
    await fixture.database.query(`update check_states set schedule = $1, dialect = 'kubernetes' where check_key = $2`, [
      schedule,
      check.key,
    ])
    return check
  }

  it.each(['0 2 ? * *', '1/1439 2 * * *', '+0 2 * * *', '0,,0 2 * * *', '0 2 *-5 * *', '0 2\u00a0* * *', '0\r2 * * *'])(
    'stays so until another one is given: %j',
    async (schedule) => {
      const check = await stored(schedule)
      expect(await pinged(check, 'success', NOW)).toBe('applied')
      const { expectedAt } = (await read(check)).state
      expect(new Date(expectedAt!).getUTCHours()).toBe(2)
      const { spec, state } = await update(check, { graceSeconds: 61 })
      expect(spec).toMatchObject({ schedule, dialect: 'kubernetes', graceSeconds: 61 })
      expect(state).toMatchObject({ expectedAt, dueAt: expectedAt! + 61_000 })
      expect(await read(check)).toMatchObject({ spec, state })
    },
  )
})
