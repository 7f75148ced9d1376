import { describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { PRUNE_START, pruneHistory } from '../../../src/checks/prune-history.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { useEach } from '../../support/use.ts'
import {
  addCheck,
  addPingRow,
  countRows,
  manageByKubernetes,
  NOW,
  openTransaction,
  ping,
  untilWaiting,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))

const remove = () => removeCheck(fixture.context, tenant, check.id)
const pinged = (type: 'success' | 'fail', given = {}) =>
  fixture.database.transaction((tx) => ping(tx, check, type, NOW, given))
async function leftOf({ key }: CheckRecord) {
  const tables = ['check_states', 'pings', 'ping_bodies', 'flips', 'events']
  return Object.fromEntries(
    await Promise.all(tables.map(async (table) => [table, await countRows(fixture, table, key)])),
  )
}

describe('removing a check', () => {
  it('deletes its state and history, and leaves the events that are still to be delivered', async () => {
    await pinged('fail', { body: Buffer.from('disk full') })
    await pinged('success')
    const other = await addCheck(fixture, tenant)
    await addPingRow(fixture, other.key, NOW, { body: Buffer.from('kept') })
    const otherLeft = await leftOf(other)

    expect(await leftOf(check)).toEqual({ check_states: 1, pings: 2, ping_bodies: 1, flips: 3, events: 2 })
    await remove()
    expect(await leftOf(check)).toEqual({ check_states: 0, pings: 0, ping_bodies: 0, flips: 0, events: 2 })
    expect(await leftOf(other)).toEqual(otherLeft)
    await expect(getCheck(fixture.context, tenant, check.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('finds none the second time', async () => {
    await remove()
    await expect(remove()).rejects.toMatchObject({ code: 'not_found', message: 'check not found' })
  })

  it('frees its slug', async () => {
    await remove()
    expect(await addCheck(fixture, tenant, { slug: check.slug })).toMatchObject({ slug: check.slug })
  })

  it('leaves the rest of a long history to pruning, in pairs of ping and body', async () => {
    await fixture.database.query(
      `with added as (
         insert into pings (id, check_key, type, source, created_at)
         select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, 3, 0, now() from generate_series(1, 10500) n returning id, check_key)
       insert into ping_bodies (check_key, ping_id, body) select check_key, id, 'x' from added`,
      [check.key],
    )
    await remove()
    expect(await leftOf(check)).toMatchObject({ check_states: 0, pings: 500, ping_bodies: 500 })
    await pruneHistory(
      fixture.context,
      { maxPings: 1_000, maxFlips: 1_000, maxDays: 90, auditMaxDays: 365 },
      PRUNE_START,
    )
    expect(await leftOf(check)).toMatchObject({ pings: 0, ping_bodies: 0 })
  })
})

describe('who may remove', () => {
  it('the API is rejected for a check that Kubernetes manages', async () => {
    await manageByKubernetes(fixture, check, null)
    await expect(remove()).rejects.toMatchObject({
      code: 'managed_by_kubernetes',
      message: 'check is managed by HeartbeatCheck payments/nightly in cluster default; change the resource instead',
    })
    expect(await leftOf(check)).toMatchObject({ check_states: 1, flips: 1 })
  })
})

describe('a removal and a change at the same time', () => {
  it('a ping that was first is stored and then removed with its check', async () => {
    let kind: string | undefined
    const pinging = await openTransaction(fixture, async (tx) => {
      kind = await ping(tx, check, 'fail', NOW, { body: Buffer.from('x') })
    })
    const removing = pinging.commitBefore(() => remove())
    await removing
    expect(kind).toBe('applied')
    expect(await leftOf(check)).toEqual({ check_states: 0, pings: 0, ping_bodies: 0, flips: 0, events: 1 })
  })

  it('a ping that came second finds no check and leaves nothing', async () => {
    // The removal holds the state row and waits for the row of `checks`, which this transaction has.
    const reading = await openTransaction(fixture, (tx) =>
      tx.query('select from checks where key = $1 for key share', [check.key]),
    )
    const removing = remove()
    await untilWaiting(fixture, 1)
    const pinging = fixture.database.transaction((tx) => ping(tx, check, 'fail', NOW, { body: Buffer.from('x') }))
    await untilWaiting(fixture, 2)
    await reading.commit()
    await removing
    expect(await pinging).toBe('unknown')
    expect(await leftOf(check)).toEqual({ check_states: 0, pings: 0, ping_bodies: 0, flips: 0, events: 0 })
  })

  it('a pause that came second finds no check', async () => {
    const reading = await openTransaction(fixture, (tx) =>
      tx.query('select from checks where key = $1 for key share', [check.key]),
    )
    const removing = remove()
    await untilWaiting(fixture, 1)
    const pausing = pauseCheck(fixture.context, tenant, check.id)
    pausing.catch(() => {})
    await untilWaiting(fixture, 2)
    await reading.commit()
    await removing
    await expect(pausing).rejects.toMatchObject({ code: 'not_found' })
  })

  it('one of two removals finds none', async () => {
    const outcomes = await Promise.allSettled([remove(), remove()])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'not_found' } })
  })
})
