import { describe, expect, it } from 'vitest'
import { createElector, type Elector, type ElectorOptions } from '../../../src/kubernetes/elector.ts'
import { ApiError } from '../../../src/kubernetes/errors.ts'
import type { KubernetesObject, ObjectName } from '../../../src/kubernetes/objects.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

const TEN_MINUTES_MS = 600_000

interface LeaseSpec {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}
interface StoredLease extends KubernetesObject {
  spec: LeaseSpec
}

/** What a server does with a request: answers, never answers, refuses to, or does it and loses the answer. */
type Behaviour = 'answer' | 'hang' | 'fail' | 'lose'

const refusal = (status: number, reason: string) =>
  new ApiError({
    request: 'a lease',
    status,
    reason,
    message: `leases: ${reason}`,
    details: null,
    retryAfterSeconds: null,
  })

/** One Lease, with the API server's rules for creating and replacing it. */
function createLeaseServer(clock: Clock) {
  let stored: StoredLease | undefined
  let versions = 0
  const log: { at: number; by: string; verb: string; spec?: LeaseSpec; timeoutMs?: number | undefined }[] = []

  function keep(object: object): StoredLease {
    versions += 1
    const { metadata, spec, ...rest } = structuredClone(object) as StoredLease
    stored = { ...rest, spec, metadata: { ...metadata, uid: 'uid-1', resourceVersion: String(versions) } }
    return structuredClone(stored)
  }

  function clientOf(by: string, behaviour: { get?: Behaviour; write?: Behaviour } = {}) {
    async function act<T>(kind: Behaviour, options: Limits | undefined, what: () => T): Promise<T> {
      if (kind === 'fail') throw refusal(500, 'InternalError')
      if (kind !== 'hang') {
        const answer = what()
        if (kind !== 'lose') return answer
      }
      await clock.sleep(options?.timeoutMs ?? 30_000, options?.signal)
      throw options?.signal?.aborted ? options.signal.reason : new Error(`no answer within ${options?.timeoutMs} ms`)
    }
    const write = (verb: string, options: Limits | undefined, object: object, change: () => StoredLease) => {
      const { spec } = structuredClone(object) as StoredLease
      log.push({ at: clock.now(), by, verb, spec, timeoutMs: options?.timeoutMs })
      return act(behaviour.write ?? 'answer', options, change)
    }
    const client = {
      get(_type: object, _name: ObjectName, options?: Limits) {
        log.push({ at: clock.now(), by, verb: 'get', timeoutMs: options?.timeoutMs })
        return act(behaviour.get ?? 'answer', options, () => {
          if (stored === undefined) throw refusal(404, 'NotFound')
          return structuredClone(stored)
        })
      },
      create(_type: object, object: object, options?: Limits) {
        return write('create', options, object, () => {
          if (stored !== undefined) throw refusal(409, 'AlreadyExists')
          return keep(object)
        })
      },
      replace(_type: object, object: KubernetesObject, options?: Limits) {
        return write('replace', options, object, () => {
          if (stored === undefined) throw refusal(404, 'NotFound')
          if (object.metadata.resourceVersion !== stored.metadata.resourceVersion) throw refusal(409, 'Conflict')
          return keep(object)
        })
      },
    } as unknown as ElectorOptions['client']
    return { client, behaviour }
  }

  return {
    clientOf,
    log,
    writes: (by?: string) => log.filter((entry) => entry.verb !== 'get' && (by === undefined || entry.by === by)),
    lease: () => stored,
    spec: () => stored?.spec,
    /** Somebody else writes. */
    edit(change: (lease: StoredLease) => object): void {
      keep(change(structuredClone(stored!)))
    },
    remove(): void {
      stored = undefined
    },
  }
}
interface Limits {
  timeoutMs?: number
  signal?: AbortSignal
}

type Server = ReturnType<typeof createLeaseServer>

