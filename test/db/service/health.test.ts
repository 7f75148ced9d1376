import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { testChannel } from '../../../src/channels/test-channel.ts'
import { VERSION } from '../../../src/runtime/version.ts'
import { findHealth, MAX_WAITING } from '../../../src/service/find-health.ts'
import { createReporter, type ReporterOptions } from '../../../src/service/report.ts'
import { takeClusterName } from '../../../src/store/leases/clusters.ts'
import { useEach } from '../../support/use.ts'
import { anOrganization, START, useOrganization } from '../auth/fixtures.ts'
import { aChannel, contextOf, manyDeliveries } from '../channels/fixture.ts'

const PACKAGE = (await import('../../../package.json', { with: { type: 'json' } })).default

const { test, clock, organization: acme } = useOrganization()
const context = useEach(() => contextOf(test.database, { clock }))

const reporter = (options: Partial<ReporterOptions> = {}) =>
  createReporter({ ...context, role: 'api', cluster: null, isLeading: () => false, host: 'api-1', ...options })
const controller = (host: string, isLeading = false, cluster = 'east') =>
  reporter({ role: 'controller', cluster, host, isLeading: () => isLeading })
const health = (caller = acme.caller) => findHealth(context, caller)
const age = (host: string, seconds: number) =>
  test.database.query(`update replicas set seen_at = seen_at - $2 * interval '1 second' where host = $1`, [
    host,
    seconds,
  ])

describe('replicas', () => {
  it('are the processes that report, once each, until they stop', async () => {
    const [first, second] = [reporter(), reporter({ host: 'api-2' })]
    await Promise.all([first.run(), second.run()])
    await first.run()
    const { replicas, version } = await health()
    expect(version).toBe(PACKAGE.version)
    expect(replicas.map(({ host }) => host).sort()).toEqual(['api-1', 'api-2'])
    const shared = { id: expect.any(String), role: 'api', version: VERSION, startedAt: expect.any(Number) }
    expect(replicas.find(({ host }) => host === 'api-1')).toEqual({
      ...shared,
      host: 'api-1',
      seenSecondsAgo: expect.any(Number),
      isLive: true,
    })
    await first.stop()
    expect((await health()).replicas.map(({ host }) => host)).toEqual(['api-2'])
  })

  it('are missing after three reports that did not come, and forgotten after an hour', async () => {
    await reporter({ host: 'young' }).run()
    await reporter({ host: 'killed' }).run()
    await age('young', 14)
    await age('killed', 16)
    const states = async () => Object.fromEntries((await health()).replicas.map(({ host, isLive }) => [host, isLive]))
    expect(await states()).toEqual({ young: true, killed: false })
    await age('killed', 3_500)
    await reporter({ host: 'other' }).run()
    expect(await states()).toHaveProperty('killed')
    await age('killed', 100)
    await reporter({ host: 'other' }).run()
    expect(await states()).not.toHaveProperty('killed')
  })

  it('keep their row when they were frozen for longer than an hour', async () => {
    const frozen = reporter({ host: 'frozen' })
    await frozen.run()
    await age('frozen', 7_200)
    await frozen.run()
    expect((await health()).replicas).toMatchObject([{ host: 'frozen', isLive: true }])
  })

  it('have host names of a bounded length', async () => {
    await reporter({ host: 'h'.repeat(1_000) }).run()
    expect((await health()).replicas[0]!.host).toHaveLength(255)
  })
})

describe('clusters', () => {
  it('have a leader since it leads, and standbys', async () => {
    let isLeading = false
    const first = reporter({ role: 'controller', cluster: 'east', host: 'c-1', isLeading: () => isLeading })
    await first.run()
    await controller('c-2').run()
    expect((await health()).clusters).toEqual([{ name: 'east', leaders: [], standbys: 2, seenSecondsAgo: null }])
    isLeading = true
    await first.run()
    const leaders = (await health()).clusters?.[0]?.leaders
    expect(leaders).toEqual([{ host: 'c-1', since: expect.any(Number) }])
    await first.run()
    // The start of the term stays, however often it is reported.
    expect((await health()).clusters).toEqual([{ name: 'east', leaders, standbys: 1, seenSecondsAgo: null }])
    isLeading = false
    await first.run()
    expect((await health()).clusters).toEqual([{ name: 'east', leaders: [], standbys: 2, seenSecondsAgo: null }])
  })

  it('have no leader any more when it is missing, and two when two lead under one name', async () => {
    await controller('c-1', true).run()
    await age('c-1', 16)
    expect((await health()).clusters).toEqual([{ name: 'east', leaders: [], standbys: 0, seenSecondsAgo: null }])
    await controller('c-2', true).run()
    await controller('c-3', true).run()
    await controller('w-1', true, 'west').run()
    const { clusters } = await health()
    expect(clusters!.map(({ name, leaders }) => [name, leaders.map(({ host }) => host).sort()])).toEqual([
      ['east', ['c-2', 'c-3']],
      ['west', ['w-1']],
    ])
  })

  it('are remembered when their controllers are forgotten', async () => {
    await takeClusterName(test.database, { name: 'east', uid: 'u', holderSeconds: 30 })
    await test.database.query("update clusters set seen_at = seen_at - interval '2 hours'")
    const { clusters } = await health()
    expect(clusters).toEqual([{ name: 'east', leaders: [], standbys: 0, seenSecondsAgo: expect.any(Number) }])
    expect(clusters![0]!.seenSecondsAgo).toBeGreaterThan(7_199)
  })

  it('are shown to the organization whose checks they declare, and to no other', async () => {
    const other = await anOrganization(test.database, 'other')
    await controller('c-1', true).run()
    expect((await health()).clusters).toHaveLength(1)
    const theirs = await health(other.caller)
    expect(theirs.clusters).toBeNull()
    expect(theirs.replicas).toMatchObject([{ host: 'c-1', role: 'controller' }])
    expect(JSON.stringify(theirs)).not.toContain('east')
  })
})

