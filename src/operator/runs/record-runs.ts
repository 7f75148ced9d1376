/**
 * The controller of runs: records what the runs of sources report, for each check that follows them. Watches bring news
 * of runs. What only lists show is found by a comparison of the caches with what is recorded: at the start of a term,
 * after a watch has missed something, and for a new check. One queue, keyed by the HeartbeatCheck, leads to both.
 *
 * The controller reads the caches alone: a success needs no call of the API server.
 */

import type { KnownRun } from '../../checks/jobs/find-recorded.ts'
import type { JobOutcome, JobReport } from '../../checks/jobs/job-report.ts'
import { MAX_REPORTS } from '../../checks/jobs/record-jobs.ts'
import { keyOf, splitKey } from '../../kubernetes/objects.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import { after } from '../../runtime/clock.ts'
import type { LogReader } from '../reasons/read-logs.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { createOpenRuns, isOfFormer } from './close-gone.ts'
import { describeSuccess, limitDeletion, timeOfRun } from './describe-run.ts'
import { type ListedRun, listRuns } from './list-runs.ts'
import { createRunObserver, toNews } from './observe-runs.ts'
import { createRunNews, type News } from './run-news.ts'
import { createReportSender, RETRY } from './send-reports.ts'

export interface RunRecorderOptions {
  readonly sources: SourceWatch
  readonly checks: Pick<CheckWatch, 'get' | 'followers' | 'followersOf' | 'hasTried'>
  /** Null: no log is read. */
  readonly logs: LogReader | null
  readonly onOutcome: (outcome: JobOutcome, report: JobReport) => void
}

export interface RunRecorder extends Controller {
  /**
   * The check of this HeartbeatCheck follows its source from now on: what its runs have reported before is recorded
   * too.
   */
  follow(key: string): void
  /**
   * Resolves when all that was in the caches at the call is recorded, and runs are closed whose Job is gone, but for
   * the HeartbeatChecks that it returns: other transactions lock their checks, or a Job of theirs was deleted that may
   * be replaced. Rejects when the database rejects that. After SourceWatch.confirm().
   */
  whenRecorded(): Promise<readonly string[]>
}

/** How often the caches are looked at until they are filled. */
const SYNC_MS = 100
/** Runs that are compared at once, and a few more: those of a check are compared together. */
const MAX_COMPARED = 500
/** How often checks are looked at again that did not exist, and reports that were rejected. */
const RECHECK_MS = 60_000
/** Looked at again at a time: the checks of another installation never exist. */
const MAX_UNKNOWN = 100

/** A run that a comparison looks at. */
interface Found extends ListedRun {
  readonly key: string
  readonly source: string
}

/** Waits for the news up to `until`, but for those of held checks. */
interface Waiter {
  readonly until: number
  /** Gets the keys of the held checks. */
  readonly resolve: (held: ReadonlySet<string>) => void
}

