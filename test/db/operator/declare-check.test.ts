import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createCheck } from '../../../src/checks/create-check.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { DAY, HOUR, MINUTE } from '../../support/builders.ts'
import { wakeOf } from '../../support/state.ts'
import {
  addCheck,
  addProject,
  contextWithin,
  cronSpec,
  NOW,
  openTransaction,
  periodSpec,
  ping,
} from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

describe('a new resource', () => {
  it('gets a check of its own that waits for its first completion at once', async () => {
    const { check, change } = await t.declare({ name: 'Nachtsicherung', description: 'all of it' })
    expect(change).toBe('created')
    expect(check).toEqual({
      key: expect.any(Number),
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      publicId: expect.stringMatching(/^[0-9a-f-]{14}4/),
      projectId: t.tenant.project,
      name: 'Nachtsicherung',
      slug: 'nightly-backup',
      tags: [],
      channels: null,
      dependsOn: [],
      labels: {},
      description: 'all of it',
      managedBy: 'kubernetes',
      kubernetes: RESOURCE,
      kubernetesSuspend: null,
      createdAt: NOW,
      updatedAt: NOW,
      spec: periodSpec(),
      state: {
        status: 'new',
        since: NOW,
        reason: 'created',
        lastPingAt: null,
        lastOutcome: null,
        lastSuccessAt: null,
        lastDurationMs: null,
        lastStartAt: null,
        expectedAt: NOW + HOUR,
        dueAt: NOW + HOUR + 5 * MINUTE,
        runs: [],
        pingsTotal: 0,
        incidentSince: null,
        changes: [],
        notified: null,
        quietAt: null,
        hold: null,
        escalation: null,
        warnedAt: null,
        consecutiveFailures: 0,
        consecutiveMisses: 0,
        pause: null,
        acknowledged: null,
        repeats: [],
        downNotifiedAt: null,
        reminders: 0,
      },
    })
    expect(await getCheck(t.context, t.tenant, check.id)).toEqual(check)
    expect(await t.read()).toEqual(check)
    expect(await wakeOf(t, check)).toBe(check.state.dueAt)
    expect(await t.flipsOf(check.key)).toEqual([[null, 0, 'created']])
    expect(await t.events()).toEqual([])
  })

  it('takes the next number when its slug is taken, and a slug of the right form whatever it is called', async () => {
    await addCheck(t, t.tenant, { slug: 'nightly-backup' })
    expect((await t.declare()).check.slug).toBe('nightly-backup-2')
    const dotted = { ...RESOURCE, name: `db.${'a'.repeat(200)}.example` }
    expect((await t.declare({ resource: dotted })).check.slug).toBe(`db-${'a'.repeat(97)}`)
  })

  it('gets another check than one of the same name in another cluster or namespace', async () => {
    const one = await t.declare()
    const two = await t.declare({ resource: { ...RESOURCE, cluster: 'eu-1' } })
    const three = await t.declare({ resource: { ...RESOURCE, namespace: 'billing' } })
    expect([one, two, three].map(({ change }) => change)).toEqual(['created', 'created', 'created'])
    expect(new Set([one, two, three].map(({ check }) => check.publicId)).size).toBe(3)
    expect(await t.read({ ...RESOURCE, cluster: 'eu-1' })).toEqual(two.check)
  })

  it('gets a paused check when it is suspended', async () => {
    const { check, change } = await t.declare({ suspend: true })
    expect(change).toBe('created')
    expect(check).toMatchObject({ kubernetesSuspend: true, state: { status: 'paused', expectedAt: null, dueAt: null } })
    expect(await t.read()).toEqual(check)
    expect(await wakeOf(t, check)).toBeNull()
    expect(await t.flipsOf(check.key)).toEqual([
      [null, 0, 'created'],
      [0, 3, 'paused'],
    ])
    expect((await t.declare({ suspend: true })).change).toBe('unchanged')
  })

  it('is rejected with a schedule that makes no sense, and leaves nothing', async () => {
    const declared = t.declare({ spec: cronSpec('every night') })
    await expect(declared).rejects.toMatchObject({ code: 'invalid_request', field: 'schedule' })
    expect(await t.read()).toBeNull()
  })

  it('has its schedule in UTC unless it names a zone', async () => {
    const spec = cronSpec('0 2 * * *', { timeZone: null })
    expect((await t.declare({ spec })).check.spec.timeZone).toBe('UTC')
    expect((await t.declare({ spec })).change).toBe('unchanged')
  })

  it('is rejected for a project that is gone', async () => {
    const refused = t.declare({ projectId: randomUUID() })
    await expect(refused).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
  })
})

