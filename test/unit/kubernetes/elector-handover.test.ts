import { describe, expect, it } from 'vitest'
import { isPending } from '../../support/until.ts'
import {
  aCandidate,
  aLeader,
  aLoneCandidate,
  aPair,
  aQuickCandidate,
  aServer,
  type Behaviour,
  timeOf,
} from './candidates.ts'

const TEN_MINUTES_MS = 600_000

describe('a clean stop', () => {
  it('a clean stop aborts the work, waits for its end, and only then releases the lease', async () => {
    const { clock, server, elector, what, endWork, leading } = await aLeader({}, aCandidate)
    await clock.advance(5_000)
    const stopped = elector.stop()
    await clock.advance(60_000)
    expect(what()).toEqual(['leader', 'begin', 'abort'])
    expect({ isPending: await isPending(stopped), isLeader: elector.isLeader() }).toEqual({
      isPending: true,
      isLeader: true,
    })
    // Kept alive while the work goes on, however long that takes.
    expect(server.spec()).toMatchObject({ holderIdentity: 'a', renewTime: '2026-01-01T00:01:04.000000Z' })
    endWork()
    await stopped
    expect(what()).toEqual(['leader', 'begin', 'abort', 'end', 'follower'])
    expect(server.spec()).toEqual({
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: '2026-01-01T00:01:05.000000Z',
      renewTime: '2026-01-01T00:01:05.000000Z',
      leaseTransitions: 0,
    })
    expect({ isLeader: elector.isLeader(), leading }).toEqual({ isLeader: false, leading: [true, false] })
    expect(clock.wakeTimes()).toEqual([])
  })

  it('a clean stop releases the lease also during a renewal', async () => {
    const { clock, server, elector, behaviour, problems } = await aLeader()
    behaviour.write = 'lose'
    await clock.advance(2_000)
    behaviour.write = 'answer'
    await elector.stop()
    expect(server.spec()).toMatchObject({ holderIdentity: '' })
    expect(problems).toEqual([])
  })

  it('a clean stop leaves the lease of another holder', async () => {
    const { server, elector } = await aLeader()
    server.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'b' } }))
    await elector.stop()
    expect(server.spec()).toMatchObject({ holderIdentity: 'b' })
  })

  it('a clean stop reports a lease that could not be released', async () => {
    const { clock, elector, behaviour, problems, leading } = await aLeader()
    behaviour.write = 'hang'
    const stopped = elector.stop()
    await clock.advance(5_000)
    await stopped
    expect(problems).toEqual([
      'lease heartbeats/operator could not be released: other candidates must wait until it expires: no response within 5000 ms',
    ])
    expect(leading.at(-1)).toBe(false)
  })

  it('a stop releases a lease that was acquired just then, and no work starts', async () => {
    const { server, elector, what } = aLoneCandidate()
    elector.start()
    // The lease has been asked for, and its answer is on the way.
    for (let turns = 0; server.writes().length === 0 && turns < 100; turns += 1) await Promise.resolve()
    await elector.stop()
    expect(server.writes().map(({ verb, spec }) => [verb, spec?.holderIdentity])).toEqual([
      ['create', 'a'],
      ['replace', ''],
    ])
    expect(what()).toEqual([])
  })

  it('a follower stops at once, also during a request', async () => {
    const { clock, server, b } = await aPair()
    b.behaviour.get = 'hang'
    await clock.advance(2_000)
    await b.elector.stop()
    expect(b.problems).toEqual([])
    await aQuickCandidate(server, clock, 'c').elector.stop()
  })

  it('reports work that outlasts a lease which cannot be renewed', async () => {
    const { clock, server, elector, behaviour, problems, endWork } = await aLeader({}, aCandidate)
    behaviour.write = 'fail'
    const stopped = elector.stop()
    await clock.advance(14_999)
    expect(problems.some((problem) => problem.includes('has expired'))).toBe(false)
    await clock.advance(1)
    expect(problems.some((problem) => problem.includes('has expired'))).toBe(true)
    endWork()
    await stopped
    // Not ours any more.
    expect(server.spec()).toMatchObject({ holderIdentity: 'a' })
  })
})

