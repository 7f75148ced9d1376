import { describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { removeProject } from '../../../src/tenancy/projects.ts'
import { DAY, HOUR, MINUTE } from '../../support/builders.ts'
import { listChecks, listPings } from '../../support/lists.ts'
import { eventTypesOf } from '../../support/state.ts'
import { useEach } from '../../support/use.ts'
import {
  addCheck,
  addPingRow,
  addProject,
  contextWithin,
  countRows,
  NOW,
  openTransaction,
  periodSpec,
  ping,
  pruneAll,
} from '../checks/fixture.ts'
import { createRecorder, RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const LIMITS = { maxPings: 1_000, maxDays: 90 }
const prune = () => pruneAll(t, LIMITS)
const leftOf = async (key: number) =>
  Object.fromEntries(
    await Promise.all(
      ['tombstones', 'check_states', 'pings', 'ping_bodies', 'flips'].map(async (table) => [
        table,
        await countRows(t, table, key),
      ]),
    ),
  )

describe('a deleted resource', () => {
  it('takes its check out of every read, frees its slug and keeps its history', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'success', NOW)
    expect(await t.retire()).toBe('removed')
    expect(await t.read()).toBeNull()
    await expect(getCheck(t.context, t.tenant, check.id)).rejects.toMatchObject({ code: 'not_found' })
    const page = { limit: 10, after: null }
    expect((await listChecks(t.context, t.tenant, t.tenant.project, {}, page)).rows).toEqual([])
    expect(await addCheck(t, t.tenant, { slug: check.slug })).toMatchObject({ slug: check.slug })
    expect(await leftOf(check.key)).toEqual({ tombstones: 1, check_states: 0, pings: 1, ping_bodies: 0, flips: 2 })
    expect(await t.retire()).toBe('absent')
  })

  it('makes its pings unknown at once, and known again once it is there again', async () => {
    const { check } = await t.declare()
    const recorder = createRecorder(t)
    const send = () => recorder.record(check, 'success')
    expect(await send()).toBe('stored')
    await t.retire()
    expect(await send()).toBe('unknown')
    await t.declare()
    expect(await send()).toBe('stored')
    await recorder.stop()
    expect((await listPings(t.context, t.tenant, check.id, { limit: 10, after: null })).rows).toHaveLength(2)
  })

  it('has nothing to retire when it had no check', async () => {
    await addCheck(t, t.tenant)
    expect(await t.retire()).toBe('absent')
    expect(await t.retire('Retain')).toBe('absent')
  })

  it('hands the check to the API with Retain', async () => {
    const { check } = await t.declare({ suspend: true })
    expect(await t.retire('Retain')).toBe('released')
    const released = { ...check, managedBy: 'api', kubernetes: null, kubernetesSuspend: null }
    expect(await getCheck(t.context, t.tenant, check.id)).toEqual(released)
    expect(await updateCheck(t.context, t.tenant, check.id, { name: 'Mine' })).toMatchObject({ name: 'Mine' })
    expect(await t.read()).toBeNull()
    expect(await t.retire()).toBe('absent')
    await removeCheck(t.context, t.tenant, check.id)
  })
})

