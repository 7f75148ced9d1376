/**
 * Compares the runs in the caches with what is recorded of them, check by check, and reports what is missing. Work in steps, so that what
 * happens meanwhile is recorded first.
 */

import { recordedKey } from '../../checks/jobs/job-report.ts'
import { AppError } from '../../domain/errors.ts'
import { keyOf, splitKey } from '../../kubernetes/objects.ts'
import type { Log } from '../../runtime/log.ts'
import type { Resource } from '../../store/checks/checks.ts'
import type { Context } from '../../store/context.ts'
import type { FollowedCheck } from '../../store/jobs/followed-checks.ts'
import type { Failure } from '../reasons/explain-failure.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { hasEnded, type SourceRun } from '../sources/source-kind.ts'
import type { GoneRun, SourceWatch } from '../sources/watch-sources.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { describeDeletion, describeRun, describeSuspension, type RunReport, timeOfRun } from './describe-run.ts'
import { findReplacement } from './find-replacement.ts'
import type { JobVerbs } from './job-verbs.ts'

export interface CatchUpOptions {
  readonly context: Context
  readonly cluster: string
  readonly log: Log
  readonly sources: SourceWatch
  readonly checks: Pick<CheckWatch, 'get' | 'hasTried'>
  readonly verbs: Pick<JobVerbs, 'listFollowed' | 'findRecorded' | 'abandonRuns'>
  /** @param key of the HeartbeatCheck */
  readonly report: (key: string, found: RunReport) => void
  readonly explain: (run: SourceRun) => Failure
  /**
   * Waits for the pods and the log of a run that failed, and reports it to all that follow the source. Returns false when too many wait: then
   * it is reported with what is known.
   */
  readonly explainLater: (source: string, run: SourceRun) => boolean
  /** Whether its report waits for its pods: then it comes, and says more. */
  readonly isExplained: (uid: string) => boolean
}

export interface CatchUp {
  /** @param key of a HeartbeatCheck */
  add(key: string): void
  addAll(): void
  /**
   * The next closeGone() closes this run if its Job does not exist, or is not one of the source as it is now.
   *
   * @param key of a HeartbeatCheck
   */
  noteOpen(key: string, source: string, runId: string): void
  /** A watch has reported this run: a comparison that began before knows less of it, and reports it no more. */
  noteReported(runId: string): void
  hasWork(): boolean
  /** Does a part; returns false when there is nothing to do. Rejects when the database does not serve: the part is done again. */
  step(): Promise<boolean>
  /** Resolves when nothing is to be done. */
  whenDone(): Promise<void>
  /**
   * Closes the open runs whose Job is gone. `isConfirmed`: whether the caches hold all of the namespace that was there when the work
   * began; runs of other namespaces wait. A check whose row is held, or cannot be read, is tried again with the next call: returns
   * its HeartbeatCheck. Rejects when the database does not serve.
   */
  closeGone(isConfirmed: (namespace: string) => boolean): Promise<readonly Resource[]>
}

/** Runs that are compared in one step, and a few more: those of a check are compared together. */
const RUNS_A_STEP = 500

interface Compared {
  readonly key: string
  readonly run: SourceRun
  readonly found: RunReport
  readonly gone: GoneRun | null
}

/** Open runs, perhaps of Jobs that are gone. */
interface OpenRuns {
  readonly resource: Resource
  readonly source: string | null
  readonly runIds: Set<string>
}

