import { randomUUID } from 'node:crypto'
import type { Agent } from 'node:http'
import type { Random } from '../support/random.ts'
import { aPing, createAgent, type Outcome, type SentPing, sendPing } from '../support/sent-pings.ts'

/**
 * One job and its clients: every kind of ping in every form, one after the other, so that their order is known. A ping
 * without a 200 is sent again when it carries a run id, as careful clients do; it is then stored once.
 */
export interface Job {
  readonly outcomes: readonly Outcome[]
  /** Resolves when the ping in progress has been answered. */
  stop(): Promise<void>
}

export interface JobOptions {
  readonly publicId: string
  readonly random: Random
  /** Where to send the next ping; null while no replica serves. */
  readonly pickReplica: () => string | null
  /** How long it is silent after each burst of a few seconds. */
  readonly silenceMs: number
}

/** No real run takes that long: a duration from here on is one that the job gave. */
export const GIVEN_DURATION_MS = 500_000_000
const BURST_MS = 3_000
const TRIES = 4

export function startJob({ publicId, random, pickReplica, silenceMs }: JobOptions): Job {
  const outcomes: Outcome[] = []
  const agent: Agent = createAgent(1)
  const stopping = new AbortController()
  let openRuns: string[] = []
  let count = 0

  async function work(): Promise<void> {
    let silentAt = performance.now() + BURST_MS
    while (!stopping.signal.aborted) {
      await send(nextPing())
      const isSilent = silenceMs > 0 && performance.now() > silentAt
      await wait(isSilent ? silenceMs : random.int(0, 20), stopping.signal)
      if (isSilent) silentAt = performance.now() + BURST_MS
    }
  }

  async function send(ping: SentPing): Promise<void> {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const replica = pickReplica()
      if (replica !== null) {
        const outcome = await sendPing(replica, ping, agent)
        outcomes.push(outcome)
        if (outcome.status === 200 || ping.runId === null) return
      }
      if (stopping.signal.aborted) return
      await wait(30, stopping.signal)
    }
  }

  function nextPing(): SentPing {
    count += 1
    const type = random.pick([
      'success',
      'success',
      'success',
      'success',
      'start',
      'start',
      'start',
      'fail',
      'log',
      'log',
    ] as const)
    const exitCode = type === 'success' ? 0 : type === 'fail' && random.chance(0.5) ? random.int(1, 255) : null
    const isCompletion = type === 'success' || type === 'fail'
    const runId = random.chance(0.5) ? pickRun(type === 'start', isCompletion) : null
    const durationMs = isCompletion && random.chance(0.3) ? GIVEN_DURATION_MS + count : null
    const body = runId === null || random.chance(0.5) ? `${publicId} ${count}` : null
    return aPing(publicId, { type, exitCode, runId, durationMs, body })
  }

  function pickRun(isStart: boolean, isCompletion: boolean): string {
    if (isCompletion && openRuns.length > 0 && random.chance(0.8)) {
      const run = random.pick(openRuns)
      openRuns = openRuns.filter((other) => other !== run)
      return run
    }
    const run = randomUUID()
    if (isStart) openRuns.push(run)
    return run
  }

  const working = work()
  return {
    outcomes,
    async stop() {
      stopping.abort()
      await working
      agent.destroy()
    },
  }
}

export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
    if (signal?.aborted) done()
  })
}
