/** What Alertmanagers have while checks and channels change. */

import { describe, expect, it, vi } from 'vitest'
import { createSealer } from '../../../src/channels/seal.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { STATUSES, type StoredStatus } from '../../../src/domain/check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { leaseAlerts, leaseUntil } from '../../../src/store/outbox/alerts.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { eventually } from '../../support/until.ts'
import {
  A,
  addDown,
  addProject,
  B,
  channelId,
  copyAlert,
  createKeeper,
  deliver,
  FOREVER,
  fakes,
  fixture,
  iso,
  keep,
  keepAfter,
  lastAlerts,
  problems,
  raise,
  replaceFakes,
  rows,
  useAlerts,
} from './alerts-fixture.ts'

useAlerts()

describe('an alert of a check that is down', () => {
  it('is posted every minute with a later end, and not before', async () => {
    const check = await raise()
    const fired = fakes.posts[0]!.alerts[0]!
    fakes.posts.length = 0
    await keepAfter(MINUTE - 1)
    expect(fakes.posts).toEqual([])
    for (let minute = 1; minute <= 3; minute += 1) {
      await keepAfter(minute === 1 ? 1 : MINUTE)
      const now = fixture.clock.now()
      expect(fakes.posts.splice(0).map(({ host, alerts }) => [host, alerts])).toEqual([
        [A, [{ ...fired, endsAt: iso(now + 15 * MINUTE) }]],
        [B, [{ ...fired, endsAt: iso(now + 15 * MINUTE) }]],
      ])
      expect(await rows()).toMatchObject([{ resolved_at: null, tell_at: now + MINUTE }])
    }
    expect(fakes.firing(B)).toEqual([check.slug])
  })

  it('stays as its recipients know the check while that flaps: it fires after check.down, and ends after check.up', async () => {
    const check = await raise()
    const flap = (status: StoredStatus, notified: StoredStatus) =>
      fixture.database.query('update check_states set status = $1, notified = $2, incident_since = now()', [
        STATUSES.indexOf(status),
        STATUSES.indexOf(notified),
      ])
    await flap('up', 'down')
    await keepAfter(MINUTE)
    expect(fakes.firing(A)).toEqual([check.slug])
    expect(await rows()).toMatchObject([{ resolved_at: null, tell_at: fixture.clock.now() + MINUTE }])
    await flap('down', 'up')
    await keepAfter(MINUTE)
    expect(fakes.firing(A)).toEqual([])
  })

  it('carries the newest text of a failing ping from its next post on, under the same labels', async () => {
    const ping = (type: 'fail' | 'success' | 'log' | 'start', text: string | null) =>
      fixture.ping(check, { type, exitCode: null, body: text === null ? null : Buffer.from(text) })
    const check = await fixture.addCheck()
    await ping('fail', 'of an earlier time')
    await ping('success', null)
    await ping('fail', 'disk full')
    await deliver(check)
    const labels = lastAlerts()[0]!.labels
    const bodyAfter = async (ms: number) => {
      await keepAfter(ms)
      expect(lastAlerts()[0]!.labels).toEqual(labels)
      return lastAlerts()[0]!.annotations.body
    }
    expect(await bodyAfter(MINUTE)).toBe('disk full')
    await ping('fail', 'still full\u001b[0m\n')
    await ping('log', 'a log')
    await ping('fail', null)
    await fixture.ping(check, { type: 'fail', exitCode: null, body: null, isBodyTruncated: true })
    await ping('start', 'a start')
    expect(await bodyAfter(0)).toBe('still full')
    expect(await bodyAfter(MINUTE)).toBe('still full')
    await ping('fail', `${'x'.repeat(5_000)}end`)
    expect(await bodyAfter(0)).toBe(`${'x'.repeat(4_093)}end`)
    await ping('success', 'well')
    expect(await bodyAfter(0)).toBe(`${'x'.repeat(4_093)}end`)
    expect(fakes.firing(A)).toEqual([])
  })

  it('gets no text of a failing ping that came before the check went down', async () => {
    const check = await fixture.addCheck()
    await fixture.ping(check, { type: 'fail', body: Buffer.from('disk full') })
    await fixture.ping(check)
    await fixture.database.query(`update check_states set status = ${STATUSES.indexOf('down')}`)
    await fixture.clock.advance(MINUTE)
    await deliver(check)
    await keepAfter(MINUTE)
    expect(fakes.firing(A)).toEqual([check.slug])
    expect(lastAlerts()[0]!.annotations.body).toBeUndefined()
  })

  it('is posted soon to a peer that was away', async () => {
    await raise()
    fakes.answer(B, 'refuse')
    await keepAfter(MINUTE)
    expect(await rows()).toMatchObject([{ tell_at: fixture.clock.now() + 10 * SECOND }])
    fakes.answer(B, 200)
    await keepAfter(10 * SECOND)
    expect(await rows()).toMatchObject([{ tell_at: fixture.clock.now() + MINUTE }])
  })

  it('is posted although its delivery failed', async () => {
    fakes.answer(A, 'refuse')
    fakes.answer(B, 'refuse')
    const check = await addDown()
    expect((await deliver(check)).kind).toBe('retry')
    fakes.answer(A, 200)
    await keepAfter(10 * SECOND)
    expect(fakes.firing(A)).toEqual([check.slug])
  })

  it('is posted by another replica when the lease of a dead one expires', async () => {
    await raise()
    await fixture.clock.advance(MINUTE)
    const now = fixture.clock.now()
    await leaseAlerts(fixture.database, channelId, { now, until: leaseUntil(now), limit: 10 })
    fakes.posts.length = 0
    await keep()
    expect(fakes.posts).toEqual([])
    await keepAfter(31 * SECOND)
    expect(fakes.posts).toHaveLength(2)
  })
})

