/** Claims and outcomes in the table, as two replicas see them. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { DeliveryStatus } from '../../../src/domain/channel.ts'
import { CLAIM_MS } from '../../../src/domain/retry.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  finishAttempts,
  listDueChannels,
  oldestPendingSeconds,
} from '../../../src/store/outbox/deliveries.ts'
import { instantArray, uuidArray } from '../../../src/store/postgres/binary-arrays.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { SECOND } from '../../support/builders.ts'
import { eventually } from '../../support/until.ts'
import { useDelivery } from './fixture.ts'

const fixture = useDelivery()
beforeEach(() => fixture.addChannel())

const fail = (check: CheckRecord) => fixture.ping(check, { type: 'fail', exitCode: 3 })
const recover = (check: CheckRecord) => fixture.ping(check)
const failNew = async () => fail(await fixture.addCheck())

async function claim(free = 10) {
  const now = fixture.clock.now()
  const rows = await fixture.deliveries()
  const wanted = [...new Set(rows.map((row) => row.channel_id))].map((channelId) => ({
    channelId,
    tests: free,
    others: free,
  }))
  return claimDeliveries(fixture.database, wanted, { now, until: now + CLAIM_MS })
}
const claimOne = async () => (await claim()).claimed[0]!

function finish(delivery: ClaimedDelivery, status: DeliveryStatus, nextAttemptAt: number | null = null) {
  const end = { delivery, status, nextAttemptAt, lastStatus: 200, lastError: null, digestId: null }
  return finishAttempts(fixture.database, [end], fixture.clock.now())
}

describe('a claim', () => {
  it('expires when its replica died, and not before', async () => {
    await failNew()
    expect((await claim()).claimed).toHaveLength(1)
    await fixture.clock.advance(CLAIM_MS - 1)
    expect((await claim()).claimed).toEqual([])
    await fixture.clock.advance(1)
    expect((await claim()).claimed).toMatchObject([{ attempts: 2, attempt: 2 }])
  })

  it('writes no column that an index has', async () => {
    const { rows } = await fixture.database.query<{ definition: string }>(
      `select indexdef as definition from pg_indexes where tablename = 'deliveries'`,
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { definition } of rows) expect(definition).not.toMatch(/claimed_until|attempts/)
    await failNew()
    const [before] = await fixture.deliveries()
    await claim()
    const claimed = { attempts: 1, claimed_until: fixture.clock.now() + CLAIM_MS }
    expect(await fixture.deliveries()).toEqual([{ ...before, ...claimed }])
  })

  it('ends with its outcome, however short the wait for the next attempt is', async () => {
    await failNew()
    await finish(await claimOne(), 'pending', fixture.clock.now() + 5 * SECOND)
    await fixture.clock.advance(5 * SECOND - 1)
    expect((await claim()).claimed).toEqual([])
    await fixture.clock.advance(1)
    expect((await claim()).claimed).toHaveLength(1)
  })

  it('that expired stores no failure, but always a success', async () => {
    await failNew()
    const first = await claimOne()
    await fixture.clock.advance(CLAIM_MS)
    const second = await claimOne()
    await finish(first, 'failed')
    expect(await fixture.deliveries()).toMatchObject([{ status: 0 }])
    await finish(first, 'delivered')
    await finish(second, 'failed')
    expect(await fixture.deliveries()).toMatchObject([{ status: 1, last_status: 200 }])
  })

  it('stores a success also when the delivery was given up in between', async () => {
    await failNew()
    const only = await claimOne()
    await fixture.database.query(
      `update deliveries set status = 2, next_attempt_at = null, last_error = 'the channel was muted'`,
    )
    await finish(only, 'delivered')
    expect(await fixture.deliveries()).toMatchObject([{ status: 1, last_error: null }])
  })

  it('takes as many deliveries as are free, longest due first', async () => {
    for (let i = 0; i < 5; i += 1) await failNew()
    const oldest = (await fixture.deliveries()).slice(0, 2).map((row) => row.event_id)
    expect((await claim(2)).claimed.map(({ eventId }) => eventId)).toEqual(oldest)
    expect((await claim(10)).claimed).toHaveLength(3)
  })
})

describe('a sequence of deliveries', () => {
  it.each(['delivered', 'failed'] as const)('postpones what is behind its head until that is %s', async (status) => {
    const check = await fixture.addCheck()
    await fail(check)
    await recover(check)
    const { claimed, count } = await claim()
    expect([claimed.length, count]).toEqual([1, 2])
    expect((await fixture.deliveries())[1]).toMatchObject({
      attempts: 0,
      next_attempt_at: fixture.clock.now() + CLAIM_MS,
    })
    // Nothing is due now: a dead receiver causes no polls without a break.
    expect(await claim()).toEqual({ claimed: [], count: 0 })
    await finish(claimed[0]!, status)
    expect((await fixture.deliveries())[1]!.next_attempt_at).toBe(fixture.clock.now())
  })

  it('makes the next delivery due also when another replica postpones it at that moment', async () => {
    const check = await fixture.addCheck()
    await fail(check)
    const first = await claimOne()
    await recover(check)
    const { database, clock } = fixture
    const next = async () => (await fixture.deliveries())[1]!
    const { event_id: id } = await next()
    let finishing = Promise.resolve()
    await database.transaction(async (tx) => {
      await tx.query('select from deliveries where event_id = $1 for no key update', [id])
      finishing = finish(first, 'delivered')
      await eventually(
        'a lock is waited for',
        async () => (await database.query('select from pg_locks where not granted')).rowCount > 0,
      )
      await tx.query(`update deliveries set next_attempt_at = next_attempt_at + interval '30 s' where event_id = $1`, [
        id,
      ])
    })
    await finishing
    expect(await next()).toMatchObject({ status: 0, next_attempt_at: clock.now() })
  })
})

describe('the query for due channels', () => {
  interface Plan {
    readonly Plan?: Plan
    readonly Plans?: Plan[]
    readonly 'Relation Name'?: string
    readonly 'Actual Rows'?: number
    readonly 'Actual Loops'?: number
  }
  const scansOf = (plans: readonly Plan[]): Plan[] => plans.flatMap((plan) => [plan, ...scansOf(plan.Plans ?? [])])

  // A plan lives as long as its connection, and is often made while nothing is pending.
  it('reads one delivery of each channel, also with a plan made for an empty table', async () => {
    const database = createDatabase({ url: fixture.url, name: 'poll', connections: 1, looksUp: true })
    try {
      for (let count = 0; count < 10; count += 1) await listDueChannels(database, fixture.clock.now())
      await fixture.addChannel()
      const { rows: channels } = await database.query<{ id: string }>('select id from channels order by id')
      const ids = channels.map(({ id }) => id)
      await database.query(
        `insert into deliveries (event_id, channel_id, id, check_key, organization_id, type, next_attempt_at, give_up_at, created_at)
         select gen_random_uuid(), c, gen_random_uuid(), n, $2, 'check.down', ($3::timestamptz[])[1], ($3::timestamptz[])[1], ($3::timestamptz[])[1]
         from unnest($1::uuid[]) c, generate_series(1, 500) n`,
        [uuidArray(ids), fixture.tenant().organizationId, instantArray([fixture.clock.now()])],
      )
      expect((await listDueChannels(database, fixture.clock.now())).map(({ id }) => id).sort()).toEqual(ids)
      const { rows } = await database.query<{ 'QUERY PLAN': Plan[] }>(
        `explain (analyze, format json) execute list_due_channels ('2100-01-01')`,
      )
      const scans = scansOf(rows[0]!['QUERY PLAN'].map((entry) => entry.Plan!)).filter(
        (scan) => scan['Relation Name'] === 'deliveries',
      )
      expect(scans.length).toBeGreaterThan(0)
      for (const scan of scans) expect(scan['Actual Rows']! * scan['Actual Loops']!).toBeLessThanOrEqual(ids.length)
    } finally {
      await database.close()
    }
  })
})

it('the age of the oldest pending delivery is 0 when none is pending', async () => {
  const oldest = () => oldestPendingSeconds(fixture.database, fixture.clock.now())
  expect(await oldest()).toBe(0)
  await failNew()
  await fixture.clock.advance(25 * SECOND)
  expect(await oldest()).toBe(25)
  await finish(await claimOne(), 'delivered')
  expect(await oldest()).toBe(0)
})