describe('a follower', () => {
  it('does not take a lease over before it has seen no change for its duration, and then counts a transition', async () => {
    const { clock, server, b, cutOff } = await aPair()
    cutOff()
    await clock.advance(14_999)
    expect(b.elector.isLeader()).toBe(false)
    await clock.advance(1)
    expect(b.elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({
      holderIdentity: 'b',
      acquireTime: '2026-01-01T00:00:15.000000Z',
      leaseTransitions: 1,
    })
  })

  it('waits for as long as the holder asked for, not as it would itself', async () => {
    const { clock, server, b, cutOff } = await aPair()
    cutOff()
    server.edit((lease) => ({ ...lease, spec: { ...lease.spec, leaseDurationSeconds: 40 } }))
    await clock.advance(39_999)
    expect(b.elector.isLeader()).toBe(false)
    // It sees the lease within two seconds.
    await clock.advance(2_001)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('begins to count when it sees the lease, whatever the times in it say', async () => {
    const { clock, server, behaviour } = await aLeader()
    Object.assign(behaviour, { get: 'hang', write: 'hang' })
    await clock.advance(3_600_000)
    const b = aQuickCandidate(server, clock, 'b')
    b.elector.start()
    await clock.advance(14_999)
    expect(b.elector.isLeader()).toBe(false)
    await clock.advance(1)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('a changed label of the lease is not a renewal', async () => {
    const { clock, server, b, cutOff } = await aPair()
    cutOff()
    for (let second = 0; second < 15; second += 1) {
      await clock.advance(1_000)
      if (second < 14)
        server.edit((lease) => ({ ...lease, metadata: { ...lease.metadata, labels: { touched: `${second}` } } }))
    }
    expect(b.elector.isLeader()).toBe(true)
  })

  it('a follower acquires a released lease at its next try, at most 4.4 seconds later', async () => {
    const { clock, server, a, b } = await aPair({}, { random: () => 0.999 })
    await clock.advance(60)
    await a.elector.stop()
    await clock.advance(4_399 - 60)
    expect(b.elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1, leaseDurationSeconds: 15 })
    expect(timeOf(b.steps, 'begin')).toBeGreaterThanOrEqual(timeOf(a.steps, 'end'))
  })

  it('spreads its looks between two and 4.4 seconds', async () => {
    for (const [random, waitMs] of [
      [0, 2_000],
      [1 - Number.EPSILON, 4_400],
    ] as const) {
      const { clock, server } = await aPair({}, { random: () => random })
      const from = clock.now()
      await clock.advance(5_000)
      expect(server.log.find(({ by, at }) => by === 'b' && at > from)!.at - from).toBeCloseTo(waitMs, 5)
    }
  })

  it('leads in less than 20 seconds after a kill, however unluckily its looks fall', async () => {
    for (const startMs of [0, 100, 1_999, 2_001, 3_500]) {
      for (const killMs of [0, 400, 1_900]) {
        const { clock, server } = aServer()
        const a = aQuickCandidate(server, clock, 'a')
        const b = aQuickCandidate(server, clock, 'b', { random: () => 0.999 })
        a.elector.start()
        await clock.advance(startMs)
        b.elector.start()
        await clock.advance(10_000 - startMs + killMs)
        a.behaviour.write = 'hang'
        a.behaviour.get = 'hang'
        const killedAt = clock.now()
        await clock.advance(25_000)
        expect(timeOf(b.steps, 'begin') - killedAt).toBeLessThan(20_000)
      }
    }
  })

  it('goes on trying while the API server fails, and says so', async () => {
    const { clock, elector, behaviour, problems } = aLoneCandidate()
    behaviour.get = 'fail'
    elector.start()
    await clock.advance(60_000)
    expect(problems).toHaveLength(31)
    expect(problems[0]).toBe('lease heartbeats/operator could not be acquired: leases: InternalError')
    behaviour.get = 'answer'
    await clock.advance(2_000)
    expect(elector.isLeader()).toBe(true)
  })

  it('F5: leads at most 4 s after the return of the API server, however unluckily its looks fall', async () => {
    const { clock, elector, behaviour, problems } = aLoneCandidate({ random: () => 0.999 })
    behaviour.get = 'fail'
    elector.start()
    await clock.advance(40_000)
    expect(problems).toHaveLength(11)
    behaviour.get = 'answer'
    await clock.advance(4_000)
    expect(elector.isLeader()).toBe(true)
  })

  it('loses a race for a free lease without a word', async () => {
    const { clock, server } = aServer()
    const candidates = ['a', 'b', 'c'].map((identity) => aQuickCandidate(server, clock, identity))
    for (const { elector } of candidates) elector.start()
    await clock.advance(30_000)
    expect(candidates.map(({ elector }) => elector.isLeader())).toEqual([true, false, false])
    expect(candidates.flatMap(({ problems }) => problems)).toEqual([])
    await candidates[0]!.elector.stop()
    await clock.advance(30_000)
    expect(candidates.filter(({ elector }) => elector.isLeader())).toHaveLength(1)
    expect(candidates.flatMap(({ problems }) => problems)).toEqual([])
  })
})

describe('two candidates', () => {
  it.each([
    ['clocks that agree', 0],
    ['the other one ten minutes ahead', TEN_MINUTES_MS],
    ['the other one ten minutes behind', -TEN_MINUTES_MS],
  ])('hand over without leading at once when renewals are blocked for 20 seconds, with %s', async (_, skewMs) => {
    const { clock, server, a, b, cutOff } = await aPair({}, {}, skewMs)
    await clock.advance(61_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([true, false])
    cutOff()
    for (let ms = 0; ms < 20_000; ms += 100) {
      await clock.advance(100)
      expect([a.elector.isLeader(), b.elector.isLeader()]).not.toEqual([true, true])
    }
    a.behaviour.write = 'answer'
    a.behaviour.get = 'answer'
    await clock.advance(60_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([false, true])
    // Aborted in time, and ended before the other one began.
    expect(timeOf(b.steps, 'begin') - timeOf(a.steps, 'abort')).toBeGreaterThanOrEqual(5_000 - 2_000)
    expect(timeOf(b.steps, 'begin')).toBeGreaterThan(timeOf(a.steps, 'end'))
    expect(b.what()).toEqual(['leader', 'begin'])
    expect(a.what()).toEqual(['leader', 'begin', 'follower', 'abort', 'end'])
    expect(server.spec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  })

  it('leave at least the difference of lease and deadline between the end of one and the start of the other', async () => {
    // The worst case: the last renewal reaches the server at once, and its answer never comes back.
    const { clock, a, b } = await aPair()
    await clock.advance(10_000)
    a.behaviour.write = 'lose'
    a.behaviour.get = 'hang'
    await clock.advance(40_000)
    expect(timeOf(b.steps, 'begin') - timeOf(a.steps, 'abort')).toBeGreaterThanOrEqual(5_000)
  })

  it('never lead at the same time, whichever of them gets no responses', async () => {
    const { clock, server } = aServer()
    let seed = 7
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed / 2 ** 31
    }
    const working = new Set<string>()
    let most = 0
    let terms = 0
    const candidates = ['a', 'b', 'c'].map((identity, index) =>
      aCandidate(server, clock, identity, {
        clock: clock.skewedBy(index * TEN_MINUTES_MS),
        random,
        async onLeading(signal) {
          working.add(identity)
          terms += 1
          most = Math.max(most, working.size)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          // As long as it may take.
          await clock.sleep(4_999)
          working.delete(identity)
        },
      }),
    )
    for (const { elector } of candidates) elector.start()
    const kinds: Behaviour[] = ['answer', 'answer', 'hang', 'fail', 'lose']
    const pick = () => kinds[Math.floor(random() * kinds.length)]!
    for (let round = 0; round < 400; round += 1) {
      for (const { behaviour } of candidates) Object.assign(behaviour, { get: pick(), write: pick() })
      await clock.advance(random() * 12_000)
    }
    expect(most).toBe(1)
    expect(terms).toBeGreaterThan(20)
  })
})