export function createCatchUp(options: CatchUpOptions): CatchUp {
  const { context, cluster, log, sources, checks, verbs, report, explain, explainLater, isExplained } = options
  const keys = new Set<string>()
  /** Of the checks that are still to come; null: all were compared. */
  let cursor: number | null = null
  let page: readonly FollowedCheck[] = []
  let isBusy = false
  const open = new Map<string, OpenRuns>()
  /** Keys of those in `open` whose error is logged. */
  const unclosed = new Set<string>()
  let waiters: (() => void)[] = []
  /** Uids of runs that were reported since the present comparison began. */
  const reported = new Set<string>()

  const isReady = () => sources.hasSynced() && checks.hasTried()
  const isDone = () => keys.size === 0 && cursor === null && !isBusy
  const resourceOf = (key: string): Resource => ({ cluster, ...splitKey(key) })

  function sourceOf(key: string, known: string | null = null): string | null {
    const object = checks.get(key)
    if (object !== undefined) return sourceKeyOf(object)
    return known === null ? null : keyOf({ namespace: splitKey(key).namespace, name: known })
  }

  function noteOpen(key: string, source: string | null, runIds: readonly string[]): void {
    if (runIds.length === 0) return
    const known = open.get(key)
    if (known === undefined) open.set(key, { resource: resourceOf(key), source, runIds: new Set(runIds) })
    else for (const id of runIds) known.runIds.add(id)
  }

  /** Returns false when it is to be tried again. */
  async function abandon(key: string, resource: Resource, runIds: readonly string[]): Promise<boolean> {
    try {
      const outcome = await verbs.abandonRuns(context, resource, runIds)
      unclosed.delete(key)
      return outcome === 'closed'
    } catch (error) {
      if (error instanceof AppError) throw error
      const { namespace, name } = resource
      if (!unclosed.has(key))
        log.error({ error, namespace, name }, 'runs whose Jobs are gone could not be closed; it is tried again')
      unclosed.add(key)
      return false
    }
  }

  /** The runs of the source that have something to report. */
  function runsOf(key: string, source: string, gone: ReadonlyMap<string, readonly GoneRun[]>): Compared[] {
    const { name } = splitKey(source)
    const uid = sources.getSource(source)?.metadata.uid
    const compared: Compared[] = []
    const add = (run: SourceRun, found: RunReport | null, gone: GoneRun | null) => {
      if (found !== null) compared.push({ key, run, found, gone })
    }
    const describe = (run: SourceRun) =>
      run.suspended && !hasEnded(run)
        ? describeSuspension(sources.kind, name, run, context.clock.now())
        : describeRun(sources.kind, name, run, run.outcome === 'Failed' ? explain(run) : null)
    for (const run of uid === undefined ? [] : sources.runsOf(uid)) add(run, describe(run), null)
    for (const one of gone.get(source) ?? []) {
      const isFormer = isOfFormer(sources, source, one.run)
      // Whether it ended before its deletion was not seen.
      if (isFormer || (one.isListed && !hasEnded(one.run))) noteOpen(key, source, [one.run.metadata.uid])
      else if (hasEnded(one.run)) add(one.run, describe(one.run), one)
      else {
        const replacement = findReplacement(sources, source, one.run, one.at)
        add(one.run, describeDeletion(sources.kind, name, one.run, { at: one.at, replacement }), one)
      }
    }
    return compared
  }

  /** Oldest first. What was before the HeartbeatCheck comes before that, newest first: whether its check begins up is decided by the last run. */
  function orderOf({ key, run }: Compared): number {
    const at = timeOfRun(run)
    const createdAt = Date.parse(checks.get(key)?.metadata.creationTimestamp ?? '')
    return at < createdAt ? -at : at
  }

  async function compare(all: readonly Compared[]): Promise<void> {
    reported.clear()
    const inOrder = all.toSorted((a, b) => orderOf(a) - orderOf(b))
    /** Uids: each is reported to all checks that follow its source. */
    const left = new Set<string>()
    for (const group of withoutRepeats(inOrder)) {
      const recorded = await verbs.findRecorded(
        context,
        group.map(({ key, run }) => ({ resource: resourceOf(key), runId: run.metadata.uid, at: timeOfRun(run) })),
      )
      for (const { key, run, found, gone } of group) {
        const entries = found.entries.filter(({ type }) => !recorded.has(recordedKey(run.metadata.uid, type)))
        const { uid } = run.metadata
        if (entries.length === 0 || isExplained(uid) || reported.has(uid) || left.has(uid)) continue
        // It has changed meanwhile: what is newer must not be replaced.
        if (gone === null && sources.getRun(run.sourceUid!, uid) !== run) keys.add(key)
        else if (isLeftToExplain(key, found, run, gone)) left.add(uid)
        else report(key, { ...found, entries })
      }
    }
  }

  function isLeftToExplain(key: string, { source }: RunReport, run: SourceRun, gone: GoneRun | null): boolean {
    if (run.outcome !== 'Failed' || gone !== null || sources.podsOf(run.metadata).length === 0) return false
    return explainLater(keyOf({ namespace: splitKey(key).namespace, name: source }), run)
  }

  async function stepKeys(): Promise<void> {
    const gone = groupBySource(sources.goneRuns())
    const chosen: string[] = []
    const found: Compared[] = []
    for (const key of keys) {
      if (found.length >= RUNS_A_STEP) break
      keys.delete(key)
      chosen.push(key)
      const source = sourceOf(key)
      if (source !== null) found.push(...runsOf(key, source, gone))
    }
    try {
      await compare(found)
    } catch (error) {
      for (const key of chosen) keys.add(key)
      throw error
    }
  }

  async function stepAll(after: number): Promise<void> {
    if (page.length === 0) page = await verbs.listFollowed(context.database, cluster, after)
    const gone = groupBySource(sources.goneRuns())
    const found: Compared[] = []
    let count = 0
    for (const { resource, source: known, openJobRuns } of page) {
      if (found.length >= RUNS_A_STEP) break
      count += 1
      const key = keyOf(resource)
      const source = sourceOf(key, known)
      noteOpen(key, source, openJobRuns)
      if (source !== null) found.push(...runsOf(key, source, gone))
    }
    await compare(found)
    cursor = count === 0 ? null : page[count - 1]!.key
    page = page.slice(count)
  }

  return {
    add(key) {
      keys.add(key)
    },
    addAll() {
      cursor = 0
      page = []
    },
    noteOpen: (key, source, runId) => noteOpen(key, source, [runId]),
    noteReported(runId) {
      if (isBusy) reported.add(runId)
    },
    hasWork: () => !isDone() && isReady(),
    async step() {
      if (isDone() || !isReady()) return false
      isBusy = true
      try {
        if (keys.size > 0) await stepKeys()
        else if (cursor !== null) await stepAll(cursor)
      } finally {
        isBusy = false
      }
      if (isDone()) {
        for (const resolve of waiters) resolve()
        waiters = []
      }
      return true
    },
    whenDone() {
      return isDone() ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))
    },
    async closeGone(isConfirmed) {
      const waiting: Resource[] = []
      if (open.size === 0) return waiting
      const gone = new Set<string>()
      for (const { source, run, isListed } of sources.goneRuns())
        if (!isOfFormer(sources, source, run) && (!isListed || hasEnded(run))) gone.add(run.metadata.uid)
      for (const [key, { resource, source, runIds }] of open) {
        if (!sources.isListed(resource.namespace) || !isConfirmed(resource.namespace)) continue
        const uid = source === null ? undefined : sources.getSource(source)?.metadata.uid
        const isThere = (id: string) => gone.has(id) || (uid !== undefined && sources.getRun(uid, id) !== undefined)
        const looked = [...runIds]
        const lost = looked.filter((id) => !isThere(id))
        if (lost.length > 0 && !(await abandon(key, resource, lost))) {
          waiting.push(resource)
          continue
        }
        // Others may have come meanwhile.
        for (const id of looked) runIds.delete(id)
        if (runIds.size === 0) open.delete(key)
      }
      return waiting
    },
  }
}