/** Work that ends so long after its signal, with what happened and when. */
function aCandidate(server: Server, clock: ManualClock, identity: string, overrides: Partial<ElectorOptions> = {}) {
  const { client, behaviour } = server.clientOf(identity)
  const told: { at: number; what: string }[] = []
  const problems: string[] = []
  const leading: boolean[] = []
  const gate = Promise.withResolvers<void>()
  const tell = (what: string) => void told.push({ at: clock.now(), what })
  const elector = createElector({
    client,
    namespace: 'heartbeats',
    name: 'operator',
    identity,
    clock,
    random: () => 0,
    async onLeading(signal) {
      tell('begin')
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      tell('abort')
      await gate.promise
      tell('end')
    },
    onChange: (isLeader) => tell(isLeader ? 'leader' : 'follower'),
    onProblem: (error) => void problems.push(error.message),
    metrics: { leading: (isLeader) => void leading.push(isLeader) },
    ...overrides,
  })
  return {
    elector,
    behaviour,
    told,
    problems,
    leading,
    endWork: gate.resolve,
    what: () => told.map(({ what }) => what),
  }
}

/** A candidate whose work ends as soon as it is told to. */
function aQuickCandidate(...parameters: Parameters<typeof aCandidate>) {
  const candidate = aCandidate(...parameters)
  candidate.endWork()
  return candidate
}

function aServer() {
  const clock = createManualClock()
  return { clock, server: createLeaseServer(clock) }
}

const timeOf = (told: { at: number; what: string }[], what: string) => told.find((entry) => entry.what === what)!.at

