import { describe, expect, it } from 'vitest'
import type { ElectorOptions } from '../../../src/kubernetes/elector.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { aCandidate, aLeader, aLoneCandidate, aPair, aQuickCandidate, aServer, timeOf } from './candidates.ts'

describe('one candidate', () => {
  it('creates the lease that is not there, and leads', async () => {
    const { clock, server, elector, steps, leading, problems } = aLoneCandidate()
    expect(leading).toEqual([])
    expect(elector.isLeader()).toBe(false)
    elector.start()
    elector.start()
    await clock.settle()
    expect(steps.map(({ what }) => what)).toEqual(['leader', 'begin'])
    expect(elector.isLeader()).toBe(true)
    expect(leading).toEqual([true])
    expect(server.lease()).toMatchObject({ kind: 'Lease', metadata: { namespace: 'heartbeats', name: 'operator' } })
    expect(server.spec()).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    })
    expect(problems).toEqual([])
  })

  it('renews every two seconds, with times of six digits, and keeps the rest', async () => {
    const { clock, server, elector } = await aLeader()
    await clock.advance(0.25)
    server.edit((lease) => ({ ...lease, metadata: { ...lease.metadata, labels: { team: 'x' } } }))
    await clock.advance(60_000)
    expect(server.writes('a').map(({ at }) => at - server.log[0]!.at)).toEqual([
      ...[0, 2_000, 2_000],
      ...Array.from({ length: 29 }, (_, index) => 4_000 + 2_000 * index),
    ])
    expect(server.spec()).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:01:00.000000Z',
      leaseTransitions: 0,
    })
    expect(server.lease()!.metadata.labels).toEqual({ team: 'x' })
    expect(elector.isLeader()).toBe(true)
  })

  it('gives no request more than half the deadline for a renewal', async () => {
    const { clock, server, elector } = await aLeader()
    await clock.advance(10_000)
    const stopped = elector.stop()
    await clock.settle()
    await stopped
    expect(server.log.length).toBeGreaterThan(5)
    expect(new Set(server.log.map(({ timeoutMs }) => timeoutMs))).toEqual(new Set([5_000]))
  })

  it('outlives failing renewals for less than the deadline, and says so', async () => {
    const { clock, elector, behaviour, problems, what } = await aLeader()
    behaviour.write = 'fail'
    await clock.advance(9_999)
    behaviour.write = 'answer'
    expect(elector.isLeader()).toBe(true)
    expect(problems[0]).toBe('lease heartbeats/operator could not be renewed: leases: InternalError')
    await clock.advance(1)
    expect(elector.isLeader()).toBe(false)
    expect(what()).toEqual(['leader', 'begin', 'follower', 'abort', 'end'])
  })

  it('goes on when a renewal comes through in the last moment before the deadline', async () => {
    const { clock, elector, behaviour, what } = await aLeader()
    behaviour.write = 'fail'
    await clock.advance(7_999)
    behaviour.write = 'answer'
    await clock.advance(10_000)
    expect(elector.isLeader()).toBe(true)
    expect(what()).toEqual(['leader', 'begin'])
  })

  it.each(['hang', 'fail', 'lose'] as const)('stops at the deadline when renewals %s', async (write) => {
    const { clock, behaviour, steps, problems, leading } = await aLeader()
    behaviour.write = write
    behaviour.get = 'hang'
    await clock.advance(12_000)
    expect(timeOf(steps, 'abort') - timeOf(steps, 'begin')).toBe(10_000)
    expect(problems).toContain('lease heartbeats/operator was lost: not renewed within 10000 ms')
    expect(leading).toEqual([true, false])
  })

  it('counts the deadline from before a renewal is sent, not from its response', async () => {
    const { clock, server } = aServer()
    const { client } = server.clientOf('a')
    let delayMs = 0
    const slow = {
      ...client,
      async replace(...parameters: Parameters<typeof client.replace>) {
        const answer = await client.replace(...parameters)
        await clock.sleep(delayMs)
        return answer
      },
    } as ElectorOptions['client']
    const { elector, behaviour, steps } = aQuickCandidate(server, clock, 'a', { client: slow })
    void behaviour
    elector.start()
    await clock.settle()
    delayMs = 4_000
    await clock.advance(6_000)
    delayMs = 100_000
    // Renewed at 2 s, answered at 6 s: trusted until 12 s.
    await clock.advance(6_000)
    expect(timeOf(steps, 'abort') - timeOf(steps, 'begin')).toBe(12_000)
  })

  it('does not lead after the deadline even before a timer has fired', async () => {
    const { clock, server } = aServer()
    let now = clock.now()
    const blocked: Clock = { now: () => now, sleep: clock.sleep }
    const { elector } = aQuickCandidate(server, clock, 'a', { clock: blocked })
    elector.start()
    await clock.settle()
    now += 9_999
    expect(elector.isLeader()).toBe(true)
    now += 1
    expect(elector.isLeader()).toBe(false)
  })

  it('stops leading when another candidate holds the lease', async () => {
    const { clock, server, elector, steps, problems, what } = await aLeader({}, aCandidate)
    server.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'b' } }))
    await clock.advance(2_000)
    expect(timeOf(steps, 'abort') - timeOf(steps, 'begin')).toBe(2_000)
    expect(problems).toEqual(['lease heartbeats/operator was lost: b holds it'])
    // While its work still ends.
    expect({ isLeader: elector.isLeader(), what: what() }).toEqual({
      isLeader: false,
      what: ['leader', 'begin', 'follower', 'abort'],
    })
  })

  it('stops when the lease was removed, and enters the election again', async () => {
    const { clock, server, what, problems } = await aLeader()
    server.remove()
    await clock.advance(2_000)
    expect(what()).toEqual(['leader', 'begin', 'follower', 'abort', 'end'])
    expect(problems.at(-1)).toBe('lease heartbeats/operator was lost: it has no holder any more')
    await clock.advance(2_000)
    expect(what().slice(5)).toEqual(['leader', 'begin'])
  })

  it('enters the election again only when its work has ended, and says when that outlasts the lease', async () => {
    const { clock, server, behaviour, what, problems, endWork } = await aLeader({}, aCandidate)
    behaviour.write = 'fail'
    await clock.advance(10_000)
    behaviour.write = 'answer'
    const asked = server.log.length
    const overrun = /has expired while the work of its former holder goes on/
    await clock.advance(4_999)
    expect(problems.some((problem) => overrun.test(problem))).toBe(false)
    await clock.advance(1)
    expect(problems.filter((problem) => overrun.test(problem))).toHaveLength(1)
    await clock.advance(60_000)
    expect(server.log).toHaveLength(asked)
    expect(what()).toEqual(['leader', 'begin', 'follower', 'abort'])
    endWork()
    await clock.advance(2_000)
    expect(what().slice(4)).toEqual(['end', 'leader', 'begin'])
    expect(problems.filter((problem) => overrun.test(problem))).toHaveLength(1)
  })

  it('does not say so of work that ends before its lease expires', async () => {
    const { clock, behaviour, problems, endWork } = await aLeader({}, aCandidate)
    behaviour.write = 'fail'
    await clock.advance(14_999)
    endWork()
    await clock.advance(60_000)
    expect(problems.filter((problem) => problem.includes('has expired'))).toEqual([])
  })

  it('acquires a lease again that it holds by a write whose response was lost', async () => {
    const { clock, server, elector, behaviour } = aLoneCandidate()
    behaviour.write = 'lose'
    elector.start()
    await clock.advance(5_000)
    expect(elector.isLeader()).toBe(false)
    behaviour.write = 'answer'
    await clock.advance(2_000)
    expect(elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 })
  })

  it('retries a renewal on the current object when the response was lost', async () => {
    const { clock, elector, behaviour, what } = await aLeader()
    behaviour.write = 'lose'
    await clock.advance(6_999)
    behaviour.write = 'answer'
    await clock.advance(30_000)
    expect(what()).toEqual(['leader', 'begin'])
    expect(elector.isLeader()).toBe(true)
  })

  it('gives the lease back when its work ends or fails by itself, and tries again', async () => {
    const { clock, server } = aServer()
    let terms = 0
    const { elector, problems, what } = aQuickCandidate(server, clock, 'a', {
      async onLeading() {
        terms += 1
        if (terms === 1) throw new Error('no cache')
      },
    })
    elector.start()
    await clock.settle()
    expect(problems).toEqual(['lease heartbeats/operator is held for work that failed: no cache'])
    expect(what()).toEqual(['leader', 'follower'])
    expect(server.spec()).toMatchObject({ holderIdentity: '' })
    await clock.advance(1_999)
    expect(terms).toBe(1)
    await clock.advance(1)
    expect(terms).toBe(2)
  })

  it('outlives callbacks that throw', async () => {
    const { clock, server } = aServer()
    const fail = () => {
      throw new Error('no')
    }
    const { elector, behaviour } = aQuickCandidate(server, clock, 'a', { onChange: fail, onProblem: fail })
    behaviour.get = 'fail'
    elector.start()
    await clock.settle()
    behaviour.get = 'answer'
    await clock.advance(2_000)
    expect(elector.isLeader()).toBe(true)
  })
})

