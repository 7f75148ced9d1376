/** The limits of what the interface takes (design, sections 3.1 and 8). A file of its own, as cron.ts and check.ts both need it. */
export const LIMITS = {
  nameLength: 100,
  slugLength: 100,
  descriptionLength: 4_096,
  scheduleLength: 200,
  periodSeconds: { min: 10, max: 31_536_000, default: 86_400 },
  graceSeconds: { min: 0, max: 31_536_000, default: 3_600 },
  maxRuntimeSeconds: { min: 1, max: 31_536_000 },
  durationMs: 604_800_000,
  exitCode: 255,
  warnExitCodes: 20,
  threshold: { min: 1, max: 100 },
  remindEverySeconds: { min: 300, max: 2_592_000 },
  /** Of a pause by `for_seconds`. */
  pauseSeconds: { min: 10, max: 31_536_000 },
  /** Of an acknowledgement by `for_seconds`. */
  acknowledgeSeconds: { min: 300, max: 604_800 },
  commentLength: 200,
  /** Of a silence with a schedule. */
  silenceSeconds: { min: 10, max: 2_592_000 },
  /** Of a longer body the last bytes are stored. */
  pingBodyBytes: 10_240,
  /** A body above it is not read: its ping is stored without text. */
  pingBodyReadBytes: 1_048_576,
  apiBodyBytes: 65_536,
  /** Open runs of one check. A start above it is stored and opens no run, so that a job that never completes does not grow its row. */
  openRuns: 100,
  /** That a check can choose. */
  chosenChannels: 100,
  /** Checks that one depends on. */
  dependencies: 20,
  /** Checks that one depends on in all, over others: the search for a ring reads so many. */
  reachedDependencies: 1_000,
} as const

/** The length of SECRET_KEY and of each of PREVIOUS_SECRET_KEYS. */
export const SECRET_KEY_BYTES = 32

/** More changes than `changes` within `windowMs` make a check flap, until `windowMs` have passed without one (design, section 4, "Flapping"). */
export const FLAPPING = { changes: 10, windowMs: 600_000 } as const

/** While warnings of a check continue, one in this time is notified. */
export const WARN_AGAIN_MS = 86_400_000

/** A recovery says how many runs were missed, up to this number. */
export const MOST_MISSED = 100

/** A shorter gap hides no completion: clients retry until it is over. */
export const HIDING_GAP_MS = 60_000

/** Runs without a later deadline are dropped after this time, which is also the longest duration of the interface. */
export const RUN_MEMORY_MS = LIMITS.durationMs