describe('one candidate', () => {
  it('creates the lease that is not there, and leads', async () => {
    const { clock, server } = aServer()
    const { elector, told, leading, problems } = aQuickCandidate(server, clock, 'a')
    expect(leading).toEqual([false])
    expect({ isLeader: elector.isLeader(), leader: elector.leader() }).toEqual({ isLeader: false, leader: null })
    elector.start()
    elector.start()
    await clock.settle()
    expect(told.map(({ what }) => what)).toEqual(['leader', 'begin'])
    expect({ isLeader: elector.isLeader(), leader: elector.leader() }).toEqual({ isLeader: true, leader: 'a' })
    expect(leading).toEqual([false, true])
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
    const { clock, server } = aServer()
    const { elector } = aQuickCandidate(server, clock, 'a')
    elector.start()
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
    const { clock, server } = aServer()
    const { elector } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.advance(10_000)
    const stopped = elector.stop()
    await clock.settle()
    await stopped
    expect(server.log.length).toBeGreaterThan(5)
    expect(new Set(server.log.map(({ timeoutMs }) => timeoutMs))).toEqual(new Set([5_000]))
  })

  it('outlives failing renewals for less than the deadline, and says so', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems, what } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
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
    const { clock, server } = aServer()
    const { elector, behaviour, what } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'fail'
    await clock.advance(7_999)
    behaviour.write = 'answer'
    await clock.advance(10_000)
    expect(elector.isLeader()).toBe(true)
    expect(what()).toEqual(['leader', 'begin'])
  })

  it.each(['hang', 'fail', 'lose'] as const)('stops at the deadline when renewals %s', async (write) => {
    const { clock, server } = aServer()
    const { elector, behaviour, told, problems, leading } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = write
    behaviour.get = 'hang'
    await clock.advance(12_000)
    expect(timeOf(told, 'abort') - timeOf(told, 'begin')).toBe(10_000)
    expect(problems).toContain('lease heartbeats/operator was lost: not renewed within 10000 ms')
    expect(leading).toEqual([false, true, false])
  })

  it('counts the deadline from before a renewal was sent, not from its answer', async () => {
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
    const { elector, behaviour, told } = aQuickCandidate(server, clock, 'a', { client: slow })
    void behaviour
    elector.start()
    await clock.settle()
    delayMs = 4_000
    await clock.advance(6_000)
    delayMs = 100_000
    // Renewed at 2 s, answered at 6 s: trusted until 12 s.
    await clock.advance(6_000)
    expect(timeOf(told, 'abort') - timeOf(told, 'begin')).toBe(12_000)
  })

  it('knows that it does not lead any more also before a timer could tell', async () => {
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

  it('stops at once when another holds the lease', async () => {
    const { clock, server } = aServer()
    const { elector, told, problems, what } = aCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    server.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'b' } }))
    await clock.advance(2_000)
    expect(timeOf(told, 'abort') - timeOf(told, 'begin')).toBe(2_000)
    expect(problems).toEqual(['lease heartbeats/operator was lost: b holds it'])
    expect(elector.leader()).toBe('b')
    // While its work still ends.
    expect({ isLeader: elector.isLeader(), what: what() }).toEqual({
      isLeader: false,
      what: ['leader', 'begin', 'follower', 'abort'],
    })
  })

  it('stops when the lease was removed, and enters the election again', async () => {
    const { clock, server } = aServer()
    const { elector, what, problems } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    server.remove()
    await clock.advance(2_000)
    expect(what()).toEqual(['leader', 'begin', 'follower', 'abort', 'end'])
    expect(problems.at(-1)).toBe('lease heartbeats/operator was lost: it has no holder any more')
    expect(elector.leader()).toBeNull()
    await clock.advance(2_000)
    expect(what().slice(5)).toEqual(['leader', 'begin'])
  })

  it('enters the election again only when its work has ended, and says when that outlasts the lease', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, what, problems, endWork } = aCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'fail'
    await clock.advance(10_000)
    behaviour.write = 'answer'
    const asked = server.log.length
    const overrun = /has lapsed while the work of its former holder goes on/
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

  it('does not say so of work that ends before its lease lapses', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems, endWork } = aCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'fail'
    await clock.advance(14_999)
    endWork()
    await clock.advance(60_000)
    expect(problems.filter((problem) => problem.includes('has lapsed'))).toEqual([])
  })

  it('takes back at once what it took before when that answer was lost', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour } = aQuickCandidate(server, clock, 'a')
    behaviour.write = 'lose'
    elector.start()
    await clock.advance(5_000)
    expect(elector.isLeader()).toBe(false)
    behaviour.write = 'answer'
    await clock.advance(2_000)
    expect(elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 })
  })

  it('renews once more upon what is there when the answer of a renewal was lost', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, what } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
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

  it.each([
    { leaseMs: 10_000, renewMs: 10_000, retryMs: 2_000 },
    { leaseMs: 15_000, renewMs: 2_400, retryMs: 2_000 },
  ])('refuses times with which two could lead at once: %o', (times) => {
    const { clock, server } = aServer()
    expect(() => aQuickCandidate(server, clock, 'a', times)).toThrow(
      /lease operator: leaseMs > renewMs > 1.2 \* retryMs/,
    )
  })

  it('accepts times that just hold', () => {
    const { clock, server } = aServer()
    aQuickCandidate(server, clock, 'a', { leaseMs: 10_001, renewMs: 10_000, retryMs: 2_000 })
    aQuickCandidate(server, clock, 'a', { leaseMs: 15_000, renewMs: 2_401, retryMs: 2_000 })
  })
})

