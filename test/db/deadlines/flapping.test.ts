/** A check that goes down and up all the time, in the database: what is sent, and the end of its flapping. */

import { describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { wakeOf } from '../../support/state.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, type Replica, usePings } from '../pings/fixture.ts'

const t = usePings()
const replica = useEach(() => t.addReplica('one'))
const other = useEach(() => t.addReplica('two'))

const WEEK = { spec: { periodSeconds: 604_800 } }

async function addChannel(eventTypes: string[]): Promise<string> {
  const { rows } = await t.database.query<{ id: string }>(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values (gen_random_uuid(), $1, 'webhook', 'Team', '\\x00', '\\x00', $2, now()) returning id`,
    [t.tenant().organizationId, eventTypes],
  )
  return rows[0]!.id
}

/** Down and up by turns, a second apart, the last time `agoMs` ago. */
async function change(check: CheckRecord, count: number, agoMs: number, by = replica): Promise<number> {
  const endsAt = Math.floor(systemClock.now()) - agoMs
  const { status } = await t.stateOf(check)
  const types = status === 'down' ? (['success', 'fail'] as const) : (['fail', 'success'] as const)
  const pings = Array.from({ length: count }, (_, index) =>
    pingOf(check, { at: endsAt - (count - 1 - index) * SECOND, type: types[index % 2]! }),
  )
  const { outcomes } = await by.commit(pings)
  expect(new Set(outcomes)).toEqual(new Set(['stored']))
  return endsAt
}

/** No search counts as a stall, however long it takes. */
async function expire(by: Replica) {
  await t.stayUp()
  return expireOverdue({ database: by.database, now: () => 0 }, 10)
}

describe('a check that changes all the time', () => {
  it('a hundred failures and a hundred successes send each channel ten changes and one check.flapping', async () => {
    const all = await addChannel(['check.down', 'check.flapping', 'check.up'])
    const some = await addChannel(['check.down', 'check.up'])
    await addChannel(['check.paused'])
    const check = await t.addCheck(WEEK, systemClock.now() - 10 * MINUTE)
    await change(check, 200, MINUTE)
    const types = (await t.eventsOf(check)).slice(0, 11)
    expect(types).toEqual([...Array.from({ length: 5 }, () => ['check.down', 'check.up']).flat(), 'check.flapping'])
    const { rows } = await t.database.query<{ channel_id: string; count: number }>(
      'select channel_id, count(*) as count from deliveries where status = 0 group by 1',
    )
    expect(new Map(rows.map(({ channel_id, count }) => [channel_id, count]))).toEqual(
      new Map([
        [all, 11],
        [some, 10],
      ]),
    )
    const { rows: withheld } = await t.database.query(
      `select channel_id, reason, cause, count(*) as count from deliveries where status = 3 group by 1, 2, 3`,
    )
    const why = { reason: 'flapping', cause: null, count: 189 }
    expect(withheld).toHaveLength(2)
    expect(withheld).toEqual(expect.arrayContaining([all, some].map((channel_id) => ({ channel_id, ...why }))))
    expect(await t.flipsOf(check)).toHaveLength(201)
    const { rows: facts } = await t.database.query<{ data: object; flip_id: string; reason: string; ping: object }>(
      `select e.data, e.flip_id, f.reason, e.last_ping as ping from events e join flips f on f.id = e.flip_id
        where e.type = 'check.flapping'`,
    )
    expect(facts).toMatchObject([
      {
        reason: 'failed',
        data: { reason: 'flapping', flips: 11, status: 'down', previous_status: 'up', down_for_seconds: null },
        ping: { type: 'fail' },
      },
    ])
    expect((await getCheck(t.context, t.tenant(), check.id)).state).toMatchObject({ status: 'up', notified: 'up' })
  })

  it('is evaluated ten minutes after its last change, and not before', async () => {
    const check = await t.addCheck(WEEK, systemClock.now() - 30 * MINUTE)
    const first = await change(check, 11, 12 * MINUTE)
    expect(await wakeOf(t, check)).toBe(first + 10 * MINUTE)
    const last = await change(check, 2, 9 * MINUTE)
    expect(await wakeOf(t, check)).toBe(first + 10 * MINUTE)
    const before = await t.eventsOf(check)
    expect((await expire(other)).flips).toEqual([])
    expect(await wakeOf(t, check)).toBe(last + 10 * MINUTE)
    expect(await t.eventsOf(check)).toEqual(before)
    expect((await t.stateOf(check)).notified).toBe('up')
  })

  it('has its last status notified once, by whichever replica looks, and flaps no more', async () => {
    const channel = await addChannel(['check.down'])
    const check = await t.addCheck(WEEK, systemClock.now() - 30 * MINUTE)
    const last = await change(check, 11, 10 * MINUTE)
    await Promise.all([expire(replica), expire(other), expire(replica), expire(other)])
    expect((await t.eventsOf(check)).slice(10)).toEqual(['check.flapping', 'check.down'])
    const { rows } = await t.database.query<{ data: object; flip_id: null; channel_id: string }>(
      `select e.data, e.flip_id, d.channel_id from events e join deliveries d on d.event_id = e.id order by e.id desc limit 1`,
    )
    const occurred_at = new Date(last).toISOString()
    expect(rows).toMatchObject([
      {
        channel_id: channel,
        flip_id: null,
        data: { reason: 'failed', occurred_at, status: 'down', previous_status: 'up' },
      },
    ])
    expect(await t.stateOf(check)).toMatchObject({ status: 'down', notified: null, incidentSince: last })
    expect(await wakeOf(t, check)).toBeNull()
    // The replica that has cached the flapping row sees it.
    await replica.record(check)
    expect((await t.eventsOf(check)).slice(11)).toEqual(['check.down', 'check.up'])
  })

  it('is known as it is when a ping changes it while replicas look', async () => {
    const checks = await Promise.all(
      Array.from({ length: 15 }, () => t.addCheck(WEEK, systemClock.now() - 30 * MINUTE)),
    )
    for (const check of checks) await change(check, 11, 10 * MINUTE)
    await Promise.all([
      ...checks.map((check) => replica.record(check)),
      ...Array.from({ length: 4 }, () => expire(other)),
    ])
    await expire(other)
    await expire(other)
    for (const check of checks) {
      // Nothing if the ping came first: recipients know that the check is up.
      expect([[], ['check.down', 'check.up']]).toContainEqual((await t.eventsOf(check)).slice(11))
      expect(await t.stateOf(check)).toMatchObject({ status: 'up', notified: null, incidentSince: null })
    }
  })

  it('has nothing notified when its recipients know its status', async () => {
    const check = await t.addCheck(WEEK, systemClock.now() - 30 * MINUTE)
    await change(check, 12, 10 * MINUTE)
    await expire(replica)
    expect((await t.eventsOf(check)).slice(10)).toEqual(['check.flapping'])
    expect(await t.stateOf(check)).toMatchObject({ status: 'up', notified: null })
  })

  it('goes on flapping after downtime of the service: that was no quiet', async () => {
    const check = await t.addCheck(WEEK, systemClock.now() - 60 * MINUTE)
    await change(check, 11, 30 * MINUTE)
    // A later ping: gaps before it hide no completion, and are read for the flapping alone.
    await replica.commit([pingOf(check, { type: 'fail', at: systemClock.now() - MINUTE })])
    await t.database.query(
      `insert into gaps (started_at, ended_at) values (now() - interval '25 minutes', now() - interval '5 minutes')`,
    )
    await expire(replica)
    expect((await t.stateOf(check)).notified).toBe('up')
    expect(await wakeOf(t, check)).toBeGreaterThan(systemClock.now() + 4 * MINUTE)
    expect((await t.eventsOf(check)).slice(10)).toEqual(['check.flapping'])
  })
})

describe('the first ping after downtime of the service', () => {
  it('comes before the evaluator, and does not end the flapping', async () => {
    const check = await t.addCheck(WEEK, systemClock.now() - 60 * MINUTE)
    await change(check, 11, 11 * MINUTE)
    await t.database.query(
      `insert into gaps (started_at, ended_at) values (now() - interval '3 minutes', now() - interval '1 second')`,
    )
    await replica.record(check)
    await expire(other)
    expect((await t.eventsOf(check)).slice(10)).toEqual(['check.flapping'])
    expect(await t.stateOf(check)).toMatchObject({ status: 'up', notified: 'up' })
    expect(await wakeOf(t, check)).toBeGreaterThan(systemClock.now() + 9 * MINUTE)
  })
})
