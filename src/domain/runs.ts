/**
 * The runs of a job, from the pings of its history. A start and a completion belong together as in the state machine
 * (design, section 4).
 */

import { type Instant, isCompletion, isOpen, type PingType, type Run } from './check.ts'

/** What is read of a ping. */
export interface RunPing {
  readonly id: string
  readonly type: PingType
  readonly runId: string | null
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly createdAt: Instant
}

/** `unfinished`: it was started and never completed, or too late to be known. */
export const RUN_OUTCOMES = ['success', 'warn', 'fail', 'running', 'unfinished'] as const
export type RunOutcome = (typeof RUN_OUTCOMES)[number]

export interface PastRun {
  readonly outcome: RunOutcome
  /** Its start ping; without one, what its duration says; null: not known. */
  readonly startedAt: Instant | null
  readonly endedAt: Instant | null
  /** The job's own measurement, else completion minus start. Null: not known. */
  readonly durationMs: number | null
  readonly exitCode: number | null
  /** The ping that completed it, else the one that started it. */
  readonly pingId: string
}

export interface RunFacts {
  /** Newest first. */
  readonly pings: readonly RunPing[]
  /** The runs of the state as it was at `asOf` or later. */
  readonly runs: readonly Run[]
  readonly asOf: Instant
  /** When the check was paused: a pause drops open runs. */
  readonly pausedAt: readonly Instant[]
  readonly now: Instant
}

/** Newest first, by their last ping. */
export function findRuns({ pings, runs, asOf, pausedAt, now }: RunFacts): PastRun[] {
  const found: PastRun[] = []
  const open = new Map<string | null, RunPing>()
  const pauses = [...pausedAt].sort((a, b) => a - b)
  const leave = (start: RunPing, mayRun: boolean) => {
    const isRunning =
      mayRun && (start.createdAt > asOf || runs.some((run) => isStartOf(start, run) && isOpen(run, now)))
    const outcome = isRunning ? 'running' : 'unfinished'
    const { id: pingId, createdAt: startedAt } = start
    found.push({ outcome, startedAt, endedAt: null, durationMs: null, exitCode: null, pingId })
  }
  let paused = 0
  const dropAtPauses = (until: Instant) => {
    for (; paused < pauses.length && pauses[paused]! <= until; paused += 1) {
      for (const start of open.values()) leave(start, false)
      open.clear()
    }
  }

  for (const ping of [...pings].reverse()) {
    dropAtPauses(ping.createdAt)
    const start = open.get(ping.runId)
    if (ping.type === 'start') {
      if (start !== undefined) leave(start, false)
      open.set(ping.runId, ping)
    } else if (ping.type !== 'log') {
      open.delete(ping.runId)
      found.push(complete(ping, start))
    }
  }
  dropAtPauses(now)
  for (const start of open.values()) leave(start, true)
  const lastAt = ({ endedAt, startedAt }: PastRun) => endedAt ?? startedAt ?? 0
  return found.sort((a, b) => lastAt(b) - lastAt(a))
}

function complete(ping: RunPing, start: RunPing | undefined): PastRun {
  const { id: pingId, createdAt: endedAt, durationMs, exitCode } = ping
  const startedAt = start?.createdAt ?? (durationMs === null ? null : endedAt - durationMs)
  const outcome = isCompletion(ping.type) ? ping.type : 'success'
  return { outcome, startedAt, endedAt, durationMs, exitCode, pingId }
}

/** The state has times in whole milliseconds. */
function isStartOf(ping: RunPing, run: Run): boolean {
  return ping.runId === run.id && Math.floor(ping.createdAt) === Math.floor(run.startedAt)
}

export interface DurationSummary {
  readonly count: number
  readonly medianMs: number
  /** The smallest duration that at least 95 % of the runs do not exceed. */
  readonly p95Ms: number
  readonly longestMs: number
}

/** Of durations in any order; null without one. */
export function summarizeDurations(durations: readonly number[]): DurationSummary | null {
  const sorted = [...durations].sort((a, b) => a - b)
  const count = sorted.length
  if (count === 0) return null
  const medianMs = (sorted[(count - 1) >> 1]! + sorted[count >> 1]!) / 2
  return { count, medianMs, p95Ms: sorted[Math.ceil(count * 0.95) - 1]!, longestMs: sorted[count - 1]! }
}
