/**
 * Keeps "all Jobs of this area that changed before t are recorded" in the database: deadlines of checks that follow a
 * CronJob wait until it has passed them (checks/deadlines). So nothing is missed in silence, and nothing goes down,
 * while the API server or the controller is away. An area is the cluster or, with a watch for each namespace, one of
 * them: one that may not be read, or whose watch is stalled, keeps no other waiting. A round costs requests to the API
 * server: it comes when a deadline waits for it, and at rest so often that the time stays young enough for the alert.
 *
 * The order of a round matters: first the time, then the proof that the caches hold all until now, then the proof that
 * all of it is recorded, then the write. A process that has lost the lease meanwhile may still write: its proof is true
 * whichever process leads.
 */

import type { DeadlineDetail } from '../../checks/find-checks.ts'
import type { Instant } from '../../domain/check.ts'
import { startLimit } from '../../kubernetes/call-limit.ts'
import { unlessAborted } from '../../runtime/abort.ts'
import { createLoop } from '../../runtime/loop.ts'
import type { Controller, Term } from '../term.ts'

export interface SeenOptions {
  /** All that are watched. */
  readonly areas: readonly string[]
  /** Those with a deadline at or before `until`, or with one so soon that its reason is looked for. */
  readonly due: (until: Instant) => Promise<readonly string[]>
  /** Those with a run in progress, whose end a silent watch would hide. */
  readonly busy: () => ReadonlySet<string>
  /** Those of `asked` of which all that changed before the call is in the caches of CronJobs and Jobs. */
  readonly confirm: (asked: readonly string[], signal: AbortSignal) => Promise<readonly string[]>
  /**
   * Resolves when all that was in the caches at the call is recorded, but for the HeartbeatChecks whose keys it
   * returns.
   */
  readonly whenRecorded: () => Promise<readonly string[]>
  /** Why runs of these areas have not started or ended that are due before this time. */
  readonly explain: (
    areas: readonly string[],
    until: Instant,
    signal: AbortSignal,
  ) => Promise<readonly DeadlineDetail[]>
  /**
   * Saves all of it in one transaction (checks/jobs/mark-seen). `held`: keys of HeartbeatChecks of which something is
   * not recorded; their deadlines wait on.
   */
  readonly save: (seen: Confirmed, details: readonly DeadlineDetail[]) => Promise<void>
  /** Saves which areas were not seen, of those that are needed (checks/jobs/mark-seen). */
  readonly saveUnseen: (areas: readonly string[]) => Promise<void>
  /** The areas with HeartbeatChecks that wait for this. */
  readonly needed: () => readonly string[]
  readonly everyMs?: number | undefined
}

export interface Confirmed {
  readonly areas: readonly string[]
  readonly until: Instant
  readonly held: readonly string[]
}

export interface SeenKeeper extends Controller {
  /** One round of these areas, now. Default: of all. Returns the time that was saved; null: of no area. */
  runOnce(asked?: readonly string[]): Promise<Instant | null>
}

/** From a look for deadlines to the next one. */
const EVERY_MS = 2_000
/** Where no deadline waits, and no run is in progress, one round comes with so many looks. */
const LOOKS_OF_REST = 15
const EXPLAIN_MS = 5_000
/** After a long round, as of many namespaces. */
const PAUSE_MS = 200
/** So long without success is worth a line in the log; an API server that restarts is not. */
const BLIND_MS = 60_000
/** In a line of the log. */
const NAMED_AREAS = 10

export function createSeenKeeper(term: Pick<Term, 'service' | 'clock' | 'log'>, options: SeenOptions): SeenKeeper {
  const { service, clock, log } = term
  const { areas, due, busy, confirm, whenRecorded, explain, save, saveUnseen, needed, everyMs = EVERY_MS } = options
  const restMs = everyMs * LOOKS_OF_REST
  const stopping = new AbortController()
  const { signal } = stopping
  const startedAt = clock.now()
  /** By area, when the last round began, and the last one that succeeded. */
  const askedAt = new Map<string, number>()
  const lastAt = new Map<string, number>()
  let blind: readonly string[] = []

  const ageOf = (area: string) => clock.now() - (lastAt.get(area) ?? startedAt)

  async function runOnce(asked = areas): Promise<Instant | null> {
    const from = clock.now()
    const until = service.now()
    for (const area of asked) askedAt.set(area, from)
    const confirmed = await confirm(asked, signal)
    if (signal.aborted) return null
    // Also one that was seen before: a database that was restored may not have it.
    const isSeen = (area: string) => confirmed.includes(area) || (lastAt.has(area) && !asked.includes(area))
    if (confirmed.length < asked.length) await saveUnseen(needed().filter((area) => !isSeen(area)))
    if (confirmed.length === 0 || signal.aborted) return null
    const held = await unlessAborted(whenRecorded(), signal)
    const details = await explainAll(confirmed, until)
    if (signal.aborted) return null
    await save({ areas: confirmed, until, held }, details)
    for (const area of confirmed) lastAt.set(area, from)
    return until
  }

  /** A deadline does not wait long for its explanation. */
  async function explainAll(confirmed: readonly string[], until: Instant): Promise<readonly DeadlineDetail[]> {
    const limit = startLimit(clock, EXPLAIN_MS, signal)
    try {
      return await unlessAborted(explain(confirmed, until, limit.signal), limit.signal)
    } catch (error) {
      if (!signal.aborted) log.warn({ error }, 'why runs have not started or ended could not be found out')
      return []
    } finally {
      limit.end()
    }
  }

  /** One that was not confirmed is asked again at each look, until that is worth a line in the log. */
  function isRoundDue(area: string): boolean {
    const isLate = ageOf(area) >= restMs && !blind.includes(area)
    return isLate || clock.now() - (askedAt.get(area) ?? Number.NEGATIVE_INFINITY) >= restMs
  }

  async function run(): Promise<'done'> {
    const from = clock.now()
    try {
      // A silent watch hides the end of a run.
      const waiting = new Set([...(await due(service.now())), ...busy()])
      const asked = areas.filter((area) => waiting.has(area) || isRoundDue(area))
      if (asked.length > 0 && !signal.aborted) await runOnce(asked)
    } finally {
      if (!signal.aborted) report()
    }
    await clock.sleep(Math.max(from + everyMs - clock.now(), PAUSE_MS), signal)
    return 'done'
  }

  function report(): void {
    const before = blind
    blind = areas.filter((area) => ageOf(area) > BLIND_MS)
    const lost = blind.filter((area) => !before.includes(area))
    const found = before.filter((area) => !blind.includes(area))
    if (lost.length > 0)
      log.warn(
        { areas: lost.slice(0, NAMED_AREAS), count: lost.length },
        'the Jobs of a cluster or namespace are not known up to now: deadlines of checks that follow a CronJob in it wait',
      )
    if (found.length > 0)
      log.info(
        { areas: found.slice(0, NAMED_AREAS), count: found.length },
        'the Jobs of a cluster or namespace are known up to now again: deadlines wait no longer',
      )
  }

  const loop = createLoop({
    everyMs: 0,
    clock,
    run,
    onError(error) {
      if (!signal.aborted) log.warn({ error, loop: 'seen' }, 'background work failed; it is tried again')
    },
  })

  return {
    name: 'seen',
    runOnce,
    start: loop.start,
    async stop() {
      stopping.abort()
      await loop.stop()
    },
  }
}