export function createRunRecorder(
  term: Pick<Term, 'service' | 'cluster' | 'clock' | 'log' | 'startLoop' | 'createQueue'>,
  options: RunRecorderOptions,
): RunRecorder {
  const { service, cluster, clock, log } = term
  const { sources, checks, onOutcome } = options
  /** Aborts when the term ends: what is known is stored, and nothing more is compared. */
  const stopping = new AbortController()
  /** Aborts when no more is stored. */
  const ending = new AbortController()
  const startedAt = clock.now()
  const queue = term.createQueue('heartbeat-operator-runs', RETRY)
  const waiting = createRunNews()
  const openRuns = createOpenRuns({ service, cluster, log, sources, checks, isWaiting: waiting.has })
  /** By the key of the source: since when its last success is to be compared with its runs. */
  const successes = new Map<string, number>()
  /** Keys of HeartbeatChecks: those that were compared in this term. */
  let known: ReadonlySet<string> = new Set()
  /** Keys of HeartbeatChecks that had no check. */
  const unknown = new Set<string>()
  let syncing: Promise<void> | null = null
  const waiters = new Set<Waiter>()

  const sender = createReportSender({
    service,
    cluster,
    clock,
    log,
    waiting,
    onOutcome,
    onUnknown: (key) => unknown.add(key),
    limit: (key, report) => limitDeletion(report, checks.get(key)?.spec.maxRuntimeSeconds),
    retry: (key, ms) => queue.addAfter(key, ms),
    isStopping: () => stopping.signal.aborted,
  })

  /**
   * The oldest first. What was before the HeartbeatCheck comes before that, newest first: the last run decides whether
   * its check begins up.
   */
  function orderOf({ key, run }: Found): number {
    const at = timeOfRun(run)
    const createdAt = Date.parse(checks.get(key)?.metadata.creationTimestamp ?? '')
    return at < createdAt ? -at : at
  }

  const observer = createRunObserver({
    service,
    clock,
    sources,
    logs: options.logs,
    isFollowed: (source) => !isEmpty(checks.followersOf(source)),
    isWaiting: (source, id) => [...checks.followersOf(source)].some((key) => waiting.has(key, id)),
    onNews: note,
    onAnswer(id) {
      for (const key of waiting.keys(id)) queue.add(key)
    },
    onGap(source) {
      for (const key of checks.followersOf(source)) compare(key)
    },
    onLeft(source, runId) {
      for (const key of checks.followersOf(source)) openRuns.note(key, source, runId)
    },
  })

  function note(source: string, news: News): void {
    for (const key of checks.followersOf(source)) {
      put(key, source, news)
      queue.add(key)
    }
  }

  function put(key: string, source: string, news: News, order?: number): void {
    if (waiting.put(key, news, order)) return
    // Above the limit the run is found again in the caches; closed, if the caches have forgotten it.
    openRuns.note(key, source, news.id)
    compare(key, RETRY.maxMs)
  }

  const isReady = () => sources.hasSynced() && checks.hasTried()

  function compare(key: string, ms = 0): void {
    if (stopping.signal.aborted) return
    waiting.compare(key)
    if (isReady()) queue.addAfter(key, ms, 'background')
    else syncing ??= compareWhenReady()
  }

  async function compareWhenReady(): Promise<void> {
    while (!isReady() && !stopping.signal.aborted) await clock.sleep(SYNC_MS, stopping.signal)
    syncing = null
    compareNew()
    for (const key of waiting.toCompare()) queue.add(key, 'background')
  }

  /** What Jobs reported before their HeartbeatCheck was listed belonged to no check. */
  function compareNew(): void {
    const followers = new Set(checks.followers())
    for (const key of followers) if (!known.has(key)) compare(key)
    known = followers
  }

  /** Adds the news that are not recorded. Adds to `left` the keys of the checks that are still to be compared. */
  async function compareRuns(keys: readonly string[], left: Set<string>): Promise<void> {
    const asked = keys.flatMap((key) => {
      const comparison = waiting.comparisonOf(key)
      return comparison === undefined ? [] : [{ key, comparison }]
    })
    if (asked.length === 0 || stopping.signal.aborted) return
    if (!isReady()) {
      syncing ??= compareWhenReady()
      return
    }
    const gone = Map.groupBy(sources.goneRuns(), ({ source }) => source)
    const found: Found[] = []
    const compared: typeof asked = []
    for (const one of asked) {
      const { key } = one
      left.add(key)
      // The rest has its turn behind what happens meanwhile.
      if (found.length >= MAX_COMPARED) {
        queue.addAfter(key, 0)
        continue
      }
      compared.push(one)
      const object = checks.get(key)
      const source = object === undefined ? null : sourceKeyOf(object)
      if (source === null) continue
      const { runs, lost } = listRuns(sources, source, gone.get(source) ?? [], service.now())
      for (const uid of lost) openRuns.note(key, source, uid)
      for (const listed of runs) if (!waiting.has(key, listed.run.metadata.uid)) found.push({ key, source, ...listed })
    }
    const inOrder = found.toSorted((one, other) => orderOf(one) - orderOf(other))
    const recorded = inOrder.length === 0 ? [] : await service.findRecorded(inOrder.map(toKnown))
    for (const [index, one] of inOrder.entries()) {
      const { key, source, run, isGone, report } = one
      const types = recorded[index]!
      if (types === null) unknown.add(key)
      const isMissing = types !== null && report.entries.some(({ type }) => !types.has(type))
      // What waits came meanwhile, and is newer.
      if (!isMissing || waiting.has(key, run.metadata.uid)) continue
      if (isGone || sources.getRun(run.sourceUid!, run.metadata.uid) === run)
        put(key, source, observer.newsOf(source, one), orderOf(one))
      else compare(key)
    }
    for (const { key, comparison } of compared) {
      waiting.compared(key, comparison)
      left.delete(key)
    }
  }

  function toKnown({ key, run }: Found): KnownRun {
    return { resource: { cluster, ...splitKey(key) }, runId: run.metadata.uid, at: timeOfRun(run) }
  }

  function noteSuccess(source: string): void {
    successes.set(source, clock.now())
  }

  /** Successes whose run was gone before it was seen: all that changed before is in the caches. */
  function reportSuccesses(): void {
    // Without a HeartbeatCheck, one may be listed later.
    const due = [...successes].filter(
      ([key, notedAt]) => isConfirmed(splitKey(key).namespace, notedAt) && !isEmpty(checks.followersOf(key)),
    )
    const gone = due.length === 0 ? null : Map.groupBy(sources.goneRuns(), ({ source }) => source)
    for (const [key] of due) {
      successes.delete(key)
      const source = sources.getSource(key)
      const at = Date.parse(source?.lastSuccessfulTime ?? '')
      if (source === undefined || Number.isNaN(at)) continue
      const ofSource = (gone?.get(key) ?? []).map(({ run }) => run).filter((run) => !isOfFormer(sources, key, run))
      const runs = [...sources.runsOf(source.metadata.uid), ...ofSource]
      const isSeen = runs.some((run) => run.outcome === 'Succeeded' && run.endedAt! >= at)
      if (!isSeen) note(key, toNews(describeSuccess(source.metadata.name, at)))
    }
  }

  /** Whether the caches hold all of this namespace that was there at this time, or at the beginning of the term. */
  function isConfirmed(namespace: string, at = startedAt): boolean {
    return sources.confirmedAt(namespace) >= Math.max(at, startedAt)
  }

  async function work(): Promise<void> {
    let failures = 0
    for (let key = await queue.take(ending.signal); key !== null; key = await queue.take(ending.signal)) {
      const keys = [key, ...queue.takeWaiting(MAX_REPORTS - 1)]
      const left = new Set<string>()
      try {
        await compareRuns(keys, left).finally(() =>
          // News of a check are not recorded before older ones that a comparison may find.
          sender.send(keys.filter((one) => !left.has(one))),
        )
        failures = 0
      } catch (error) {
        if (ending.signal.aborted) return
        if (failures === 0) log.warn({ error }, 'what Jobs report could not be recorded; it is tried again')
        await clock.sleep(backoffMs(failures, RETRY), ending.signal)
        failures += 1
        for (const one of keys) queue.addAfter(one, 0)
      }
      for (const one of keys) queue.done(one)
      settle()
    }
  }

  /** The checks whose news nothing waits for but their own deadlines. */
  function heldKeys(): ReadonlySet<string> {
    return new Set([...sender.locked(), ...observer.replacing().flatMap((source) => [...checks.followersOf(source)])])
  }

  function settle(): void {
    if (stopping.signal.aborted) {
      // What is dropped does not count as recorded.
      if (!waiting.isAwaited(Number.POSITIVE_INFINITY, () => false)) ending.abort()
      return
    }
    for (const waiter of waiters) {
      const held = heldKeys()
      if (waiting.isAwaited(waiter.until, (key) => held.has(key))) continue
      waiters.delete(waiter)
      waiter.resolve(held)
    }
  }

  /** Returns the keys of the held checks. */
  function whenSettled(): Promise<ReadonlySet<string>> {
    return new Promise((resolve) => {
      waiters.add({ until: waiting.last(), resolve })
      settle()
    })
  }

  async function recheck(): Promise<void> {
    for (const key of [...unknown].slice(0, MAX_UNKNOWN)) {
      unknown.delete(key)
      compare(key)
    }
    for (const key of waiting.retryRejected()) queue.add(key)
  }

  const parts: { stop(): Promise<void> }[] = []
  let stopListening = () => {}
  let running: Promise<void> | undefined
  return {
    name: 'runs',
    follow(key) {
      compare(key)
      const object = checks.get(key)
      const source = object === undefined ? null : sourceKeyOf(object)
      if (source !== null) noteSuccess(source)
    },
    async whenRecorded() {
      if (!isReady()) syncing ??= compareWhenReady()
      await syncing
      compareNew()
      await whenSettled()
      const unclosed = await openRuns.closeGone(isConfirmed)
      reportSuccesses()
      return [...new Set([...unclosed, ...(await whenSettled())])]
    },
    start() {
      observer.start()
      stopListening = sources.onSource((key, { before, after }) => {
        if (after === undefined) successes.delete(key)
        else if (after.lastSuccessfulTime !== null && after.lastSuccessfulTime !== before?.lastSuccessfulTime)
          noteSuccess(key)
      })
      for (const { metadata, lastSuccessfulTime } of sources.sources())
        if (lastSuccessfulTime !== null) noteSuccess(keyOf(metadata))
      if (isReady()) compareNew()
      else syncing = compareWhenReady()
      parts.push(term.startLoop('runs to look at again', RECHECK_MS, recheck))
      running = work()
    },
    /** A Job may be gone already: what waits is stored, with what is known of it now. */
    async stop(drainMs) {
      stopListening()
      stopping.abort()
      const stopTimer = after(clock, drainMs, () => ending.abort())
      if (drainMs <= 0) ending.abort()
      waiting.endComparisons()
      await Promise.all([syncing, observer.stop()])
      for (const key of waiting.keys()) queue.add(key)
      settle()
      await Promise.all([running, ...parts.map((part) => part.stop())])
      stopTimer()
      queue.stop()
    },
  }
}

export function isEmpty(keys: Iterable<string>): boolean {
  for (const _ of keys) return false
  return true
}
