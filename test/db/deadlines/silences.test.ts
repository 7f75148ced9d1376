/** What happens to a check in a silence is not sent, whichever way it came, and its end notifies what is down. */

import { describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { STANDARD_EVENT_TYPES } from '../../../src/domain/event.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { removeSilence } from '../../../src/silences/remove-silence.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { addSilence, addWebhook, messagesOf } from '../../support/silence.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, type Replica, usePings } from '../pings/fixture.ts'

const t = usePings()
const one = useEach(() => t.addReplica('one'))
const two = useEach(() => t.addReplica('two'))
const channel = useEach(async () => ({ id: await addWebhook(t, t.tenant(), [...STANDARD_EVENT_TYPES, 'check.late']) }))
const silence = useEach(async () => ({ id: await addSilence(t, t.tenant(), systemClock.now()) }))

const WEEK = { spec: { periodSeconds: 604_800, graceSeconds: 60 } }
const send = async (check: CheckRecord, type: 'success' | 'fail' | 'warn', by: Replica = one) => {
  const { outcomes } = await by.commit([pingOf(check, { type, at: Math.floor(systemClock.now()) })])
  expect(outcomes).toEqual(['stored'])
}
async function expire(by: Replica = one) {
  await t.stayUp()
  return expireOverdue({ database: by.database, now: () => 0 }, 100)
}
const overdue = (check: CheckRecord, ms: number) =>
  t.database.query(
    `update check_states set expected_at = now() - interval '1 minute', wake_at = now() - interval '1 minute',
        due_at = now() + make_interval(secs => $2) where check_key = $1`,
    [check.key, ms / 1_000],
  )
/** The silence ends now, and what waits for its end is due. */
async function endSilence() {
  await t.database.query('update silences set ends_at = now() where id = $1', [silence.id])
  await t.database.query('update check_states set wake_at = now() where hold is not null')
}

describe('in a silence', () => {
  it('no ping, deadline, late run, pause or resume is sent', async () => {
    expect(channel.id).toBeDefined()
    const check = await t.addCheck(WEEK, systemClock.now() - 10 * MINUTE)
    await send(check, 'success')
    await send(check, 'warn')
    await overdue(check, MINUTE)
    await expire()
    await overdue(check, -1)
    await expire()
    await pauseCheck(t.context, t.tenant(), check.id)
    await resumeCheck(t.context, t.tenant(), check.id)
    expect(await messagesOf(t, check)).toEqual([
      '(check.warned: silenced)',
      '(check.late: silenced)',
      '(check.down: silenced)',
      '(check.paused: silenced)',
      '(check.resumed: silenced)',
    ])
    const { rows } = await t.database.query('select distinct cause from deliveries')
    expect(rows).toEqual([{ cause: { kind: 'silence', id: silence.id } }])
  })

  it('at its end two replicas notify each check that is down once', async () => {
    const checks = await Promise.all(Array.from({ length: 5 }, () => t.addCheck(WEEK)))
    for (const check of checks) await send(check, 'fail')
    await send(checks[4]!, 'success')
    await endSilence()
    await t.stayUp()
    await Promise.all([one, two].map((by) => expireOverdue({ database: by.database, now: () => 0 }, 3)))
    await expire()
    for (const check of checks.slice(0, 4))
      expect(await messagesOf(t, check)).toEqual(['(check.down: silenced)', 'check.down'])
    expect(await messagesOf(t, checks[4]!)).toEqual(['(check.down: silenced)', '(check.up: silenced)'])
    expect(await t.stateOf(checks[0]!)).toMatchObject({ hold: null, notified: null })
  })

  it('a check wakes at its end, and is looked at each minute before', async () => {
    const check = await t.addCheck(WEEK)
    await send(check, 'fail')
    const { hold } = await t.stateOf(check)
    expect(hold).toMatchObject({ by: 'silence', id: silence.id })
    expect(hold!.lookAt - systemClock.now()).toBeLessThanOrEqual(MINUTE)
    await t.database.query(`update silences set ends_at = now() + interval '5 seconds' where id = $1`, [silence.id])
    await t.database.query('update check_states set wake_at = now() where hold is not null')
    await expire()
    expect((await t.stateOf(check)).hold!.lookAt - systemClock.now()).toBeLessThanOrEqual(5_000)
    expect(await messagesOf(t, check)).toEqual(['(check.down: silenced)'])
  })

  it('removed while another transaction holds the check: it is looked at within a minute', async () => {
    const check = await t.addCheck(WEEK)
    await send(check, 'fail')
    await t.database.transaction(async (tx) => {
      await tx.query('select from check_states where check_key = $1 for no key update', [check.key])
      await removeSilence(t.context, t.tenant(), silence.id)
    })
    await t.database.query('update check_states set wake_at = now() where hold is not null')
    await expire()
    expect(await messagesOf(t, check)).toEqual(['(check.down: silenced)', 'check.down'])
  })

  it('of another project nothing is withheld', async () => {
    await t.database.query(
      `with p as (insert into projects (id, organization_id, name, slug) values (gen_random_uuid(), $1, 'o', 'o') returning id)
        update silences set project_id = p.id from p`,
      [t.tenant().organizationId],
    )
    const check = await t.addCheck(WEEK)
    await send(check, 'fail')
    expect(await messagesOf(t, check)).toEqual(['check.down'])
  })
})

describe('a silence with a schedule', () => {
  const withSchedule = (schedule: string, zone: string, seconds: number) =>
    t.database.query(
      `update silences set starts_at = null, ends_at = null, schedule = $1, time_zone = $2, dialect = 'cron', duration_seconds = $3`,
      [schedule, zone, seconds],
    )

  it('holds from each slot on', async () => {
    await withSchedule('* * * * *', 'Europe/Berlin', HOUR / 1_000)
    const check = await t.addCheck(WEEK)
    await send(check, 'fail')
    expect(await messagesOf(t, check)).toEqual(['(check.down: silenced)'])
  })

  it('that cannot be read, as by an older release, withholds nothing', async () => {
    await withSchedule('* * * * *', 'Mars/Olympus', HOUR / 1_000)
    const check = await t.addCheck(WEEK)
    await send(check, 'fail')
    expect(await messagesOf(t, check)).toEqual(['check.down'])
  })
})