describe('an alert that is false', () => {
  const untrue: [string, (check: CheckRecord) => Promise<unknown>][] = [
    ['the check is up', (check) => fixture.ping(check)],
    ['the channel is muted', () => fixture.database.query('update channels set muted = true')],
    [
      'the channel serves another project',
      async () => fixture.database.query('update channels set project_id = $1', [await addProject('payments')]),
    ],
    [
      'the check has moved out of the organization',
      async () => fixture.database.query('update checks set project_id = $1', [await addProject('theirs', true)]),
    ],
    ['the check is gone', ({ key }) => fixture.database.query('delete from checks where key = $1', [key])],
  ]

  it.each(untrue)('because %s ends within a minute', async (_, change) => {
    const check = await raise()
    const { labels, annotations, startsAt } = fakes.posts[0]!.alerts[0]!
    await change(check)
    await keepAfter(MINUTE)
    const now = fixture.clock.now()
    expect(lastAlerts()).toMatchObject([{ labels, annotations, startsAt, endsAt: iso(now - 2 * SECOND) }])
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
    expect(await rows()).toMatchObject([{ resolved_at: now, tell_at: now + 10 * SECOND }])
  })

  it('is ended after 10 s and then every minute for 15 minutes, and then deleted', async () => {
    const check = await raise()
    await fixture.ping(check)
    await deliver(check, 'check.up')
    const endedAt = fixture.clock.now()
    const posted: number[] = []
    for (let [row] = await rows(); row !== undefined; [row] = await rows()) {
      await fixture.clock.advance(row.tell_at - fixture.clock.now())
      fakes.posts.length = 0
      await keep()
      if (fakes.posts.length === 0) continue
      posted.push((fixture.clock.now() - endedAt) / SECOND)
      expect(lastAlerts()).toMatchObject([{ endsAt: iso(endedAt - 2 * SECOND) }])
    }
    expect(posted).toEqual([10, 70, 130, 190, 250, 310, 370, 430, 490, 550, 610, 670, 730, 790, 850])
  })

  it('ends soon at a peer whose clock is behind and that ignores an end in its future', async () => {
    replaceFakes(() => fixture.clock.now() - 5 * SECOND)
    const check = await raise()
    await fixture.ping(check)
    await deliver(check, 'check.up')
    expect(fakes.firing(A)).toEqual([check.slug])
    await keepAfter(10 * SECOND)
    expect([fakes.firing(A), fakes.firing(B)]).toEqual([[], []])
  })

  it('fires again only when its event is delivered', async () => {
    const check = await raise()
    await fixture.ping(check)
    await deliver(check, 'check.up')
    await fixture.ping(check, { type: 'fail' })
    await keepAfter(MINUTE)
    expect(fakes.firing(A)).toEqual([])
    await deliver(check)
    await keepAfter(MINUTE)
    expect(fakes.firing(A)).toEqual([check.slug])
  })

  it('does not end an alert of another check with the same labels', async () => {
    const first = await raise({ slug: 'one' })
    const second = await raise({ slug: 'two' })
    const context = { database: fixture.database, clock: fixture.clock }
    const rename = (check: CheckRecord, slug: string) => updateCheck(context, fixture.tenant(), check.id, { slug })
    await rename(first, 'three')
    await rename(second, 'one')
    await rename(first, 'two')
    await keep()
    expect(fakes.firing(A)).toEqual(['one', 'two'])
  })
})