describe('deliveries that wait', () => {
  const NONE = { count: 0, oldestAt: null, dueSince: null }

  it('are counted with the oldest, and since when it is due', async () => {
    expect((await health()).waiting).toEqual(NONE)
    const { id } = await aChannel(context, acme.id)
    await testChannel(context, acme.caller, id)
    clock.time = START + 60_000
    await testChannel(context, acme.caller, id)
    expect((await health()).waiting).toEqual({ count: 2, oldestAt: START, dueSince: START })
    // Claimed ones are being sent, later ones wait for their time.
    await test.database.query(
      'update deliveries set claimed_until = to_timestamp($1) where created_at = to_timestamp($2)',
      [START / 1_000 + 90, START / 1_000],
    )
    expect((await health()).waiting).toEqual({ count: 2, oldestAt: START, dueSince: START + 60_000 })
    clock.time = START + 90_000
    expect((await health()).waiting.dueSince).toBe(START)
    await test.database.query(`update deliveries set next_attempt_at = to_timestamp($1), claimed_until = null`, [
      START / 1_000 + 91,
    ])
    expect((await health()).waiting).toEqual({ count: 2, oldestAt: START, dueSince: null })
    await test.database.query(`update deliveries set status = 2, next_attempt_at = null`)
    expect((await health()).waiting).toEqual(NONE)
  })

  it('are those of the own organization, of channels that exist, up to a limit', async () => {
    const other = await anOrganization(test.database, 'other')
    const { id } = await aChannel(context, other.id)
    await manyDeliveries(test.database, other.id, id, MAX_WAITING + 5)
    await manyDeliveries(test.database, acme.id, randomUUID(), 1)
    expect((await health()).waiting).toEqual(NONE)
    expect((await health(other.caller)).waiting.count).toBe(MAX_WAITING + 1)
  })
})

describe('gaps', () => {
  it('are the newest twenty, newest first', async () => {
    await test.database.query(
      `insert into gaps (started_at, ended_at) select t, t + interval '7 seconds'
        from generate_series('2026-01-01'::timestamptz, '2026-01-25', '1 day') t`,
    )
    const { gaps } = await health()
    expect(gaps).toHaveLength(20)
    const last = Date.parse('2026-01-25T00:00:00Z')
    expect(gaps[0]).toEqual({ startedAt: last, endedAt: last + 7_000, isSpooled: false })
    expect(gaps[19]!.startedAt).toBe(Date.parse('2026-01-06T00:00:00Z'))
  })
})

describe('pings on disk', () => {
  const beatOf = (pending: string | null, seen = '0 seconds') =>
    test.database.query(
      `insert into ping_beats (id, started_at, beat_at, has_spool, pending_since)
        values (gen_random_uuid(), now(), now() - $1::interval, true, now() - $2::interval)`,
      [seen, pending],
    )

  it('are those of replicas that work, since the oldest one, and at last do not keep deadlines waiting', async () => {
    clock.time = Date.now()
    await beatOf(null)
    await beatOf('1 day', '20 seconds')
    expect((await health()).spooled).toBeNull()
    await beatOf('3 minutes')
    await beatOf('9 minutes')
    const { spooled } = await health()
    expect(spooled).toEqual({ since: expect.any(Number), isIgnored: false })
    expect(Math.round((context.clock.now() - spooled!.since) / 60_000)).toBe(9)
    await beatOf('11 minutes')
    expect((await health()).spooled).toMatchObject({ isIgnored: true })
  })
})