describe('a resource whose check is as declared', () => {
  it('writes nothing, however often and however much later it comes', async () => {
    const { check } = await t.declare({ spec: cronSpec('0 2 * * *'), description: 'x', tags: ['a'] })
    await t.pinged(check, 'start', NOW + 1)
    await t.pinged(check, 'fail', NOW + 2)
    const before = await t.versionsOf(check.key)
    const down = await t.read()
    t.clock.time = NOW + DAY
    for (let i = 0; i < 3; i += 1) {
      const again = await t.declare({ spec: cronSpec('0 2 * * *'), description: 'x', tags: ['a'] })
      expect(again).toEqual({ check: down, change: 'unchanged' })
    }
    expect(await t.versionsOf(check.key)).toEqual(before)
  })

  it.each([true, false, null])('takes no lock either, spec.suspend being %s', async (suspend) => {
    const { check } = await t.declare({ suspend })
    const holding = await openTransaction(t, (tx) =>
      tx.query('select from check_states where check_key = $1 for update', [check.key]),
    )
    expect((await t.declare({ suspend })).change).toBe('unchanged')
    await holding.rollback()
  })
})

describe('a changed resource', () => {
  it('changes the texts and leaves the state alone', async () => {
    const { check } = await t.declare()
    const { check: renamed, change } = await t.declare({ name: 'Weekly', description: 'new', tags: ['b', 'a'] })
    expect(change).toBe('updated')
    expect(renamed).toEqual({ ...check, name: 'Weekly', description: 'new', tags: ['b', 'a'] })
    expect(await t.read()).toEqual(renamed)
    expect((await t.declare({ name: 'Weekly' })).check.description).toBeNull()
  })

  it('changes the spec, and no check goes down because of it', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'success', NOW)
    t.clock.time = NOW + 50 * MINUTE
    const spec = periodSpec({ periodSeconds: 60, graceSeconds: 120 })
    const { check: changed, change } = await t.declare({ spec })
    expect(change).toBe('updated')
    expect(changed.spec).toEqual(spec)
    expect(changed.state).toMatchObject({ status: 'up', expectedAt: NOW + MINUTE, dueAt: NOW + 52 * MINUTE })
    expect(await t.read()).toEqual(changed)
    // Before it too, to see whether the check is late.
    expect(await wakeOf(t, check)).toBeLessThanOrEqual(NOW + 52 * MINUTE)
    expect((await t.declare({ spec })).change).toBe('unchanged')
  })

  it('is rejected when it makes no sense any more, and its check stays as it was', async () => {
    const { check } = await t.declare()
    await expect(t.declare({ spec: cronSpec('61 * * * *'), name: 'X' })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect(await t.read()).toEqual(check)
  })

  it('suspends and resumes; unset it leaves the pause to the API', async () => {
    const { check } = await t.declare({ suspend: true })
    t.clock.time = NOW + HOUR
    const resumed = await t.declare({ suspend: false })
    expect(resumed).toMatchObject({
      change: 'updated',
      check: { kubernetesSuspend: false, state: { status: 'new', dueAt: NOW + 2 * HOUR + 5 * MINUTE } },
    })
    expect(await t.read()).toEqual(resumed.check)
    expect((await t.declare({ suspend: true })).check.state.status).toBe('paused')
    const unset = await t.declare({ suspend: null })
    expect(unset).toMatchObject({ change: 'updated', check: { kubernetesSuspend: null, state: { status: 'paused' } } })
    expect(await t.flipsOf(check.key)).toEqual([
      [null, 0, 'created'],
      [0, 3, 'paused'],
      [3, 0, 'resumed'],
      [0, 3, 'paused'],
    ])
    // It began paused: that is in the history, and no event.
    expect(await t.events()).toEqual(['check.resumed', 'check.paused'])
  })

  it('that begins suspended sends nothing', async () => {
    const { check } = await t.declare({ suspend: true })
    expect(check.state.status).toBe('paused')
    t.clock.time = NOW + MINUTE
    await t.retire()
    expect(await t.declare({ suspend: true })).toMatchObject({
      change: 'revived',
      check: { id: check.id, state: { status: 'paused' } },
    })
    expect(await t.events()).toEqual([])
    await t.declare({ suspend: false })
    await t.declare({ suspend: true })
    expect(await t.events()).toEqual(['check.resumed', 'check.paused'])
  })

  it('that is created again while its recipients know it as down says that it is paused', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'fail', NOW)
    await t.retire()
    t.clock.time = NOW + MINUTE
    expect((await t.declare({ suspend: true })).change).toBe('revived')
    expect(await t.events()).toEqual(['check.down', 'check.paused'])
  })

  it('is armed by the new schedule when it resumes with another one', async () => {
    await t.declare({ suspend: true })
    const { check } = await t.declare({ suspend: false, spec: cronSpec('0 13 * * *') })
    expect(check.state).toMatchObject({ status: 'new', expectedAt: NOW + HOUR })
  })

  it('moves its check to another project, with ids and history', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'success', NOW)
    const projectId = await addProject(t, t.tenant)
    await createCheck(t.context, t.tenant, { projectId, name: 'X', slug: 'nightly-backup', spec: periodSpec() })
    const { check: moved, change } = await t.declare({ projectId })
    expect(change).toBe('updated')
    expect(moved).toMatchObject({ id: check.id, publicId: check.publicId, projectId, slug: 'nightly-backup-2' })
    expect(moved.state).toMatchObject({ status: 'up', lastPingAt: NOW })
    expect(await t.read()).toEqual(moved)
    await expect(t.declare({ projectId: randomUUID() })).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('a check that was changed by SQL', () => {
  const change = (sql: string, key: number) => t.database.query(`update ${sql} = $1`, [key])

  it.each([
    ['its manager', `checks set managed_by = 'api' where key`],
    ['its period', `check_states set period_seconds = null, schedule = '0 2 * * *', time_zone = 'UTC' where check_key`],
    [
      'its schedule, into one that is none',
      `check_states set period_seconds = null, schedule = 'x', time_zone = 'y' where check_key`,
    ],
    ['its first deadline', 'check_states set expected_at = null, due_at = null, wake_at = null where check_key'],
  ])('is corrected: %s', async (_, sql) => {
    const { check } = await t.declare()
    await change(sql, check.key)
    expect(await t.read()).not.toEqual(check)
    expect(await t.declare()).toEqual({ check, change: 'updated' })
    expect(await wakeOf(t, check)).toBeLessThanOrEqual(check.state.dueAt!)
    expect(await wakeOf(t, check)).toBeGreaterThan(t.clock.time)
    expect((await t.declare()).change).toBe('unchanged')
  })

  it('is created again when it was deleted', async () => {
    const { check } = await t.declare()
    await t.database.query('delete from checks')
    const again = await t.declare()
    expect(again.change).toBe('created')
    expect(again.check.publicId).not.toBe(check.publicId)
  })
})

