/**
 * Records what the runs of sources report, for each check that follows them. What a watch reports is recorded at once. What only a list
 * shows is compared with what is recorded: at the start of a term, after a watch has missed something, and for a new check.
 *
 * It reads the caches alone: a success needs no call of the API server.
 */

import type { JobOutcome, JobReport } from '../../checks/jobs/job-report.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Change } from '../../kubernetes/reflector.ts'
import { whenAborted } from '../../runtime/abort.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import { after, waitForEvent } from '../../runtime/clock.ts'
import type { Resource } from '../../store/checks/checks.ts'
import type { LogReader } from '../reasons/read-logs.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { hasEnded, type Source, type SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { createCatchUp, isOfFormer } from './catch-up.ts'
import {
  describeDeletion,
  describeRun,
  describeSuccess,
  describeSuspension,
  hasNews,
  limitDeletion,
  type RunReport,
} from './describe-run.ts'
import { createFailureExplainer } from './explain-run.ts'
import { findReplacement, mayBeReplaced } from './find-replacement.ts'
import { JOB_VERBS, type JobVerbs } from './job-verbs.ts'
import { reportKeptRuns } from './note-kept.ts'
import { createReportLines } from './report-lines.ts'
import { createReportQueue } from './report-queue.ts'
import { createReportStore, RETRY } from './store-reports.ts'

export interface RunRecorderOptions {
  readonly sources: SourceWatch
  readonly checks: Pick<CheckWatch, 'get' | 'followers' | 'followersOf' | 'hasTried' | 'unlisted'>
  /** Null: no log is read. */
  readonly logs: LogReader | null
  readonly onOutcome?: (outcome: JobOutcome, report: JobReport) => void
  readonly verbs?: JobVerbs
}

export interface RunRecorder extends Controller {
  /** The check of this HeartbeatCheck follows its source from now on: what its runs have reported before is recorded too. */
  follow(key: string): void
  /**
   * Resolves when all that was in the caches at the call is recorded, and runs are closed whose Job is gone, but for the HeartbeatChecks that it
   * returns: other transactions hold their checks, or a Job of theirs was deleted that may be replaced. Rejects when the database rejects that. After SourceWatch.confirm().
   */
  whenRecorded(): Promise<readonly Resource[]>
}

/** Of those that a comparison finds, so many wait at once for their pods or logs. */
const MAX_EXPLAINED = 100
/** A source starts a run at once in the place of one that it has deleted. */
const REPLACED_MS = 2_000
/** How often it is looked whether the caches are filled. */
const SYNC_MS = 100
/** So many are named as held; with more, all deadlines wait for them. */
const MAX_REPLACED = 100
/** How often those are looked at again whose check did not exist. */
const UNKNOWN_MS = 60_000
/** At a time: those of another installation never exist. */
const MAX_UNKNOWN = 100

