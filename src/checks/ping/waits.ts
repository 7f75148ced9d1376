/**
 * How long pings wait for their results, measured all the time: those that waited beside a batch of deadlines, and what is usual otherwise. The sizes of
 * batches follow from both (../deadlines/batch-size.ts).
 */

/** What pings waited, in milliseconds. */
export interface Waits {
  /** Of each ping that waited beside the batch. */
  readonly besideMs: readonly number[]
  /** The 99th percentile of the newest pings that waited beside none, while what is usual was measured. Null: not known yet. */
  readonly usualMs: number | null
  /** Whether there was a ping lately. */
  readonly arePings: boolean
}

export interface PingWaits {
  /** A ping that began to wait at `since` has its result. */
  onSettled(since: number): void
  /** A batch begins. */
  begin(): void
  /** It has ended. The waits of the pings that waited beside it, and have their results. */
  end(): Waits
  /**
   * Whether pings without a batch beside them show from now on what is usual. They do not while batches follow each other closely: those that wait
   * long are beside the next batch then, and only short waits would be left.
   */
  measureUsual(isMeasured: boolean): void
}

/** The newest pings without a batch beside them that are kept to compare with. */
const KEPT = 2_048
const P99 = 0.99
/** So long without a ping: the next one is not to be expected soon. */
const PAUSE_MS = 1_000

/** `now`: the clock of the recorder. */
export function createPingWaits(now: () => number): PingWaits {
  const alone = new Float64Array(KEPT)
  let count = 0
  let beside: number[] = []
  let isRunning = false
  let isMeasured = true
  let endedAt = Number.NEGATIVE_INFINITY
  let lastAt = Number.NEGATIVE_INFINITY

  /** Null before the first ping. */
  function usual(): number | null {
    const kept = alone.slice(0, Math.min(count, KEPT)).sort()
    return kept.at(Math.min(kept.length - 1, Math.floor(kept.length * P99))) ?? null
  }

  return {
    onSettled(since) {
      lastAt = now()
      const waitedMs = lastAt - since
      if (isRunning || since < endedAt) beside.push(waitedMs)
      else if (isMeasured) {
        alone[count % KEPT] = waitedMs
        count += 1
      }
    },
    begin() {
      isRunning = true
    },
    end() {
      isRunning = false
      endedAt = now()
      const besideMs = beside
      beside = []
      return { besideMs, usualMs: usual(), arePings: endedAt - lastAt < PAUSE_MS }
    },
    measureUsual(isNow) {
      isMeasured = isNow
    },
  }
}
