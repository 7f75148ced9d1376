/** A resource pauses its check until a time: what is stored, what the API may do, and what is left when the time has passed. */

import { expect, it } from 'vitest'
import { listEntries } from '../../../src/audit/find-entries.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import type { GivenDeclaration } from '../../../src/checks/declare/declare-check.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { toIso } from '../../../src/domain/instant.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { wakeOf } from '../../support/state.ts'
import { cronSpec } from '../checks/fixture.ts'
import { useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
const BY = { kind: 'kubernetes', id: null, name: 'default' }

/** Declared by the database's clock, as the evaluator reads it. */
async function declare(given: Partial<GivenDeclaration> = {}) {
  t.clock.time = Math.floor(systemClock.now())
  return t.declare(given)
}
const inAnHour = () => Math.floor(systemClock.now()) + HOUR

async function evaluate() {
  await t.database.query('update service_beat set beat_at = now()')
  await expireOverdue({ database: t.database, now: () => 0 }, 10)
}

/** The end of the pause comes now. */
const endPause = async () => {
  const until = Math.floor(systemClock.now()) - 1
  await t.database.query(
    `update check_states set pause = pause || jsonb_build_object('until', $1::int8), since = since - interval '1 minute',
      wake_at = now()`,
    [until],
  )
  await evaluate()
  return until
}

it('pauses the check until then, for whom the API says so, and alone may end the pause', async () => {
  const pausedUntil = inAnHour()
  await declare()
  const { check, change } = await declare({ pausedUntil })
  expect([change, check.state.status, check.state.pause]).toEqual([
    'updated',
    'paused',
    { by: BY, until: pausedUntil, comment: null },
  ])
  expect(await wakeOf(t, check)).toBe(pausedUntil)
  expect((await declare({ pausedUntil })).change).toBe('unchanged')
  for (const act of [pauseCheck, resumeCheck])
    await expect(act(t.context, t.tenant, check.id)).rejects.toMatchObject({
      code: 'managed_by_kubernetes',
      message: expect.stringMatching(
        /^HeartbeatCheck .* has the annotation heartbeat-operator.io\/paused-until; change or remove it there to (pause|resume) the check$/,
      ),
    })
  const { rows } = await listEntries({ database: t.database }, t.tenant, {}, { limit: 1, after: null })
  expect(rows[0]).toMatchObject({ action: 'check.paused', detail: { until: toIso(pausedUntil) } })
  expect(await t.events()).toEqual(['check.paused'])
})

it('resumes the check when it is taken away, also of a resource that is not suspended', async () => {
  for (const suspend of [null, false]) {
    await declare({ suspend, pausedUntil: inAnHour() })
    const { check } = await declare({ suspend })
    expect([check.state.status, check.kubernetesSuspend]).toEqual(['new', suspend])
  }
})

it('when it has passed the check resumes, is not paused again, and is the API’s to pause', async () => {
  const pausedUntil = inAnHour()
  const { check } = await declare({ pausedUntil })
  const until = await endPause()
  expect((await t.read())!.state).toMatchObject({ status: 'new', reason: 'resumed', since: until, pause: null })
  const again = await declare({ pausedUntil: until })
  expect(again.check).toMatchObject({ kubernetesSuspend: null, state: { status: 'new', since: until } })
  expect((await declare({ pausedUntil: until })).change).toBe('unchanged')
  const paused = await pauseCheck(t.context, t.tenant, check.id, { forSeconds: 3_600 })
  expect(paused.state.status).toBe('paused')
  // What others pause it leaves alone.
  expect((await declare({ pausedUntil: until })).change).toBe('unchanged')
  expect((await declare()).check.state.status).toBe('paused')
})

it('by a clock that is behind, a pause that has ended is over all the same', async () => {
  await declare({ pausedUntil: inAnHour() })
  const until = await endPause()
  t.clock.time = until - 5
  const { check } = await t.declare({ pausedUntil: until })
  expect(check).toMatchObject({ kubernetesSuspend: null, state: { status: 'new' } })
})

it('a time in the past pauses nothing, not even a new check', async () => {
  t.clock.time = Math.floor(systemClock.now())
  const { check } = await t.declare({ pausedUntil: t.clock.time })
  expect(check).toMatchObject({ kubernetesSuspend: null, state: { status: 'new', pause: null } })
  expect((await t.declare({ pausedUntil: t.clock.time + 1 })).check.state.status).toBe('paused')
})

it('a new check begins paused, without a word', async () => {
  const pausedUntil = inAnHour()
  const { check } = await declare({ pausedUntil })
  expect(check.state).toMatchObject({ status: 'paused', pause: { until: pausedUntil } })
  expect(await t.events()).toEqual([])
})

it('what is no time changes nothing', async () => {
  const kept = { pausedUntil: 'kept' } as const
  expect((await declare(kept)).check.state.status).toBe('new')
  const pausedUntil = inAnHour()
  await declare({ pausedUntil })
  expect(await declare(kept)).toMatchObject({
    change: 'unchanged',
    check: { state: { pause: { until: pausedUntil } } },
  })
  await endPause()
  expect((await declare(kept)).check).toMatchObject({ kubernetesSuspend: null, state: { status: 'new' } })
})

it('beside spec.suspend it has no effect', async () => {
  const pausedUntil = inAnHour()
  const { check } = await declare({ suspend: true, pausedUntil })
  expect(check.state.pause).toEqual({ by: BY, until: null, comment: null })
  expect(await wakeOf(t, check)).toBeNull()
  await declare({ pausedUntil })
  expect((await declare({ suspend: true, pausedUntil })).check.state.pause).toMatchObject({ until: null })
})

it('a check that followed a CronJob is paused without an end once its resource has released it', async () => {
  const spec = cronSpec('0 2 * * *', { jobArea: 'default' })
  const { check } = await declare({ spec, suspend: false, pausedUntil: inAnHour() })
  await t.retire('Retain')
  expect(await wakeOf(t, check)).toBeNull()
  const released = await updateCheck(t.context, t.tenant, check.id, { name: 'Mine' })
  expect(released.state).toMatchObject({ status: 'paused', pause: null })
})

it('the pause of another check stays until then, as its resource has released it', async () => {
  const pausedUntil = inAnHour()
  const { check } = await declare({ pausedUntil })
  await t.retire('Retain')
  expect(await wakeOf(t, check)).toBe(pausedUntil)
  expect((await resumeCheck(t.context, t.tenant, check.id)).state.status).toBe('new')
})

it('a run that is in progress when the pause begins is not awaited', async () => {
  const spec = cronSpec('0 2 * * *', { jobArea: 'default', maxRuntimeSeconds: 60 })
  await declare({ spec, suspend: false })
  const run = { id: '0199aaaa-0000-7000-8000-00000000000a', startedAt: 0, deadlineAt: 0, slotAt: 0 }
  const startedAt = Math.floor(systemClock.now()) - MINUTE
  await t.database.query(`update check_states set runs = jsonb_build_array($1::jsonb)`, [
    JSON.stringify({ ...run, startedAt, slotAt: startedAt, deadlineAt: startedAt + 5 * MINUTE }),
  ])
  const pausedUntil = inAnHour()
  const { check } = await declare({ spec, suspend: false, pausedUntil })
  expect(check.state).toMatchObject({ status: 'paused', runs: [{ id: run.id }] })
  expect(await wakeOf(t, check)).toBe(pausedUntil)
})
