/** Candidates for one Lease, on an API server in memory whose answers can be withheld, refused or lost. */

import { createElector, type ElectorOptions } from '../../../src/kubernetes/elector.ts'
import type { KubernetesObject, ObjectName } from '../../../src/kubernetes/objects.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { anApiError } from '../../support/builders.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

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
export type Behaviour = 'answer' | 'hang' | 'fail' | 'lose'

const refusal = (status: number, reason: string) => anApiError(status, { reason, message: `leases: ${reason}` })

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
      throw options?.signal?.aborted ? options.signal.reason : new Error(`no response within ${options?.timeoutMs} ms`)
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
    /** Another client writes. */
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
export function aCandidate(
  server: Server,
  clock: ManualClock,
  identity: string,
  overrides: Partial<ElectorOptions> = {},
) {
  const { client, behaviour } = server.clientOf(identity)
  const steps: { at: number; what: string }[] = []
  const problems: string[] = []
  const leading: boolean[] = []
  const gate = Promise.withResolvers<void>()
  const note = (what: string) => void steps.push({ at: clock.now(), what })
  const elector = createElector({
    client,
    namespace: 'heartbeats',
    name: 'operator',
    identity,
    clock,
    random: () => 0,
    async onLeading(signal) {
      note('begin')
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      note('abort')
      await gate.promise
      note('end')
    },
    onChange(isLeader) {
      leading.push(isLeader)
      note(isLeader ? 'leader' : 'follower')
    },
    onProblem: (error) => void problems.push(error.message),
    ...overrides,
  })
  return {
    elector,
    behaviour,
    steps,
    problems,
    leading,
    endWork: gate.resolve,
    what: () => steps.map(({ what }) => what),
  }
}

/** A candidate whose work ends as soon as its signal aborts. */
export function aQuickCandidate(...parameters: Parameters<typeof aCandidate>) {
  const candidate = aCandidate(...parameters)
  candidate.endWork()
  return candidate
}

export function aServer() {
  const clock = createManualClock()
  return { clock, server: createLeaseServer(clock) }
}

export const timeOf = (steps: { at: number; what: string }[], what: string) =>
  steps.find((entry) => entry.what === what)!.at

/** A candidate `a` on a server of its own. */
export function aLoneCandidate(overrides: Partial<ElectorOptions> = {}, make = aQuickCandidate) {
  const { clock, server } = aServer()
  return { clock, server, ...make(server, clock, 'a', overrides) }
}

/** A candidate `a` that leads already, and is quick unless made otherwise. */
export async function aLeader(overrides: Partial<ElectorOptions> = {}, make = aQuickCandidate) {
  const leader = aLoneCandidate(overrides, make)
  leader.elector.start()
  await leader.clock.settle()
  return leader
}

/** `a` leads and `b` follows; `cutOff` withholds every response from `a`. */
export async function aPair(ofA: Partial<ElectorOptions> = {}, ofB: Partial<ElectorOptions> = {}, skewMs = 0) {
  const { clock, server, ...a } = await aLeader(ofA)
  const b = aQuickCandidate(server, clock, 'b', { clock: clock.skewedBy(skewMs), ...ofB })
  b.elector.start()
  await clock.settle()
  const cutOff = () => Object.assign(a.behaviour, { get: 'hang', write: 'hang' })
  return { clock, server, a, b, cutOff }
}
