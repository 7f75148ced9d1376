/**
 * Why runs are missed, in time for the alert: what is saved together with "all Jobs seen until t" (keep-seen.ts). The
 * caches mostly know. Where only Events do, those of one object are listed once per check and slot, before its
 * deadline: at most five lists a second for the cluster, spread over the second half of the grace time, 60 seconds
 * before the deadline at most.
 */

import type { DeadlineDetail, FollowedCheck } from '../../checks/find-checks.ts'
import type { Instant } from '../../domain/check.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { CoreEvent, ResourceType } from '../../kubernetes/objects.ts'
import { type Clock, waitForEvent } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import { createRate } from '../../runtime/rate.ts'
import {
  explainWait,
  findBlockingJob,
  findSubject,
  findWaitingRun,
  newestWarning,
  type Subject,
  type WaitingSlot,
  type Warning,
} from '../reasons/explain-wait.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'

export interface MissedExplainer {
  /**
   * Resolves with why the runs of these areas have not started that are due at or before `until`, and lists Events for
   * those that are due soon. Takes a second at most; throws only what the database throws.
   */
  explain(areas: readonly string[], until: Instant, signal: AbortSignal): Promise<DeadlineDetail[]>
}

export interface MissedExplainerOptions {
  /**
   * Up to `limit` checks of these areas that are due until then, the most urgent first (store/jobs/followed-checks.ts).
   */
  readonly listDue: (areas: readonly string[], until: Instant, limit: number) => Promise<readonly FollowedCheck[]>
  readonly client: Pick<KubernetesClient, 'list'>
  readonly sources: Pick<SourceWatch, 'getSource' | 'runsOf' | 'podsOf'>
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}

const EVENTS: ResourceType = { group: '', version: 'v1', plural: 'events' }
/** How long before a deadline its reason is looked for. */
export const AHEAD_MS = 60_000
/** Looked for ahead in one call: more than the Events that can be listed meanwhile. */
const MAX_AHEAD = 1_000
/**
 * Missed at once, as after an outage: twice what a cluster is expected to have. Deadlines beyond are judged without a
 * detail.
 */
const MAX_DUE = 20_000
const LISTS_PER_SECOND = 5
/** Of two seconds. More are left to the next call, in which others may be more urgent. */
const MAX_WAITING = 11
/** Repeats are counted in one Event, so an object has few; the oldest come first. */
const MAX_EVENTS = 500
const LIST_MS = 5_000
/** A deadline that has passed waits so long for its Events. */
const PATIENCE_MS = 1_000

interface Reading {
  readonly subject: Subject
  readonly done: Promise<void>
  /** Null until it is read, if there is none, and if it cannot be read. */
  warning: Warning | null
}

export function createMissedExplainer(options: MissedExplainerOptions): MissedExplainer {
  const { listDue, client, sources, clock, log } = options
  /** By check and due time. */
  let readings = new Map<string, Reading>()
  const rate = createRate(clock, LISTS_PER_SECOND)
  /** Lists that wait for their turn. */
  let waiting = 0
  let hasWarned = false

  async function read({ kind, namespace, uid }: Subject, signal: AbortSignal): Promise<Warning | null> {
    const fieldSelector = `involvedObject.uid=${uid},type=Warning`
    try {
      const where = { namespace, fieldSelector, limit: MAX_EVENTS, timeoutMs: LIST_MS, keepsOthers: true, signal }
      const { items } = await client.list<CoreEvent>(EVENTS, where)
      hasWarned = false
      return newestWarning(items)
    } catch (error) {
      if (!signal.aborted && !hasWarned) log.warn({ error, namespace }, `the Events of a ${kind} cannot be listed`)
      hasWarned = true
      return null
    }
  }

  /** That of the slot's object, which is listed once; null: it needs none, or others are listed first. */
  function findReading(known: Reading | undefined, slot: WaitingSlot, signal: AbortSignal): Reading | null {
    const subject = findSubject(slot)
    if (subject === null) return null
    if (known?.subject.uid === subject.uid) return known
    if (waiting >= MAX_WAITING) return null
    waiting += 1
    const reading: Reading = {
      subject,
      warning: null,
      done: rate.take(signal).then(async () => {
        waiting -= 1
        if (!signal.aborted) reading.warning = await read(subject, signal)
      }),
    }
    return reading
  }

  function slotOf(check: FollowedCheck, now: Instant): WaitingSlot | null {
    const { resource, source: name, dueAt, graceMs, openJobRuns: started } = check
    const source = name === null ? undefined : sources.getSource(`${resource.namespace}/${name}`)
    if (source === undefined || dueAt === null) return null
    const slotAt = dueAt - graceMs
    const runs = [...sources.runsOf(source.metadata.uid)]
    const run = findWaitingRun(runs, { source, slotAt, started })
    const blocking = findBlockingJob(source)
    const shown = run ?? runs.find(({ metadata }) => metadata.name === blocking)
    const pods = shown === undefined ? [] : sources.podsOf(shown.metadata)
    return { source, slotAt, now, run, pods }
  }

  /** All that are due, and the most urgent of those that will be. */
  async function listUrgent(areas: readonly string[], until: Instant): Promise<Iterable<FollowedCheck>> {
    const checks = await listDue(areas, until + AHEAD_MS, MAX_AHEAD)
    if (checks.length < MAX_AHEAD) return checks
    const due = await listDue(areas, until, MAX_DUE)
    return new Map([...due, ...checks].map((check) => [check.key, check])).values()
  }

  return {
    async explain(areas, until, signal) {
      const checks = await listUrgent(areas, until)
      const next = new Map<string, Reading>()
      const due: { check: FollowedCheck; slot: WaitingSlot; reading: Reading | null }[] = []
      for (const check of checks) {
        const { key, dueAt, graceMs, explainedFor } = check
        if (dueAt === null || dueAt === explainedFor || until < dueAt - Math.min(AHEAD_MS, graceMs / 2)) continue
        const slot = slotOf(check, until)
        if (slot === null) continue
        const id = `${key}:${dueAt}`
        const reading = findReading(readings.get(id), slot, signal)
        if (reading !== null) next.set(id, reading)
        if (dueAt <= until) due.push({ check, slot, reading })
      }
      // Those of runs that have started are forgotten, and those of deadlines that have passed.
      readings = next
      await waitForAll(
        due.flatMap(({ reading }) => reading?.done ?? []),
        clock,
        signal,
      )
      return due.map(({ check, slot, reading }) => {
        const { resource, source, dueAt } = check
        return { resource, source: source!, dueAt: dueAt!, ...explainWait(slot, reading?.warning ?? null) }
      })
    },
  }
}

async function waitForAll(readings: readonly Promise<void>[], clock: Clock, signal: AbortSignal): Promise<void> {
  if (readings.length === 0) return
  await waitForEvent(clock, PATIENCE_MS, signal, (onAll) => {
    void Promise.all(readings).then(onAll)
    return () => {}
  })
}
