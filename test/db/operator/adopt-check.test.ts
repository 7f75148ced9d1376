import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { addCheck, contextWithin, cronSpec, NOW, openTransaction, periodSpec } from '../checks/fixture.ts'
import { type OperatorFixture, RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
let own: CheckRecord
beforeEach(async () => {
  own = await addCheck(t, t.tenant, { name: 'By hand', slug: 'by-hand' })
})

const adopt = (given: Parameters<OperatorFixture['declare']>[0] = {}) => t.declare({ adoptId: own.id, ...given })
const OTHER = { ...RESOURCE, name: 'other' }

describe('adopting a check of the API', () => {
  it('keeps its ids, slug and history, and takes over what the resource says', async () => {
    await t.pinged(own, 'success', NOW)
    t.clock.time = NOW + MINUTE
    const { check, change } = await adopt({ spec: periodSpec({ periodSeconds: 7_200 }) })
    expect(change).toBe('adopted')
    expect(check).toMatchObject({
      id: own.id,
      publicId: own.publicId,
      key: own.key,
      slug: 'by-hand',
      name: 'Nightly backup',
      managedBy: 'kubernetes',
      kubernetes: RESOURCE,
      spec: { periodSeconds: 7_200 },
      state: { status: 'up', lastPingAt: NOW, expectedAt: NOW + 2 * HOUR },
    })
    expect(await t.read()).toEqual(check)
    expect(await t.flipsOf(own.key)).toEqual([
      [null, 0, 'created'],
      [0, 1, 'first_success'],
    ])
  })

  it('arms a check that was never pinged', async () => {
    expect(own.state.dueAt).toBeNull()
    expect((await adopt()).check.state).toMatchObject({ status: 'new', dueAt: NOW + HOUR + 5 * MINUTE })
  })

  it('gives up the fields that only the API has, once and for all', async () => {
    own = await addCheck(t, t.tenant, { name: 'Moved', channels: [], spec: periodSpec({ resumeOnPing: true }) })
    const { check } = await adopt()
    expect(check).toMatchObject({ channels: null, spec: { resumeOnPing: false } })
    expect(await adopt()).toEqual({ check, change: 'unchanged' })
    await t.retire('Retain')
    const { rows } = await t.database.query(
      'select c.channels, s.resume_on_ping from checks c join check_states s on s.check_key = c.key where c.id = $1',
      [own.id],
    )
    expect(rows).toEqual([{ channels: null, resume_on_ping: false }])
  })

  it('suspends it with spec.suspend', async () => {
    expect((await adopt({ suspend: true })).check.state.status).toBe('paused')
  })

  it('changes nothing the second time, in whatever case the id is written', async () => {
    const { check } = await adopt()
    const before = await t.versionsOf(own.key)
    expect(await adopt({ adoptId: own.id.toUpperCase() })).toEqual({ check, change: 'unchanged' })
    expect(await t.versionsOf(own.key)).toEqual(before)
    expect((await t.declare({ name: 'X' })).change).toBe('updated')
  })

  it('holds for a re-created resource that still names the check', async () => {
    await adopt()
    await t.retire()
    expect(await adopt()).toMatchObject({ change: 'revived', check: { id: own.id, slug: 'by-hand' } })
  })

  it('leaves what the resource had before alone', async () => {
    const { check: earlier } = await t.declare()
    await t.retire()
    expect(await adopt()).toMatchObject({ change: 'adopted', check: { id: own.id } })
    await t.retire('Retain')
    await removeCheck(t.context, t.tenant, own.id)
    expect(await t.declare()).toMatchObject({ change: 'revived', check: { id: earlier.id } })
  })

  it('makes the adopted check the one that a re-created resource gets back', async () => {
    await t.declare()
    await t.retire()
    await adopt()
    await t.retire()
    expect(await t.declare()).toMatchObject({ change: 'revived', check: { id: own.id } })
  })
})

describe('an adoption is rejected', () => {
  const refused = (code: string, message: string) => ({
    code,
    message: expect.stringContaining(message),
    field: 'adoptId',
  })

  it.each([randomUUID(), 'no-uuid', 'a\u0000b'])('for a check that is not there: %j', async (adoptId) => {
    await expect(adopt({ adoptId })).rejects.toMatchObject(refused('not_found', adoptId))
    expect(await t.read()).toBeNull()
  })

  it('for a check of another resource, which it names', async () => {
    const { check } = await t.declare({ resource: OTHER })
    const message = 'managed by HeartbeatCheck payments/other in cluster default'
    await expect(adopt({ adoptId: check.id })).rejects.toMatchObject(refused('conflict', message))
    expect(await t.read(OTHER)).toEqual(check)
  })

  it('when the resource has a check already', async () => {
    const { check } = await t.declare()
    await expect(adopt({ name: 'X' })).rejects.toMatchObject(refused('conflict', check.id))
    expect(await t.read()).toEqual(check)
  })
})

describe('an adoption and others at the same time', () => {
  it('one of two resources gets the check', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx, { adoptId: own.id }))
    await expect(first.commitBefore(() => t.declare({ resource: OTHER, adoptId: own.id }))).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('payments/nightly'),
    })
    expect((await t.read())?.id).toBe(own.id)
  })

  it('an update through the API that came second hears that the check is managed', async () => {
    const adopting = await openTransaction(t, (tx) => t.declareWithin(tx, { adoptId: own.id }))
    const updating = adopting.commitBefore(() => updateCheck(t.context, t.tenant, own.id, { name: 'Mine' }))
    await expect(updating).rejects.toMatchObject({ code: 'managed_by_kubernetes' })
    expect((await t.read())?.name).toBe('Nightly backup')
  })

  it('a removal through the API that was first leaves nothing to adopt', async () => {
    const removing = await openTransaction(t, (tx) => removeCheck(contextWithin(t, tx), t.tenant, own.id))
    await expect(removing.commitBefore(() => adopt())).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('the schedule of an adopted check', () => {
  const BERLIN = { timeZone: 'Europe/Berlin', graceSeconds: 60 }
  /** 02:30, for the first time of two. */
  const AT = Date.parse('2026-10-25T00:30:08Z')
  const NEXT_NIGHT = Date.parse('2026-10-26T01:30:00Z')
  const AGAIN = Date.parse('2026-10-25T01:30:00Z')
  const stateOf = async () => (await getCheck(t.context, t.tenant, own.id)).state
  const dialectOf = async () => {
    const { rows } = await t.database.query('select dialect from check_states where check_key = $1', [own.key])
    return rows[0]
  }

  it('is read by cron, then by Kubernetes, and by cron again once it is retained', async () => {
    t.clock.time = AT - HOUR
    own = await addCheck(t, t.tenant, { name: 'Moved', spec: cronSpec('30 2 * * *', BERLIN) })
    t.clock.time = AT
    await t.pinged(own, 'success', AT)
    expect(await dialectOf()).toEqual({ dialect: 'cron' })
    expect((await stateOf()).expectedAt).toBe(NEXT_NIGHT)

    const spec = cronSpec('30 2 * * *', BERLIN)
    const { check } = await adopt({ spec })
    expect(check.state.expectedAt).toBe(AGAIN)
    expect(await adopt({ spec })).toEqual({ check, change: 'unchanged' })
    // A ping that another process decides by the row that it has read before.
    await t.pinged(own, 'success', AT + 1_000)
    expect((await stateOf()).expectedAt).toBe(AGAIN)

    await t.retire('Retain')
    expect(await dialectOf()).toEqual({ dialect: 'cron' })
    expect((await stateOf()).expectedAt).toBe(NEXT_NIGHT)
    expect((await t.declare({ spec })).change).toBe('readopted')
    expect(await dialectOf()).toEqual({ dialect: 'kubernetes' })
  })

  it('that cron does not read stays as Kubernetes reads it, until the API gives another one', async () => {
    const { check } = await adopt({ spec: cronSpec('0 5/6 ? * 1', BERLIN) })
    await t.retire('Retain')
    expect(await dialectOf()).toEqual({ dialect: 'kubernetes' })
    await updateCheck(t.context, t.tenant, check.id, { graceSeconds: 120 })
    expect(await dialectOf()).toEqual({ dialect: 'kubernetes' })
    await expect(updateCheck(t.context, t.tenant, check.id, { schedule: '0 5 ? * 1' })).rejects.toThrow(/so write \*/)
    await updateCheck(t.context, t.tenant, check.id, { schedule: '0 5 * * 7' })
    expect(await dialectOf()).toEqual({ dialect: 'cron' })
    await updateCheck(t.context, t.tenant, check.id, { periodSeconds: 60 })
    expect(await dialectOf()).toEqual({ dialect: null })
  })

  it('is refused by a HeartbeatCheck where only cron reads it', async () => {
    await expect(adopt({ spec: cronSpec('0 3 * * 7', BERLIN) })).rejects.toThrow(/7 is too large/)
  })
})
