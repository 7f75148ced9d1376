/**
 * Leader election on a Lease, by client-go's rules and times.
 *
 * A leader trusts its lease for `renewMs` from the moment before it sent the last renewal that was accepted; nobody else can
 * take it before `leaseMs` after that. The difference is the time that its work has to end.
 *
 * Loss: the signal of `onLeading` aborts, nothing is renewed any more (work that never ends must not keep a new leader away
 * for ever), and the election is entered again once `onLeading` has resolved. Clean stop: the signal aborts, the lease is
 * kept renewed until `onLeading` has resolved, and only then given back.
 */

import type { Clock } from '../runtime/clock.ts'
import { createLeaseLock, type Held, type LeaseLockOptions } from './lease.ts'

export interface Elector {
  start(): void
  /** Resolves when `onLeading` has ended and the lease, if held, is given back. */
  stop(): Promise<void>
  /** Does this process hold a lease that it may still trust? True to the moment also after the event loop was blocked. */
  isLeader(): boolean
  /** The holder as last seen; null when there is none. */
  leader(): string | null
}

export interface ElectorMetrics {
  leading(isLeader: boolean): void
}

export interface ElectorOptions {
  readonly client: LeaseLockOptions['client']
  readonly namespace: string
  readonly name: string
  /** Another one for each start of each process. */
  readonly identity: string
  readonly clock: Clock
  /** From 0 to below 1. */
  readonly random?: () => number
  readonly leaseMs?: number
  /** A leader that has renewed nothing for so long stops. */
  readonly renewMs?: number
  readonly retryMs?: number
  /** Runs while leading. When it ends by itself, the lease is given back and the election entered again. */
  onLeading(signal: AbortSignal): Promise<void>
  /** True with the lease, false with its loss or when it is given back. */
  onChange?(isLeader: boolean): void
  onProblem(error: Error): void
  readonly metrics?: ElectorMetrics
}

/** client-go's: candidates wait up to 1.2 times longer than asked, each time anew, so that they come apart. */
const JITTER = 1.2
/** Those who wait for the same moment, the lapse of a lease, come apart by this part of a retry. */
const LAPSE_JITTER = 0.1

export function createElector(options: ElectorOptions): Elector {
  const { client, namespace, name, identity, clock, random = Math.random, onLeading, onChange, onProblem } = options
  const { leaseMs = 15_000, renewMs = 10_000, retryMs = 2_000, metrics } = options
  if (!(leaseMs > renewMs && renewMs > retryMs * JITTER))
    throw new RangeError(`lease ${name}: leaseMs > renewMs > ${JITTER} * retryMs must hold, or two could lead at once`)
  // A request that hangs leaves time for another before the deadline.
  const requestMs = renewMs / 2
  const lock = createLeaseLock({ client, name: { namespace, name }, identity, clock, leaseMs, requestMs })
  const stopping = new AbortController()
  let held: Held | undefined
  let isTold = false
  let running: Promise<void> | undefined

  metrics?.leading(false)

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      held = await take()
      if (held === undefined) {
        await clock.sleep(untilNextTryMs(), stopping.signal)
        continue
      }
      if (!stopping.signal.aborted) await lead()
      if (held !== undefined) await giveBack(held)
      await clock.sleep(retryWithJitterMs(), stopping.signal)
    }
  }

  async function take(): Promise<Held | undefined> {
    try {
      return await lock.take(stopping.signal)
    } catch (error) {
      if (!stopping.signal.aborted) report('could not be taken', error)
      return undefined
    }
  }

  /** Returns when the work has ended; `held` is then undefined if the lease was lost. */
  async function lead(): Promise<void> {
    const working = new AbortController()
    const ended = new AbortController()
    const over = new AbortController()
    const stopWork = () => working.abort(new Error(`${namespace}/${name}: the elector was stopped`))
    stopping.signal.addEventListener('abort', stopWork, { once: true })

    const lose = (why: string) => {
      if (over.signal.aborted) return
      over.abort()
      const untilLapse = sinceRenewal(leaseMs)
      held = undefined
      tell(false)
      working.abort(new Error(`the lease ${namespace}/${name} was lost: ${why}`))
      report(`was lost: ${why}`)
      void reportOverrun(untilLapse, ended.signal)
    }

    tell(true)
    void watchTrust(over.signal, lose)
    const renewing = keepRenewing(over.signal, lose)
    await perform(working.signal)
    ended.abort()
    over.abort()
    await renewing
    stopping.signal.removeEventListener('abort', stopWork)
  }

  async function perform(signal: AbortSignal): Promise<void> {
    try {
      await onLeading(signal)
    } catch (error) {
      report('is held for work that failed', error)
    }
  }

  /** Apart from the renewals, since those may hang. */
  async function watchTrust(over: AbortSignal, lose: (why: string) => void): Promise<void> {
    while (!over.aborted) {
      const leftMs = sinceRenewal(renewMs)
      if (leftMs <= 0) return lose(`not renewed within ${renewMs} ms`)
      await clock.sleep(leftMs, over)
    }
  }

  async function keepRenewing(over: AbortSignal, lose: (why: string) => void): Promise<void> {
    while (!over.aborted && held !== undefined) {
      await clock.sleep(retryMs, over)
      if (over.aborted) return
      try {
        const renewed = await lock.renew(held, over)
        if (renewed === undefined) lose(describeTaker(lock.holder()))
        else if (held !== undefined) held = renewed
      } catch (error) {
        if (!over.aborted) report('could not be renewed', error)
      }
    }
  }

  /** Somebody else may lead from then on, and what we do is not guarded any more. */
  async function reportOverrun(untilLapseMs: number, ended: AbortSignal): Promise<void> {
    await clock.sleep(Math.max(0, untilLapseMs), ended)
    if (!ended.aborted) report('has lapsed while the work of its former holder goes on: another may lead already')
  }

  async function giveBack(lease: Held): Promise<void> {
    try {
      await lock.release(lease)
    } catch (error) {
      report('could not be given back, and others must wait for its lapse', error)
    }
    held = undefined
    tell(false)
  }

  /** Milliseconds left of `ms` since the last renewal. */
  function sinceRenewal(ms: number): number {
    return held === undefined ? 0 : held.since + ms - clock.now()
  }

  function untilNextTryMs(): number {
    const retryInMs = retryWithJitterMs()
    // To sleep past its lapse would leave everybody without a leader for so much longer.
    const lapseMs = lock.untilLapseMs() ?? 0
    return lapseMs > 0 && lapseMs < retryInMs ? lapseMs + retryMs * LAPSE_JITTER * random() : retryInMs
  }

  function retryWithJitterMs(): number {
    return retryMs * (1 + JITTER * random())
  }

  function tell(isLeader: boolean): void {
    if (isLeader === isTold) return
    isTold = isLeader
    metrics?.leading(isLeader)
    try {
      onChange?.(isLeader)
    } catch (error) {
      report(isLeader ? 'is ours, and telling so failed' : 'is not ours any more, and telling so failed', error)
    }
  }

  function report(problem: string, error?: unknown): void {
    const reason = error === undefined ? '' : `: ${error instanceof Error ? error.message : String(error)}`
    try {
      onProblem(new Error(`lease ${namespace}/${name} ${problem}${reason}`, { cause: error }))
    } catch {
      // The election must outlive its reporter, and there is nobody else to tell.
    }
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      await running
    },
    isLeader: () => held !== undefined && sinceRenewal(renewMs) > 0,
    leader: lock.holder,
  }
}

function describeTaker(holder: string | null): string {
  return holder === null ? 'it has no holder any more' : `${holder} holds it`
}
