/** A declared check expects nothing before its ping URL is published; then it is armed, once. */

import { describe, expect, it } from 'vitest'
import { armCheck, disarmCheck } from '../../../src/checks/declare/arm-check.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { wakeOf } from '../../support/state.ts'
import { NOW } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const UNPUBLISHED = { isPublished: false, isNew: true } as const
const LATER = NOW + 5 * MINUTE
const actions = async () => {
  const { rows } = await t.database.query<{ action: string }>('select action from audit_log order by id')
  return rows.map(({ action }) => action)
}

describe('a check whose URL is not published', () => {
  it('is not armed, however often it is declared, and is armed from the time at which it is published', async () => {
    const { check } = await t.declare(UNPUBLISHED)
    expect(check.state).toMatchObject({ status: 'new', expectedAt: null, dueAt: null })
    expect(await wakeOf(t, check)).toBeNull()
    expect((await t.declare({ isPublished: false })).change).toBe('unchanged')
    t.clock.time = LATER
    const armed = await armCheck(t.context, RESOURCE, check)
    expect(armed).toEqual({
      ...check,
      state: { ...check.state, expectedAt: LATER + HOUR, dueAt: LATER + HOUR + 5 * MINUTE },
    })
    expect(await t.read()).toEqual(armed)
    expect(await wakeOf(t, check)).not.toBeNull()
    // Arming is no change of the configuration and no flip.
    expect(await actions()).toEqual(['check.created'])
    expect(await t.flipsOf(check.key)).toEqual([[null, 0, 'created']])
  })

  it('is armed once, also by two leaders, and not written when it is armed', async () => {
    const { check } = await t.declare(UNPUBLISHED)
    const [one, other] = await Promise.all([1, 2].map(() => armCheck(t.context, RESOURCE, check)))
    const versions = await t.versionsOf(check.key)
    t.clock.time = LATER
    expect((await armCheck(t.context, RESOURCE, check)).state.dueAt).toBeNull()
    expect([one!.state.dueAt, other!.state.dueAt]).toContain(NOW + HOUR + 5 * MINUTE)
    await armCheck(t.context, RESOURCE, (await t.read())!)
    expect(await t.versionsOf(check.key)).toEqual(versions)
  })

  it('is armed by the spec that it has then, not by one that it had', async () => {
    const { check } = await t.declare(UNPUBLISHED)
    const spec = { ...check.spec, periodSeconds: 60 }
    await t.declare({ isPublished: false, spec })
    // A former leader that is still at work knows the old one.
    expect((await armCheck(t.context, RESOURCE, check)).state.dueAt).toBe(NOW + 6 * MINUTE)
    expect((await t.read())!.state).toMatchObject({ expectedAt: NOW + MINUTE, dueAt: NOW + 6 * MINUTE })
  })

  it('is left alone when a ping came first, or when it is gone', async () => {
    const { check } = await t.declare(UNPUBLISHED)
    await t.pinged(check, 'success', NOW + 1_000)
    await armCheck(t.context, RESOURCE, check)
    expect((await t.read())!.state).toMatchObject({ status: 'up', expectedAt: NOW + 1_000 + HOUR })
    await t.retire()
    await armCheck(t.context, RESOURCE, check)
    expect(await t.read()).toBeNull()
  })

  it('is not armed by a change, and neither is one that comes back', async () => {
    await t.declare(UNPUBLISHED)
    const spec = { ...t.declaration().spec, periodSeconds: 60 }
    expect((await t.declare({ isPublished: false, spec })).check.state.dueAt).toBeNull()
    await t.retire()
    const { check, change } = await t.declare({ isPublished: false, spec })
    expect(change).toBe('revived')
    expect(check.state.dueAt).toBeNull()
    expect((await armCheck(t.context, RESOURCE, check)).state.dueAt).toBe(NOW + 6 * MINUTE)
  })

  it('is disarmed when something else armed it, unless its job has reported', async () => {
    const { check: armed } = await t.declare()
    const versions = await t.versionsOf(armed.key)
    const { check } = await t.declare({ isPublished: false })
    expect(await t.versionsOf(check.key)).toEqual(versions)
    const disarmed = await disarmCheck(t.context, RESOURCE, check)
    expect(disarmed.state).toMatchObject({ status: 'new', expectedAt: null, dueAt: null })
    expect(await t.read()).toEqual(disarmed)
    expect(await wakeOf(t, check)).toBeNull()
    expect(await actions()).toEqual(['check.created'])
    await armCheck(t.context, RESOURCE, disarmed)
    // It came between the read and the lock.
    await t.pinged(check, 'start', NOW + 1_000)
    await disarmCheck(t.context, RESOURCE, check)
    expect((await t.read())!.state.dueAt).not.toBeNull()
  })

  it('a suspended one is paused at once and resumed when its URL is published', async () => {
    await t.declare({ ...UNPUBLISHED, suspend: true })
    const { check } = await t.declare({ isPublished: false, suspend: false })
    expect(check.state.status).toBe('paused')
    const resumed = await armCheck(t.context, RESOURCE, check)
    expect(resumed.state).toMatchObject({ status: 'new', dueAt: NOW + HOUR + 5 * MINUTE })
    expect(await t.read()).toEqual(resumed)
    expect(await actions()).toEqual(expect.arrayContaining(['check.created', 'check.resumed']))
    expect(await t.flipsOf(check.key)).toEqual([
      [null, 0, 'created'],
      [0, 3, 'paused'],
      [3, 0, 'resumed'],
    ])
    const { check: again } = await t.declare({ isPublished: false, suspend: true })
    expect(again.state.status).toBe('paused')
    expect((await armCheck(t.context, RESOURCE, again)).state.status).toBe('paused')
  })
})