describe('a clean stop', () => {
  it('tells the work, waits for its end, and only then gives the lease back', async () => {
    const { clock, server } = aServer()
    const { elector, what, endWork, leading } = aCandidate(server, clock, 'a')
    elector.start()
    await clock.advance(5_000)
    let hasStopped = false
    const stopped = elector.stop().then(() => {
      hasStopped = true
    })
    await clock.advance(60_000)
    expect(what()).toEqual(['leader', 'begin', 'abort'])
    expect({ hasStopped, isLeader: elector.isLeader() }).toEqual({ hasStopped: false, isLeader: true })
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
    expect({ isLeader: elector.isLeader(), leader: elector.leader(), leading }).toEqual({
      isLeader: false,
      leader: null,
      leading: [false, true, false],
    })
    expect(clock.wakeTimes()).toEqual([])
  })

  it('gives the lease back also when a renewal is on its way', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'lose'
    await clock.advance(2_000)
    behaviour.write = 'answer'
    await elector.stop()
    expect(server.spec()).toMatchObject({ holderIdentity: '' })
    expect(problems).toEqual([])
  })

  it('takes the lease of nobody else away', async () => {
    const { clock, server } = aServer()
    const { elector } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    server.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'b' } }))
    await elector.stop()
    expect(server.spec()).toMatchObject({ holderIdentity: 'b' })
  })

  it('says when the lease could not be given back', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems, leading } = aQuickCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'hang'
    const stopped = elector.stop()
    await clock.advance(5_000)
    await stopped
    expect(problems).toEqual([
      'lease heartbeats/operator could not be given back, and others must wait for its lapse: no answer within 5000 ms',
    ])
    expect(leading.at(-1)).toBe(false)
  })

  it('gives back a lease that it got in the moment of the stop, and leads nothing', async () => {
    const { clock, server } = aServer()
    const { elector, what } = aQuickCandidate(server, clock, 'a')
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

  it('ends at once while following, also with a request on its way', async () => {
    const { clock, server } = aServer()
    const leader = aQuickCandidate(server, clock, 'a')
    const follower = aQuickCandidate(server, clock, 'b')
    leader.elector.start()
    await clock.settle()
    follower.elector.start()
    await clock.settle()
    follower.behaviour.get = 'hang'
    await clock.advance(2_000)
    await follower.elector.stop()
    expect(follower.problems).toEqual([])
    await aQuickCandidate(server, clock, 'c').elector.stop()
  })

  it('reports work that outlasts a lease which cannot be renewed', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems, endWork } = aCandidate(server, clock, 'a')
    elector.start()
    await clock.settle()
    behaviour.write = 'fail'
    const stopped = elector.stop()
    await clock.advance(14_999)
    expect(problems.some((problem) => problem.includes('has lapsed'))).toBe(false)
    await clock.advance(1)
    expect(problems.some((problem) => problem.includes('has lapsed'))).toBe(true)
    endWork()
    await stopped
    // Not ours any more.
    expect(server.spec()).toMatchObject({ holderIdentity: 'a' })
  })
})