describe('annotations of the holder', () => {
  const annotated = (owner: string) => ({ annotations: { 'example.com/owner': owner } })
  const annotationsOf = ({ lease }: ReturnType<typeof aServer>['server']) => lease()?.metadata.annotations

  it('are on the Lease from its creation, beside those of others, and stay when it is given back', async () => {
    const { clock, server, elector } = await aLeader(annotated('one'))
    expect(annotationsOf(server)).toEqual({ 'example.com/owner': 'one' })
    server.edit((lease) => ({
      ...lease,
      metadata: { ...lease.metadata, annotations: { 'example.com/of-others': 'x' } },
    }))
    await clock.advance(5_000)
    const both = { 'example.com/of-others': 'x', 'example.com/owner': 'one' }
    expect(annotationsOf(server)).toEqual(both)
    await elector.stop()
    expect(annotationsOf(server)).toEqual(both)
  })

  it('are shown to who waits, and replaced by who follows', async () => {
    const seen: unknown[] = []
    const onHeld = ({ metadata }: { metadata: { annotations?: object } }) => void seen.push(metadata.annotations)
    const { clock, server, a, b } = await aPair(annotated('one'), { ...annotated('two'), onHeld })
    await clock.advance(5_000)
    expect(seen.length).toBeGreaterThan(1)
    expect(new Set(seen.map((annotations) => JSON.stringify(annotations)))).toEqual(
      new Set(['{"example.com/owner":"one"}']),
    )
    await a.elector.stop()
    await clock.advance(5_000)
    expect(b.elector.isLeader()).toBe(true)
    expect(annotationsOf(server)).toEqual({ 'example.com/owner': 'two' })
  })
})