describe('a channel', () => {
  it('that was removed posts nothing: its alerts end by themselves', async () => {
    await raise()
    await fixture.database.query('delete from channels')
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    await keep()
    expect([fakes.posts, await rows()]).toEqual([[], []])
  })

  it('that cannot be unsealed is reported, and left to other replicas', async () => {
    const check = await raise()
    await fixture.ping(check)
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    const keeper = createKeeper({ sealer: createSealer(Buffer.alloc(32, 9), []) })
    await keep(keeper)
    await keep(keeper)
    expect(problems).toEqual([[channelId, expect.stringContaining('SECRET_KEY')]])
    expect(fakes.posts).toEqual([])
    await keep()
    expect(fakes.firing(A)).toEqual([])
  })

  it('with a failing peer is reported once until all its peers accept again', async () => {
    await raise()
    const keeper = createKeeper()
    const runWith = async (how: 'refuse' | 200) => {
      fakes.answer(B, how)
      await keepAfter(MINUTE, keeper)
      return problems.length
    }
    expect([await runWith('refuse'), await runWith('refuse'), await runWith(200), await runWith('refuse')]).toEqual([
      1, 1, 1, 2,
    ])
    expect(problems[0]).toEqual([channelId, expect.stringContaining(B)])
  })

  it('gets its own alerts, that of the installation at its configured peers', async () => {
    const settings = { kind: 'alertmanager', urls: ['http://c:9093'], labels: {} } as const
    const other = await fixture.addChannel({ settings })
    const check = await raise()
    await deliver(check, 'check.down', other)
    await fixture.database.query(
      `insert into channels (id, kind, name, event_types, created_at)
        values ('00000000-0000-7000-8000-000000000001', 'alertmanager', 'Installation', '{check.down}', now())`,
    )
    await fixture.database.query(
      `update alerts set channel_id = '00000000-0000-7000-8000-000000000001' where channel_id = $1`,
      [channelId],
    )
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    await keep(createKeeper({ installationUrls: ['http://d:9093'] }))
    expect(fakes.posts.map(({ host, isTrusted }) => [host, isTrusted]).sort()).toEqual([
      ['c:9093', false],
      ['d:9093', true],
    ])
    expect(fakes.firing('d:9093')).toEqual([check.slug])
  })

  it('that hangs delays no other, and ends with the service', async () => {
    const hanging = await fixture.addChannel({
      settings: { kind: 'alertmanager', urls: ['http://dead:9093'], labels: {} },
    })
    const check = await raise()
    fakes.answer('dead:9093', 'refuse')
    await deliver(check, 'check.down', hanging)
    fakes.answer('dead:9093', 'hang')
    const keeper = createKeeper()
    const stopping = new AbortController()
    fakes.posts.length = 0
    const countOf = (wanted: string) => fakes.posts.filter(({ host }) => host === wanted).length
    for (let minute = 1; minute <= 2; minute += 1) {
      await fixture.clock.advance(MINUTE)
      await keeper.run(stopping.signal)
      await eventually(
        'both peers have the alerts of this minute',
        () => countOf(A) === minute && countOf(B) === minute,
      )
      await eventually(
        'the last round has ended',
        async () => (await rows()).filter(({ tell_at }) => tell_at === fixture.clock.now() + MINUTE).length === 1,
      )
    }
    expect(countOf('dead:9093')).toBe(1)
    stopping.abort()
    await keeper.stop()
    expect((await rows()).every(({ tell_at }) => tell_at <= fixture.clock.now() + MINUTE)).toBe(true)
  })

  it('with a peer that does not respond has all batches posted to the others in seconds', async () => {
    const { key } = await raise()
    await copyAlert(key, 9)
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    fakes.answer(B, 'hang')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const keeper = createKeeper({ batch: 5 })
      let hold = fakes.hold(B)
      await keeper.run(FOREVER)
      for (const alerts of [5, 10]) {
        await hold.arrived
        expect(fakes.posts.filter(({ host }) => host === A).flatMap((post) => post.alerts)).toHaveLength(alerts)
        hold.release()
        hold = fakes.hold(B)
        await vi.advanceTimersByTimeAsync(3_000)
      }
      await keeper.stop()
    } finally {
      vi.useRealTimers()
    }
    expect((await rows()).every(({ tell_at }) => tell_at === fixture.clock.now() + 10 * SECOND)).toBe(true)
  })

  it('gets all of its alerts in several batches', async () => {
    const { key } = await raise()
    await copyAlert(key, 24)
    await fixture.clock.advance(MINUTE)
    fakes.posts.length = 0
    await keep(createKeeper({ batch: 5 }))
    const posts = fakes.posts.filter(({ host }) => host === A)
    expect(posts.map(({ alerts }) => alerts.length)).toEqual([5, 5, 5, 5, 5])
  })
})

it('a run throws when the database is away', async () => {
  await raise()
  await fixture.clock.advance(MINUTE)
  const away = createDatabase({ url: 'postgres://127.0.0.1:1/nobody', name: 'away', connections: 1 })
  await expect(createKeeper({ database: away }).run(FOREVER)).rejects.toThrow('database')
  await away.close()
})

it('a run throws an error of work that the run before has begun', async () => {
  await raise()
  await fixture.clock.advance(MINUTE)
  const { database } = fixture
  const failing = {
    ...database,
    query: (async (statement: { name?: string }) => {
      if (statement.name === 'lease_alerts') throw new Error('the disk is full')
      return database.query(statement as never)
    }) as typeof database.query,
  }
  const keeper = createKeeper({ database: failing })
  await keep(keeper)
  await expect(keeper.run(FOREVER)).rejects.toThrow('the disk is full')
  await keeper.stop()
})
