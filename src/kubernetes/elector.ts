/**
 * Leader election on a Lease, by client-go's rules and times.
 *
 * A leader trusts its lease for `RENEW_MS` after it sent the last renewal that was accepted; no other candidate can
 * acquire it before `LEASE_MS` after that. The difference is the time in which the leader's work must end.
 *
 * Loss: the signal of `onLeading` aborts, renewals stop (work that never ends must not block a new leader for ever),
 * and the election starts again when `onLeading` has resolved. Clean stop: the signal aborts, the lease is renewed
 * until `onLeading` has resolved, and then released.
 */

import { callSafely } from '../runtime/call-safely.ts'
import { after, type Clock } from '../runtime/clock.ts'
import { createLeaseLock, type Held, type LeaseLockOptions } from './lease.ts'

export interface Elector {
  start(): void
  /** Resolves when `onLeading` has ended and the lease, if held, is released. */
  stop(): Promise<void>
  /** Whether this process holds a lease that it may still trust; exact even after the event loop was blocked. */
  isLeader(): boolean
}

export interface ElectorOptions {
  readonly client: LeaseLockOptions['client']
  readonly namespace: string
  readonly name: string
  readonly fieldManager?: LeaseLockOptions['fieldManager']
  /** Unique for each start of each process. */
  readonly identity: string
  readonly clock: Clock
  /** From 0 to below 1. */
  readonly random?: () => number
  /** Runs while leading. When it ends by itself, the lease is released and the election starts again. */
  onLeading(signal: AbortSignal): Promise<void>
  /** Called with true when the lease is acquired, with false when it is lost or released. */
  onChange?(isLeader: boolean): void
  onProblem(error: Error): void
  /** On the Lease, from the first term on. */
  readonly annotations?: LeaseLockOptions['annotations']
  /** Called with each Lease that another process holds, while this one waits for it. */
  readonly onHeld?: LeaseLockOptions['onHeld']
}

const LEASE_MS = 15_000
/**
 * A leader without a successful renewal for so long stops. It must be less than the lease, or two could lead at once.
 */
const RENEW_MS = 10_000
const RETRY_MS = 2_000
/** After a request that hangs there is time for another before the deadline. */
const REQUEST_MS = RENEW_MS / 2
/**
 * client-go's: each wait of a candidate is up to 1.2 times longer, at random, so that candidates do not retry together.
 */
const JITTER = 1.2
/** Candidates that wait for the same expiry are spread over this part of a retry. */
const EXPIRY_JITTER = 0.1
/** The longest wait after a try that failed, in retries: the API server may be back, and work waits for a leader. */
const MAX_FAILED_RETRIES = 2

export function createElector(options: ElectorOptions): Elector {
  const { namespace, name, clock, random = Math.random, onLeading, onChange, onProblem } = options
  const lock = createLeaseLock({ ...options, name: { namespace, name }, leaseMs: LEASE_MS, requestMs: REQUEST_MS })
  const stopping = new AbortController()
  let held: Held | undefined
  let wasLeader = false
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const acquired = await acquire()
      if (acquired === 'not held' || acquired === 'failed') {
        const longestMs = acquired === 'failed' ? RETRY_MS * MAX_FAILED_RETRIES : Number.POSITIVE_INFINITY
        await clock.sleep(Math.min(untilNextTryMs(), longestMs), stopping.signal)
        continue
      }
      held = acquired
      if (!stopping.signal.aborted) await lead()
      if (held !== undefined) await release(held)
      await clock.sleep(retryWithJitterMs(), stopping.signal)
    }
  }

  async function acquire(): Promise<Held | 'not held' | 'failed'> {
    try {
      return (await lock.acquire(stopping.signal)) ?? 'not held'
    } catch (error) {
      if (!stopping.signal.aborted) report('could not be acquired', error)
      return 'failed'
    }
  }

  /** Resolves when the work has ended; `held` is then undefined if the lease was lost. */
  async function lead(): Promise<void> {
    const working = new AbortController()
    const over = new AbortController()
    let stopTimer = () => {}
    const stopWork = () => working.abort(new Error(`${namespace}/${name}: the elector was stopped`))
    stopping.signal.addEventListener('abort', stopWork, { once: true })

    const lose = (why: string) => {
      if (over.signal.aborted) return
      over.abort()
      const untilExpiryMs = Math.max(0, sinceRenewal(LEASE_MS))
      held = undefined
      notify(false)
      working.abort(new Error(`the lease ${namespace}/${name} was lost: ${why}`))
      report(`was lost: ${why}`)
      // Another leader may be working too.
      const overrun = 'has expired while the work of its former holder goes on: another may lead already'
      stopTimer = after(clock, untilExpiryMs, () => report(overrun))
    }

    notify(true)
    void watchTrust(over.signal, lose)
    const renewing = keepRenewing(over.signal, lose)
    await perform(working.signal)
    stopTimer()
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

  /** Separate from the renewals, because those may hang. */
  async function watchTrust(over: AbortSignal, lose: (why: string) => void): Promise<void> {
    while (!over.aborted) {
      const leftMs = sinceRenewal(RENEW_MS)
      if (leftMs <= 0) return lose(`not renewed within ${RENEW_MS} ms`)
      await clock.sleep(leftMs, over)
    }
  }

  async function keepRenewing(over: AbortSignal, lose: (why: string) => void): Promise<void> {
    while (!over.aborted && held !== undefined) {
      await clock.sleep(RETRY_MS, over)
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

  async function release(lease: Held): Promise<void> {
    try {
      await lock.release(lease)
    } catch (error) {
      report('could not be released: other candidates must wait until it expires', error)
    }
    held = undefined
    notify(false)
  }

  /** Milliseconds left of `ms` since the last renewal. */
  function sinceRenewal(ms: number): number {
    return held === undefined ? 0 : held.since + ms - clock.now()
  }

  function untilNextTryMs(): number {
    const retryInMs = retryWithJitterMs()
    // A longer sleep would extend the time without a leader.
    const expiryMs = lock.untilExpiryMs() ?? 0
    return expiryMs > 0 && expiryMs < retryInMs ? expiryMs + RETRY_MS * EXPIRY_JITTER * random() : retryInMs
  }

  function retryWithJitterMs(): number {
    return RETRY_MS * (1 + JITTER * random())
  }

  function notify(isLeader: boolean): void {
    if (isLeader === wasLeader) return
    wasLeader = isLeader
    try {
      onChange?.(isLeader)
    } catch (error) {
      report(isLeader ? 'was acquired, and onChange failed' : 'is not ours any more, and onChange failed', error)
    }
  }

  function report(problem: string, error?: unknown): void {
    const reason = error === undefined ? '' : `: ${error instanceof Error ? error.message : String(error)}`
    callSafely(() => onProblem(new Error(`lease ${namespace}/${name} ${problem}${reason}`, { cause: error })))
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      await running
    },
    isLeader: () => held !== undefined && sinceRenewal(RENEW_MS) > 0,
  }
}

function describeTaker(holder: string | null): string {
  return holder === null ? 'it has no holder any more' : `${holder} holds it`
}