/**
 * Whether it belongs to an earlier source of this name. It reports nothing: a Job belongs to a CronJob by its uid. A source that is deleted
 * has its runs until another one has its name.
 */
export function isOfFormer(
  sources: Pick<SourceWatch, 'getSource'>,
  source: string,
  { sourceUid }: Pick<SourceRun, 'sourceUid'>,
): boolean {
  const uid = sources.getSource(source)?.metadata.uid
  return uid !== undefined && uid !== sourceUid
}

/** What is recorded is asked by the run: several checks may follow its source, and are asked about one after the other. */
function withoutRepeats(all: readonly Compared[]): readonly Compared[][] {
  const groups: { readonly runs: Set<string>; readonly members: Compared[] }[] = []
  for (const one of all) {
    const { uid } = one.run.metadata
    const group = groups.find(({ runs }) => !runs.has(uid))
    if (group === undefined) groups.push({ runs: new Set([uid]), members: [one] })
    else {
      group.runs.add(uid)
      group.members.push(one)
    }
  }
  return groups.map(({ members }) => members)
}

function groupBySource(runs: Iterable<GoneRun>): ReadonlyMap<string, readonly GoneRun[]> {
  const groups = new Map<string, GoneRun[]>()
  for (const run of runs) {
    const others = groups.get(run.source)
    if (others === undefined) groups.set(run.source, [run])
    else others.push(run)
  }
  return groups
}
