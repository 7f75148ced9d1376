/**
 * Watches the runs of the sources that checks follow, and says what there is to record. A failure first waits for its
 * pods and its log, and a deletion for the run that may have replaced the deleted one.
 */

import { splitKey } from '../../kubernetes/objects.ts'
import type { Change } from '../../kubernetes/reflector.ts'
import { waitForEvent } from '../../runtime/clock.ts'
import type { LogReader } from '../reasons/read-logs.ts'
import { hasEnded, type Source, type SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { Term } from '../term.ts'
import { isOfFormer } from './close-gone.ts'
import {
  describeDeletion,
  describeRun,
  describeSuspension,
  hasNews,
  type RunReport,
  timeOfRun,
} from './describe-run.ts'
import { createFailureExplainer } from './explain-run.ts'
import { findReplacement, mayBeReplaced } from './find-replacement.ts'
import type { ListedRun } from './list-runs.ts'
import { reportKeptRuns } from './note-kept.ts'
import type { News } from './run-news.ts'

export interface RunObserver {
  start(): void
  /** The news of a run that a comparison finds. */
  newsOf(source: string, listed: ListedRun): News
  /** The keys of the sources that may replace a run which was deleted. */
  replacing(): readonly string[]
  /** Hears no more. Resolves when each report is known, from what is known now. */
  stop(): Promise<void>
}

export interface RunObserverOptions extends Pick<Term, 'service' | 'clock'> {
  readonly sources: SourceWatch
  /** Null: no log is read. */
  readonly logs: LogReader | null
  readonly isFollowed: (source: string) => boolean
  /** Whether news of this run wait to be recorded. */
  readonly isWaiting: (source: string, id: string) => boolean
  readonly onNews: (source: string, news: News) => void
  /** The report of the news with this id is known. */
  readonly onAnswer: (id: string) => void
  /** The watch may have missed something. */
  readonly onGap: (source: string) => void
  /** The source is gone, whose run is open. */
  readonly onLeft: (source: string, runId: string) => void
}

/** Of the failures that comparisons find, so many wait at once for their pods or logs. */
const MAX_EXPLAINED = 100
/** A source starts a run at once in the place of one that it has deleted. */
const REPLACED_MS = 2_000

/** What a run reports is being found out. */
interface Inquiry {
  readonly news: News
  readonly source: string
  /** Whether the run was deleted, and its source may replace it. */
  readonly isReplaced: boolean
  readonly done: Promise<void>
}

interface Question extends Pick<News, 'at'>, Pick<Inquiry, 'isReplaced'> {
  find(): Promise<RunReport>
}

export function createRunObserver(options: RunObserverOptions): RunObserver {
  const { service, clock, sources, isFollowed, isWaiting, onNews, onAnswer, onGap, onLeft } = options
  const { kind } = sources
  const stopping = new AbortController()
  const { signal } = stopping
  const explainer = createFailureExplainer({ sources, clock, signal, logs: options.logs })
  /** By the uid of the run. */
  const inquiries = new Map<string, Inquiry>()
  const ends: (() => void)[] = []

  function onRun(source: string | null, { before, after, isListed }: Change<SourceRun>): void {
    const run = (after ?? before)!
    // Of an unknown source: compared when the source is there.
    if (source === null || !isFollowed(source) || isOfFormer(sources, source, run)) return
    if (isListed) {
      onGap(source)
      // The comparison leaves out a run whose news wait: they are older here.
      if (after === undefined || !isWaiting(source, run.metadata.uid)) return
    }
    const { name } = splitKey(source)
    if (after === undefined) {
      if (!hasEnded(before!)) noteDeletion(source, before!)
    } else if (before?.outcome === 'Running' && after.suspended && !hasEnded(after)) {
      onNews(source, toNews(describeSuspension(kind, name, before, service.now())))
    } else if (hasNews(before, after)) {
      onNews(source, after.outcome === 'Failed' ? explain(source, after) : toNews(describeRun(kind, name, after)!))
    }
  }

  /** Its source may have deleted the run to start the next one, which is seen after the deletion. */
  function noteDeletion(source: string, run: SourceRun): void {
    const at = service.now()
    const find = () => findReplacement(sources, source, run, at)
    const describe = () => describeDeletion(kind, splitKey(source).name, run, { at, replacement: find() })
    const whenReplaced = async () => {
      await waitForEvent(clock, REPLACED_MS, signal, (onSeen) =>
        sources.onRun((of) => {
          if (of === source && find() !== null) onSeen()
        }),
      )
      return describe()
    }
    const isAwaited = mayBeReplaced(sources, source, run) && find() === null
    const question = { at, find: whenReplaced, isReplaced: true }
    onNews(source, isAwaited ? inquire(source, run, question) : toNews(describe()))
  }

  function explain(source: string, run: SourceRun): News {
    const find = async () => {
      const failure = await explainer.explain(run)
      return describeRun(kind, splitKey(source).name, run, failure)!
    }
    return inquire(source, run, { at: timeOfRun(run), find, isReplaced: false })
  }

  /** What happens later to the checks of the source waits for the answer. */
  function inquire(source: string, run: SourceRun, { at, find, isReplaced }: Question): News {
    const { uid } = run.metadata
    const news: News = { id: uid, at, report: null }
    const done = find().then((report) => {
      news.report = report
      if (inquiries.get(uid)?.news === news) inquiries.delete(uid)
      onAnswer(uid)
    })
    inquiries.set(uid, { news, source, isReplaced, done })
    return news
  }

  /** The garbage collector deletes its Jobs, or they lose their owner; a new source of its name has others. */
  function leaveRuns(source: string, { metadata: { uid } }: Source): void {
    for (const run of sources.runsOf(uid)) if (run.outcome === 'Running') onLeft(source, run.metadata.uid)
  }

  return {
    start() {
      ends.push(
        sources.onRun(onRun),
        sources.onSource((key, { before, after }) => {
          if (after === undefined) leaveRuns(key, before!)
          // Its runs may have come before it.
          else if (before === undefined) onGap(key)
        }),
        reportKeptRuns({ sources, report: (source, report) => onNews(source, toNews(report)) }),
      )
    },
    newsOf(source, { run, isGone, report }) {
      const inquiry = inquiries.get(run.metadata.uid)
      if (inquiry !== undefined) return inquiry.news
      if (run.outcome !== 'Failed') return toNews(report)
      const hasPods = !isGone && sources.podsOf(run.metadata).length > 0
      if (hasPods && inquiries.size < MAX_EXPLAINED) return explain(source, run)
      return toNews(describeRun(kind, splitKey(source).name, run, explainer.explainNow(run))!)
    },
    replacing: () => [...inquiries.values()].flatMap(({ isReplaced, source }) => (isReplaced ? [source] : [])),
    async stop() {
      for (const end of ends) end()
      stopping.abort()
      await Promise.all(Array.from(inquiries.values(), ({ done }) => done))
    },
  }
}

export function toNews(report: RunReport): News {
  return { id: report.runId ?? `success ${report.entries[0]?.at}`, at: report.entries.at(-1)?.at ?? 0, report }
}