describe('declarations and others at the same time', () => {
  it('two controllers make one check', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    const second = first.commitBefore(() => t.declare({ name: 'Renamed' }))
    expect(await second).toMatchObject({ change: 'updated', check: { name: 'Renamed', slug: 'nightly-backup' } })
    const { rows } = await t.database.query('select from checks')
    expect(rows).toHaveLength(1)
  })

  it('the resource gets the next number when the API takes the slug first', async () => {
    const creating = await openTransaction(t, (tx) =>
      createCheck(contextWithin(t, tx), t.tenant, {
        projectId: t.tenant.project,
        name: 'X',
        slug: 'nightly-backup',
        spec: periodSpec(),
      }),
    )
    expect((await creating.commitBefore(() => t.declare())).check.slug).toBe('nightly-backup-2')
  })

  it('a check that moves gets the next number when the API takes the slug first', async () => {
    await t.declare()
    const projectId = await addProject(t, t.tenant)
    const creating = await openTransaction(t, (tx) =>
      createCheck(contextWithin(t, tx), t.tenant, { projectId, name: 'X', slug: 'nightly-backup', spec: periodSpec() }),
    )
    const moving = creating.commitBefore(() => t.declare({ projectId }))
    expect((await moving).check).toMatchObject({ projectId, slug: 'nightly-backup-2' })
  })

  it('a ping that was first counts: the new spec is applied to what it made', async () => {
    const { check } = await t.declare()
    const pinging = await openTransaction(t, (tx) => ping(tx, check, 'success', NOW + MINUTE))
    const declaring = pinging.commitBefore(() => t.declare({ spec: periodSpec({ periodSeconds: 7_200 }) }))
    expect((await declaring).check.state).toMatchObject({
      status: 'up',
      lastPingAt: NOW + MINUTE,
      expectedAt: NOW + MINUTE + 2 * HOUR,
    })
  })

  it('a pause through the API that was first is undone by spec.suspend', async () => {
    const { check } = await t.declare()
    const pausing = await openTransaction(t, (tx) => pauseCheck(contextWithin(t, tx), t.tenant, check.id))
    const declaring = pausing.commitBefore(() => t.declare({ suspend: false }))
    const { check: resumed } = await declaring
    expect(resumed).toMatchObject({ kubernetesSuspend: false, state: { status: 'new' } })
    expect(await t.read()).toEqual(resumed)
  })

  it('a pause through the API that came second hears that the resource decides', async () => {
    const { check } = await t.declare()
    const declaring = await openTransaction(t, (tx) =>
      t.declareWithin(tx, { suspend: false, spec: cronSpec('0 2 * * *') }),
    )
    await expect(declaring.commitBefore(() => pauseCheck(t.context, t.tenant, check.id))).rejects.toMatchObject({
      code: 'managed_by_kubernetes',
      message: expect.stringContaining('spec.suspend'),
    })
  })
})
