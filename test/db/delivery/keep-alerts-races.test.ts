/** Senders and keepers of several replicas post one alert: the last post that an Alertmanager gets is true. */

import { describe, expect, it } from 'vitest'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import {
  A,
  addDown,
  B,
  copyAlert,
  createKeeper,
  deliver,
  fakes,
  fixture,
  keep,
  keepAfter,
  nameOf,
  raise,
  rows,
  useAlerts,
} from './alerts-fixture.ts'

useAlerts()

describe('races', () => {
  it('a check that recovers while its alert is repeated does not stay firing', async () => {
    const check = await raise()
    await fixture.clock.advance(MINUTE)
    const [a, b] = [fakes.hold(A), fakes.hold(B)]
    const pass = keep()
    await Promise.all([a.arrived, b.arrived])
    // The keeper of one replica has posted; its post arrives after that of another replica's sender.
    await fixture.ping(check)
    await deliver(check, 'check.up')
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
    a.release()
    b.release()
    await pass
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
    expect(await rows()).toMatchObject([{ resolved_at: expect.any(Number) }])
  })

  it('a check that goes down while its last end is repeated fires', async () => {
    const check = await raise()
    await fixture.ping(check)
    await deliver(check, 'check.up')
    await fixture.clock.advance(10 * SECOND)
    const [a, b] = [fakes.hold(A), fakes.hold(B)]
    const pass = keep()
    await Promise.all([a.arrived, b.arrived])
    await fixture.ping(check, { type: 'fail' })
    await deliver(check)
    a.release()
    b.release()
    await pass
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[check.slug], [check.slug]])
    expect(await rows()).toMatchObject([{ resolved_at: null }])
  })

  it('a check that is removed while its alert is raised leaves nothing firing', async () => {
    const check = await addDown()
    const hold = fakes.hold(A)
    const delivering = deliver(check)
    await hold.arrived
    await removeCheck({ database: fixture.database, clock: fixture.clock }, fixture.tenant(), check.id)
    // Another replica sees the row and ends the alert before the post of the sender arrives.
    await keep()
    hold.release()
    await delivering
    expect(fakes.firing(A)).toEqual([check.slug])
    await keep()
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
  })

  it('a check that is removed before its alert is raised leaves nothing firing', async () => {
    const check = await addDown()
    await removeCheck({ database: fixture.database, clock: fixture.clock }, fixture.tenant(), check.id)
    await deliver(check)
    await keep()
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
  })

  it('a check that is removed while its alert is repeated leaves nothing firing', async () => {
    const check = await raise()
    await fixture.clock.advance(MINUTE)
    const hold = fakes.hold(A)
    const pass = keep()
    await hold.arrived
    await removeCheck({ database: fixture.database, clock: fixture.clock }, fixture.tenant(), check.id)
    hold.release()
    await pass
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
  })

  it('an end by the keeper and one by the sender are one end', async () => {
    const check = await raise()
    await fixture.ping(check)
    const hold = fakes.hold(A)
    const delivering = deliver(check, 'check.up')
    await hold.arrived
    const [row] = await rows()
    await keepAfter(31 * SECOND)
    hold.release()
    await delivering
    expect(await rows()).toMatchObject([{ resolved_at: row!.resolved_at }])
    expect(fakes.firing(A)).toEqual([])
  })

  it('an alert that another writer has locked is skipped, and delays no other', async () => {
    const first = await raise({ slug: 'one' })
    await raise({ slug: 'two' })
    await fixture.clock.advance(2 * MINUTE)
    fakes.posts.length = 0
    await fixture.database.transaction(async (tx) => {
      await tx.query('select from alerts where check_key = $1 for update', [first.key])
      await keep()
    })
    expect(fakes.posts.map(({ alerts }) => alerts.map(nameOf))).toEqual([['two'], ['two']])
    await keep()
    expect(fakes.posts.slice(2).map(({ alerts }) => alerts.map(nameOf))).toEqual([['one'], ['one']])
  })

  it('two keepers post each alert once', async () => {
    const { key } = await raise()
    await copyAlert(key, 600)
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    const other = createDatabase({ url: fixture.url, name: 'other replica', connections: 3 })
    const replicas = [createKeeper({ batch: 50 }), createKeeper({ batch: 50, database: other })]
    await Promise.all(replicas.map((keeper) => keep(keeper)))
    await other.close()
    const posted = fakes.posts.filter(({ host }) => host === A).flatMap(({ alerts }) => alerts.map(nameOf))
    expect(posted).toHaveLength(601)
    expect(new Set(posted).size).toBe(601)
    expect((await rows()).every(({ tell_at }) => tell_at > fixture.clock.now())).toBe(true)
  })
})
