/**
 * Finds which checks change, for those who look at them: one connection and one look a second for the process, whatever
 * their number. All but pings without a flip arrive as notices of their transactions; a look each second finds the
 * pings of the checks that are watched on their own. Where notices may have been lost, each watcher reads everything
 * again.
 */

import type { Instant } from '../domain/check.ts'
import type { Clock } from '../runtime/clock.ts'
import { yieldTurn } from '../runtime/clock.ts'
import { createLoop } from '../runtime/loop.ts'
import { listenForNotices } from '../store/checks/change-notices.ts'
import { findStamps } from '../store/checks/watched-checks.ts'
import type { Context } from '../store/context.ts'

/** The ids of checks that changed. Null: any may have changed. */
export type Changed = readonly string[] | null

export interface Watcher {
  readonly organizationId: string
  /** The only check of interest: then its pings count as changes too. Null: all checks of the organization. */
  readonly checkId: string | null
  /** When the watcher read what it shows, by the database's clock: older changes are not of interest. */
  readonly since: Instant
  /** Watchers of all checks of an organization get the same array. Must not throw. */
  readonly onChange: (changed: Changed) => void
}

export type ChangeHub = ReturnType<typeof createChangeHub>

export interface ChangeHubOptions {
  readonly context: Context
  readonly databaseUrl: string
  /** This process's clock. */
  readonly clock: Clock
  /** For the log; the hub goes on. */
  readonly onProblem: (error: unknown) => void
  readonly checkEveryMs?: number
}

const LOOK_MS = 1_000
/** How long changes are gathered: a job that fails on many hosts at once is one message. */
const GATHER_MS = 100
/** More changed checks than this are `null`. */
const MOST_IDS = 100
/** Watchers that are called in one tick of the event loop. */
const WATCHERS_PER_TICK = 25
/** A page may have read the database so long before its time says, and clocks of replicas differ. */
const MARGIN_MS = 1_000

export function createChangeHub(options: ChangeHubOptions) {
  const { context, databaseUrl, clock, onProblem, checkEveryMs } = options
  const { database } = context
  const { now } = context.clock
  const watchers = new Map<string, Set<Watcher>>()
  const pending = new Map<string, Set<string> | null>()
  /** Checks with new entries in their history, and their organizations: for those who watch them alone. */
  const pendingStamps = new Map<string, string>()
  /** By organization: for watchers that come a moment after a change. */
  const lastChangeAt = new Map<string, Instant>()
  let connectedAt = Number.POSITIVE_INFINITY
  const stopping = new AbortController()
  let isStarted = false
  let isGathering = false
  /** What the last look found. */
  let stamps = new Map<string, Instant>()

  const listener = listenForNotices({
    url: databaseUrl,
    name: 'changes',
    clock,
    onNotice: ({ organizationId, checkId }) => add(organizationId, checkId),
    onConnected() {
      connectedAt = now()
      for (const organizationId of watchers.keys()) add(organizationId, null)
    },
    onProblem,
    ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
  })
  const loop = createLoop({
    everyMs: LOOK_MS,
    clock,
    async run() {
      await lookAtStamps()
      return 'done'
    },
    onError: onProblem,
  })

  /** `checkId` null: any may have changed. */
  function add(organizationId: string, checkId: string | null): void {
    lastChangeAt.set(organizationId, now())
    if (!watchers.has(organizationId)) return
    const ids = pending.get(organizationId)
    if (checkId === null || (ids?.size ?? 0) >= MOST_IDS) pending.set(organizationId, null)
    else if (ids === undefined) pending.set(organizationId, new Set([checkId]))
    else ids?.add(checkId)
    void passOn()
  }

  async function passOn(): Promise<void> {
    if (isGathering) return
    isGathering = true
    await clock.sleep(GATHER_MS, stopping.signal)
    isGathering = false
    const changes = new Map([...pending].map(([id, ids]) => [id, ids === null ? null : [...ids]]))
    const stamped = new Map(pendingStamps)
    pending.clear()
    pendingStamps.clear()
    let called = 0
    for (const watcher of [...watchers.values()].flatMap((set) => [...set])) {
      if (stopping.signal.aborted) return
      const { organizationId } = watcher
      const changed = changedFor(watcher, changes.get(organizationId), stamped)
      // It may have left while others were called.
      if (changed === undefined || !watchers.get(organizationId)?.has(watcher)) continue
      watcher.onChange(changed)
      called += 1
      if (called % WATCHERS_PER_TICK === 0) await yieldTurn()
    }
  }

  async function lookAtStamps(): Promise<void> {
    const since = new Map<string, Instant>()
    for (const set of watchers.values())
      for (const watcher of set)
        if (watcher.checkId !== null)
          since.set(watcher.checkId, Math.min(watcher.since, since.get(watcher.checkId) ?? watcher.since))
    const found = since.size === 0 ? [] : await findStamps(database, [...since.keys()])
    const stampsNow = new Map<string, Instant>()
    for (const { id, organizationId, stampedAt } of found) {
      stampsNow.set(id, stampedAt)
      if (stampedAt > (stamps.get(id) ?? since.get(id)! - MARGIN_MS)) pendingStamps.set(id, organizationId)
    }
    stamps = stampsNow
    if (pendingStamps.size > 0) void passOn()
  }

  return {
    /** Returns the end of the watch. The connection is opened for the first watcher, and kept. */
    watch(watcher: Watcher): () => void {
      const { organizationId, since } = watcher
      const set = watchers.get(organizationId) ?? new Set()
      watchers.set(organizationId, set.add(watcher))
      // What changed between its reading and now; where the notices of that time are not known, onConnected calls it later.
      const knownFrom = Math.max(connectedAt, lastChangeAt.get(organizationId) ?? 0)
      if (knownFrom < Number.POSITIVE_INFINITY && knownFrom >= since - MARGIN_MS) watcher.onChange(null)
      if (!isStarted && !stopping.signal.aborted) {
        isStarted = true
        listener.start()
        loop.start()
      }
      return () => {
        set.delete(watcher)
        if (set.size === 0 && watchers.get(organizationId) === set) watchers.delete(organizationId)
      }
    },
    /** One look, now. Tests call it instead of waiting. */
    look: lookAtStamps,
    /** No watcher is called after that. */
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.all([listener.stop(), loop.stop()])
      watchers.clear()
    },
  }
}

/** Undefined: nothing that it watches. */
function changedFor(
  { checkId, organizationId }: Watcher,
  changed: Changed | undefined,
  stamped: ReadonlyMap<string, string>,
): Changed | undefined {
  if (checkId === null || changed === null) return changed
  return changed?.includes(checkId) || stamped.get(checkId) === organizationId ? [checkId] : undefined
}