describe('a re-created resource', () => {
  const check = useEach(async () => (await t.declare()).check)

  it('knows that its last run ended with a warning, and notifies the next one', async () => {
    const { check } = await t.declare()
    await t.pinged(check, 'warn', NOW + 1_000)
    expect((await t.read())!.state).toMatchObject({ lastOutcome: 'warn', warnedAt: NOW + 1_000 })
    await t.retire()
    await t.declare()
    expect((await t.read())!.state).toMatchObject({ lastOutcome: 'warn', warnedAt: null, lastSuccessAt: NOW + 1_000 })
    await t.pinged(check, 'warn', NOW + 2_000)
    expect(await eventTypesOf(t, check)).toEqual(['check.warned', 'check.warned'])
  })

  it('gets key, ids, slug and history back, and is armed afresh', async () => {
    const { check } = await t.declare({ description: 'old' })
    await t.pinged(check, 'start', NOW + 1_000)
    await t.pinged(check, 'success', NOW + 2_000)
    await t.pinged(check, 'start', NOW + 2_400)
    await t.pinged(check, 'fail', NOW + 3_000)
    await t.retire()
    t.clock.time = NOW + DAY
    const revived = await t.declare({ name: 'Again', spec: periodSpec({ periodSeconds: 7_200 }) })
    expect(revived).toEqual({
      change: 'revived',
      check: {
        ...check,
        name: 'Again',
        description: null,
        updatedAt: NOW + DAY,
        spec: periodSpec({ periodSeconds: 7_200 }),
        state: {
          status: 'new',
          since: NOW + DAY,
          reason: 'created',
          lastPingAt: NOW + 3_000,
          lastOutcome: 'fail',
          lastSuccessAt: NOW + 2_000,
          lastDurationMs: 600,
          lastStartAt: NOW + 2_400,
          expectedAt: NOW + DAY + 2 * HOUR,
          dueAt: NOW + DAY + 2 * HOUR + 5 * MINUTE,
          runs: [],
          pingsTotal: 4,
          incidentSince: NOW + 3_000,
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
      },
    })
    expect(await t.read()).toEqual(revived.check)
    expect(await t.flipsOf(check.key)).toEqual([
      [null, 0, 'created'],
      [0, 1, 'first_success'],
      [1, 2, 'failed'],
      [null, 0, 'created'],
    ])
    expect(await leftOf(check.key)).toMatchObject({ tombstones: 0, check_states: 1, pings: 4 })
  })

  it('takes a number when its slug was given away', async () => {
    await t.retire()
    await addCheck(t, t.tenant, { slug: check.slug })
    expect(await t.declare()).toMatchObject({ change: 'revived', check: { id: check.id, slug: 'nightly-backup-2' } })
  })

  it('may name another project', async () => {
    await t.retire()
    const projectId = await addProject(t, t.tenant)
    expect(await t.declare({ projectId })).toMatchObject({ change: 'revived', check: { id: check.id, projectId } })
  })

  it('comes back as often as it goes, suspended too, with one order in its history', async () => {
    for (let round = 0; round < 3; round += 1) {
      await t.retire()
      // A clock that was set back: history has one order all the same.
      t.clock.time -= HOUR
      const { check: back, change } = await t.declare({ suspend: true })
      expect([back.id, change, back.state.status]).toEqual([check.id, 'revived', 'paused'])
    }
    const flips = await t.flipsOf(check.key)
    expect(flips.map(([, , reason]) => reason)).toEqual(['created', ...Array(3).fill(['created', 'paused']).flat()])
  })

  it('keeps its key, and no other check gets it', async () => {
    await t.retire()
    const between = await addCheck(t, t.tenant)
    await t.declare()
    const after = await addCheck(t, t.tenant)
    expect(new Set([check.key, between.key, after.key]).size).toBe(3)
  })
})

describe('what is left of a deleted resource', () => {
  const check = useEach(async () => (await t.declare()).check)

  it('keeps its history for seven days as a check does, and then goes with it', async () => {
    await t.pinged(check, 'success', NOW)
    await addPingRow(t, check.key, NOW - 80 * DAY, { body: Buffer.from('x') })
    await t.retire()
    expect((await prune()).deleted).toEqual({})

    t.clock.time = NOW + 7 * DAY
    await prune()
    expect(await leftOf(check.key)).toEqual({ tombstones: 1, check_states: 0, pings: 2, ping_bodies: 1, flips: 2 })

    t.clock.time += 1
    expect((await prune()).deleted).toEqual({ tombstones: 1 })
    expect((await prune()).deleted).toEqual({ pings: 2, flips: 2 })
    expect(await leftOf(check.key)).toEqual({ tombstones: 0, check_states: 0, pings: 0, ping_bodies: 0, flips: 0 })
    expect(await t.declare()).toMatchObject({ change: 'created' })
    expect((await t.read())?.publicId).not.toBe(check.publicId)
  })

  it('keeps its newest completion and start whatever their age', async () => {
    await t.pinged(check, 'start', NOW)
    await t.pinged(check, 'success', NOW + 1)
    for (let i = 0; i < 5; i += 1) await addPingRow(t, check.key, NOW + 10 + i)
    await t.retire()
    expect((await pruneAll(t, { maxPings: 1 })).deleted).toEqual({ pings: 4 })
    await t.declare()
    const { rows } = await listPings(t.context, t.tenant, check.id, { limit: 10, after: null })
    expect(rows.map(({ type }) => type)).toEqual(['log', 'success', 'start'])
  })

  it('does not keep its project, and is deleted with it', async () => {
    await expect(removeProject(t.context, t.tenant, t.tenant.project)).rejects.toMatchObject({
      code: 'project_not_empty',
      message: 'the project holds 1 check: delete them first',
    })
    await t.retire()
    await removeProject(t.context, t.tenant, t.tenant.project)
    expect(await leftOf(check.key)).toMatchObject({ tombstones: 0, flips: 1 })
    expect((await prune()).deleted).toEqual({ flips: 1 })
    t.tenant = { ...t.tenant, project: await addProject(t, t.tenant) }
    expect((await t.declare()).change).toBe('created')
  })

  it('is left alone by pruning while it is being revived', async () => {
    await t.retire()
    t.clock.time = NOW + 8 * DAY
    const reviving = await openTransaction(t, (tx) => t.declareWithin(tx))
    await prune()
    await reviving.commit()
    expect(await t.flipsOf(check.key)).toHaveLength(2)
    expect((await t.read())?.id).toBe(check.id)
  })
})

describe('a deletion and others at the same time', () => {
  const check = useEach(async () => (await t.declare()).check)

  it('a ping that was first is stored, and comes back with the check', async () => {
    const pinging = await openTransaction(t, (tx) => ping(tx, check, 'success', NOW + 5))
    expect(await pinging.commitBefore(() => t.retire())).toBe('removed')
    expect((await t.declare()).check.state.lastPingAt).toBe(NOW + 5)
    expect(await countRows(t, 'pings', check.key)).toBe(1)
  })

  it('a ping that came second finds no check and leaves nothing', async () => {
    const retiring = await openTransaction(t, (tx) => t.retireWithin(tx))
    expect(await retiring.commitBefore(() => t.pinged(check, 'success', NOW + 5))).toBe('unknown')
    expect(await countRows(t, 'pings', check.key)).toBe(0)
  })

  it('two controllers revive it once', async () => {
    await t.retire()
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    expect(await first.commitBefore(() => t.declare())).toMatchObject({ change: 'unchanged', check: { id: check.id } })
  })

  it('two controllers delete it once', async () => {
    await t.declare()
    expect((await Promise.all([t.retire(), t.retire()])).sort()).toEqual(['absent', 'removed'])
  })

  it('a project that is being removed does not take a check along that is revived in it', async () => {
    await t.retire()
    const removing = await openTransaction(t, (tx) => removeProject(contextWithin(t, tx), t.tenant, t.tenant.project))
    const declaring = removing.rollbackBefore(() => t.declare())
    expect(await declaring).toMatchObject({ change: 'revived', check: { id: check.id } })
    await t.retire()
    const gone = await openTransaction(t, (tx) => removeProject(contextWithin(t, tx), t.tenant, t.tenant.project))
    const late = gone.commitBefore(() => t.declare({ resource: RESOURCE }))
    await expect(late).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
  })
})