describe('a follower', () => {
  const startBoth = async (first: Elector, second: Elector, clock: ManualClock) => {
    first.start()
    await clock.settle()
    second.start()
    await clock.settle()
  }

  it('does not take a lease over before it has seen no change for its duration, and then counts a transition', async () => {
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    const b = aQuickCandidate(server, clock, 'b')
    await startBoth(a.elector, b.elector, clock)
    a.behaviour.write = 'hang'
    a.behaviour.get = 'hang'
    await clock.advance(14_999)
    expect(b.elector.isLeader()).toBe(false)
    expect(b.elector.leader()).toBe('a')
    await clock.advance(1)
    expect(b.elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({
      holderIdentity: 'b',
      acquireTime: '2026-01-01T00:00:15.000000Z',
      leaseTransitions: 1,
    })
  })

  it('waits for as long as the holder asked for, not as it would itself', async () => {
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a', { leaseMs: 40_000 })
    const b = aQuickCandidate(server, clock, 'b')
    await startBoth(a.elector, b.elector, clock)
    a.behaviour.write = 'hang'
    a.behaviour.get = 'hang'
    await clock.advance(39_999)
    expect(b.elector.isLeader()).toBe(false)
    await clock.advance(1)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('begins to count when it sees the lease, whatever the times in it say', async () => {
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    a.elector.start()
    await clock.settle()
    a.behaviour.write = 'hang'
    a.behaviour.get = 'hang'
    await clock.advance(3_600_000)
    const b = aQuickCandidate(server, clock, 'b')
    b.elector.start()
    await clock.advance(14_999)
    expect(b.elector.isLeader()).toBe(false)
    await clock.advance(1)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('does not take somebody labelling the lease for a sign of its holder', async () => {
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    const b = aQuickCandidate(server, clock, 'b')
    await startBoth(a.elector, b.elector, clock)
    a.behaviour.write = 'hang'
    a.behaviour.get = 'hang'
    for (let second = 0; second < 15; second += 1) {
      await clock.advance(1_000)
      if (second < 14)
        server.edit((lease) => ({ ...lease, metadata: { ...lease.metadata, labels: { touched: `${second}` } } }))
    }
    expect(b.elector.isLeader()).toBe(true)
  })

  it('takes a lease that was given back at its next look, at most 4.4 seconds later', async () => {
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    const b = aQuickCandidate(server, clock, 'b', { random: () => 0.999 })
    await startBoth(a.elector, b.elector, clock)
    await clock.advance(60)
    await a.elector.stop()
    await clock.advance(4_399 - 60)
    expect(b.elector.isLeader()).toBe(true)
    expect(server.spec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1, leaseDurationSeconds: 15 })
    expect(timeOf(b.told, 'begin')).toBeGreaterThanOrEqual(timeOf(a.told, 'end'))
  })

  it('spreads its looks between two and 4.4 seconds', async () => {
    for (const [random, waitMs] of [
      [0, 2_000],
      [1 - Number.EPSILON, 4_400],
    ] as const) {
      const { clock, server } = aServer()
      const a = aQuickCandidate(server, clock, 'a')
      const b = aQuickCandidate(server, clock, 'b', { random: () => random })
      await startBoth(a.elector, b.elector, clock)
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
        expect(timeOf(b.told, 'begin') - killedAt).toBeLessThan(20_000)
      }
    }
  })

  it('goes on trying while the API server fails, and says so', async () => {
    const { clock, server } = aServer()
    const { elector, behaviour, problems } = aQuickCandidate(server, clock, 'a')
    behaviour.get = 'fail'
    elector.start()
    await clock.advance(60_000)
    expect(problems).toHaveLength(31)
    expect(problems[0]).toBe('lease heartbeats/operator could not be taken: leases: InternalError')
    behaviour.get = 'answer'
    await clock.advance(2_000)
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
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    const b = aQuickCandidate(server, clock, 'b', { clock: clock.skewedBy(skewMs) })
    a.elector.start()
    await clock.settle()
    b.elector.start()
    await clock.advance(61_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([true, false])
    a.behaviour.write = 'hang'
    a.behaviour.get = 'hang'
    for (let ms = 0; ms < 20_000; ms += 100) {
      await clock.advance(100)
      expect([a.elector.isLeader(), b.elector.isLeader()]).not.toEqual([true, true])
    }
    a.behaviour.write = 'answer'
    a.behaviour.get = 'answer'
    await clock.advance(60_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([false, true])
    // Told in time, and ended before the other one began.
    expect(timeOf(b.told, 'begin') - timeOf(a.told, 'abort')).toBeGreaterThanOrEqual(5_000 - 2_000)
    expect(timeOf(b.told, 'begin')).toBeGreaterThan(timeOf(a.told, 'end'))
    expect(b.what()).toEqual(['leader', 'begin'])
    expect(a.what()).toEqual(['leader', 'begin', 'follower', 'abort', 'end'])
    expect(server.spec()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
  })

  it('leave at least the difference of lease and deadline between the end of one and the start of the other', async () => {
    // The worst case: the last renewal reaches the server at once, and its answer never comes back.
    const { clock, server } = aServer()
    const a = aQuickCandidate(server, clock, 'a')
    const b = aQuickCandidate(server, clock, 'b')
    a.elector.start()
    await clock.settle()
    b.elector.start()
    await clock.advance(10_000)
    a.behaviour.write = 'lose'
    a.behaviour.get = 'hang'
    await clock.advance(40_000)
    expect(timeOf(b.told, 'begin') - timeOf(a.told, 'abort')).toBeGreaterThanOrEqual(5_000)
  })

  it('never lead at once, whichever of them the API server does not answer', async () => {
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