export function createRunRecorder(
  term: Pick<Term, 'context' | 'cluster' | 'clock' | 'log' | 'startLoop'>,
  options: RunRecorderOptions,
): RunRecorder {
  const { context, cluster, clock, log } = term
  const { sources, checks, verbs = JOB_VERBS, onOutcome = () => {} } = options
  /** Aborts when no more is stored. */
  const ending = new AbortController()
  const { signal } = ending
  /** Aborts when the term ends: what is known is stored, and nothing more is found out. */
  const stopping = new AbortController()
  const startedAt = clock.now()
  const queue = createReportQueue()
  const lines = createReportLines()
  const explainer = createFailureExplainer({ sources, clock, signal: stopping.signal, logs: options.logs })
  /** By the uid of the run. */
  const explaining = new Map<string, Promise<void>>()
  /** By the uid of a run that was deleted: its source, of which it is awaited whether it has replaced the run. */
  const replaced = new Map<string, string>()
  /** By the key of the source: since when its last success is to be compared with its runs. */
  const successes = new Map<string, number>()
  /** Keys of HeartbeatChecks. */
  const unknown = new Set<string>()
  /** Namespaces of which the HeartbeatChecks were not listed when the term began. */
  let late: ReadonlySet<string> = new Set(checks.unlisted())
  let wake = () => {}

  const catchUp = createCatchUp({
    context,
    cluster,
    log,
    sources,
    checks,
    verbs,
    report: (key, found) => lines.pass(`${splitKey(key).namespace}/${found.source}`, () => report(key, found)),
    explain: explainer.explainNow,
    explainLater(source, run) {
      if (explaining.size >= MAX_EXPLAINED) return false
      explain(source, run)
      return true
    },
    isExplained: (uid) => explaining.has(uid),
  })

  const store = createReportStore({
    context,
    clock,
    log,
    queue,
    verbs,
    onOutcome,
    onMissing: (key) => unknown.add(key),
    isStopping: () => stopping.signal.aborted,
  })

  function report(key: string, found: RunReport): void {
    const { namespace, name } = splitKey(key)
    const limited = limitDeletion(found, checks.get(key)?.spec.maxRuntimeSeconds)
    // Above the limit it is found again in the caches.
    if (!queue.add({ resource: { cluster, namespace, name }, ...limited })) catchUp.add(key)
    wake()
  }

  function reportToAll(source: string, found: RunReport | null): void {
    if (found !== null) lines.pass(source, () => reportNow(source, found))
  }

  function reportNow(source: string, found: RunReport): void {
    if (found.runId !== null) catchUp.noteReported(found.runId)
    for (const key of checks.followersOf(source)) report(key, found)
  }

  function onRun(source: string | null, { before, after, isListed }: Change<SourceRun>): void {
    // Of an unknown source: it is caught up with when the source is there.
    if (source === null || isEmpty(checks.followersOf(source))) return
    if (isOfFormer(sources, source, (after ?? before)!)) return
    if (isListed) {
      catchUpWith(source)
      return
    }
    const { name } = splitKey(source)
    if (after === undefined) {
      if (!hasEnded(before!)) reportDeletion(source, before!)
    } else if (before?.outcome === 'Running' && after.suspended && !hasEnded(after)) {
      reportToAll(source, describeSuspension(sources.kind, name, before, context.clock.now()))
    } else if (hasNews(before, after)) {
      if (after.outcome === 'Failed') explain(source, after)
      else reportToAll(source, describeRun(sources.kind, name, after, null))
    }
  }

  function explain(source: string, run: SourceRun): void {
    reportLater(source, run, async () => {
      const failure = await explainer.explain(run)
      // It has ended: there is a report.
      return describeRun(sources.kind, splitKey(source).name, run, failure)!
    })
  }

  /** What the source reports meanwhile waits behind it. */
  function reportLater(source: string, { metadata: { uid } }: SourceRun, find: () => Promise<RunReport>): void {
    const fill = lines.reserve(source)
    const explained = find().then((found) => {
      if (explaining.get(uid) === explained) explaining.delete(uid)
      fill(() => reportNow(source, found))
      wake()
    })
    explaining.set(uid, explained)
  }

  /** Its source may have deleted it, to start the next run: that is seen after the deletion. */
  function reportDeletion(source: string, run: SourceRun): void {
    const at = context.clock.now()
    const find = () => findReplacement(sources, source, run, at)
    const describe = (replacement: SourceRun | null) =>
      describeDeletion(sources.kind, splitKey(source).name, run, { at, replacement })
    if (!mayBeReplaced(sources, source, run) || stopping.signal.aborted) {
      reportToAll(source, describe(null))
      return
    }
    replaced.set(run.metadata.uid, source)
    reportLater(source, run, async () => {
      const listen = (onSeen: () => void) =>
        sources.onRun((of) => {
          if (of === source && find() !== null) onSeen()
        })
      if (find() === null) await waitForEvent(clock, REPLACED_MS, stopping.signal, listen)
      replaced.delete(run.metadata.uid)
      return describe(find())
    })
  }

  /** The HeartbeatChecks that wait for the replacement of a run: no other waits for them. */
  function findHeld(): Resource[] {
    const keys = new Set([...replaced.values()].flatMap((source) => [...checks.followersOf(source)]))
    return [...keys].map((key) => ({ cluster, ...splitKey(key) }))
  }

  /** What is explained at the call; without runs that may be replaced, unless there are too many of them. */
  async function whenExplained(): Promise<readonly Resource[]> {
    const held = replaced.size > MAX_REPLACED ? [] : findHeld()
    const isHeld = (uid: string) => held.length > 0 && replaced.has(uid)
    await Promise.all([...explaining].filter(([uid]) => !isHeld(uid)).map(([, explained]) => explained))
    return held
  }

  function catchUpWith(source: string): void {
    for (const key of checks.followersOf(source)) catchUp.add(key)
    wake()
  }

  /** The garbage collector deletes its Jobs, or they lose their owner; a new source of its name has others. */
  function leaveRuns(source: string, { metadata: { uid } }: Source): void {
    for (const run of sources.runsOf(uid))
      if (run.outcome === 'Running')
        for (const key of checks.followersOf(source)) catchUp.noteOpen(key, source, run.metadata.uid)
  }

  function noteSuccess(source: string): void {
    if (!successes.has(source)) successes.set(source, clock.now())
  }

  async function work(): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      try {
        if (await workOnce()) failures = 0
        else if (isDrained()) return
        else await whenWoken()
      } catch (error) {
        if (signal.aborted) return
        if (failures === 0) log.warn({ error }, 'what Jobs report could not be recorded; it is tried again')
        await clock.sleep(backoffMs(failures, RETRY), signal)
        failures += 1
      }
    }
  }

  /** Returns false when there is nothing to do. */
  async function workOnce(): Promise<boolean> {
    return (await store.storeSome()) || (!stopping.signal.aborted && (await catchUp.step()))
  }

  const isDrained = () => stopping.signal.aborted && explaining.size === 0 && queue.isEmpty()
  const hasWork = () => queue.hasWork(clock.now()) || (!stopping.signal.aborted && catchUp.hasWork())

  async function whenWoken(): Promise<void> {
    const woken = new AbortController()
    wake = () => woken.abort()
    if (signal.aborted || isDrained() || hasWork()) return
    const resumesAt = queue.resumesAt()
    if (resumesAt !== null) await clock.sleep(resumesAt - clock.now(), woken.signal)
    else await whenAborted(woken.signal)
  }

  async function wakeWhenSynced(): Promise<void> {
    while (!(sources.hasSynced() && checks.hasTried()) && !stopping.signal.aborted)
      await clock.sleep(SYNC_MS, stopping.signal)
    wake()
  }

  /** What its Jobs reported belonged to no check until the HeartbeatChecks of a namespace were listed. */
  function catchUpWithLate(): void {
    if (late.size === 0) return
    const unlisted = new Set(checks.unlisted())
    const listed = new Set([...late].filter((namespace) => !unlisted.has(namespace)))
    late = unlisted
    if (listed.size === 0) return
    for (const key of checks.followers()) if (listed.has(splitKey(key).namespace)) catchUp.add(key)
    wake()
  }

  /** Whether the caches hold all of this namespace that was there at this time, or at the beginning of the term. */
  function isConfirmed(namespace: string, at = startedAt): boolean {
    return sources.confirmedAt(namespace) >= Math.max(at, startedAt)
  }

  /** Successes whose run was gone before it was seen: all that changed before is in the caches. */
  function reportSuccesses(): void {
    if (successes.size === 0) return
    const goneAt = new Map<string, number>()
    for (const { source, run } of sources.goneRuns())
      if (run.outcome === 'Succeeded' && !isOfFormer(sources, source, run))
        goneAt.set(source, Math.max(goneAt.get(source) ?? 0, run.endedAt!))
    for (const [key, notedAt] of successes) {
      if (!isConfirmed(splitKey(key).namespace, notedAt)) continue
      successes.delete(key)
      const source = sources.getSource(key)
      const at = Date.parse(source?.lastSuccessfulTime ?? '')
      if (source === undefined || Number.isNaN(at) || (goneAt.get(key) ?? 0) >= at) continue
      const isSeen = [...sources.runsOf(source.metadata.uid)].some(
        (run) => run.outcome === 'Succeeded' && run.endedAt! >= at,
      )
      if (!isSeen) reportToAll(key, describeSuccess(source.metadata.name, at))
    }
  }

  const parts: { stop(): Promise<void> }[] = []
  const ends: (() => void)[] = []
  let running: Promise<unknown> | undefined
  return {
    name: 'runs',
    follow(key) {
      unknown.delete(key)
      catchUp.add(key)
      const object = checks.get(key)
      const source = object === undefined ? null : sourceKeyOf(object)
      if (source !== null) noteSuccess(source)
      wake()
    },
    async whenRecorded() {
      catchUpWithLate()
      await catchUp.whenDone()
      const unclosed = await catchUp.closeGone(isConfirmed)
      reportSuccesses()
      const awaiting = await whenExplained()
      await queue.whenDrained()
      return [...unclosed, ...awaiting, ...store.held()]
    },
    start() {
      ends.push(
        sources.onRun(onRun),
        sources.onSource((key, { before, after }) => {
          if (after === undefined) {
            successes.delete(key)
            leaveRuns(key, before!)
            return
          }
          if (after.lastSuccessfulTime !== null && after.lastSuccessfulTime !== before?.lastSuccessfulTime)
            noteSuccess(key)
          // Its runs may have come before it.
          if (before === undefined) catchUpWith(key)
        }),
        reportKeptRuns({ sources, report: reportToAll }),
      )
      for (const { metadata, lastSuccessfulTime } of sources.sources())
        if (lastSuccessfulTime !== null) noteSuccess(`${metadata.namespace}/${metadata.name}`)
      const recheck = async () => {
        for (const key of [...unknown].slice(0, MAX_UNKNOWN)) {
          unknown.delete(key)
          catchUp.add(key)
        }
        store.retryRejected()
        wake()
      }
      parts.push(term.startLoop('runs to look at again', UNKNOWN_MS, recheck))
      catchUp.addAll()
      running = Promise.all([work(), wakeWhenSynced()])
    },
    /** A Job may be gone already: what waits is stored, with what is known of it now. */
    async stop(drainMs) {
      for (const end of ends) end()
      stopping.abort()
      queue.resume()
      wake()
      const end = () => {
        ending.abort()
        wake()
      }
      const stopTimer = after(clock, drainMs, end)
      if (drainMs <= 0) end()
      await Promise.all([running, ...explaining.values(), ...parts.map((part) => part.stop())])
      stopTimer()
    },
  }
}

export function isEmpty(keys: Iterable<string>): boolean {
  for (const _ of keys) return false
  return true
}
