/**
 * Closes open runs whose Job is gone: the Job ended or was deleted while no controller watched. Its end is unknown, so
 * nothing is recorded.
 */

import { AppError } from '../../domain/errors.ts'
import { keyOf, splitKey } from '../../kubernetes/objects.ts'
import type { Log } from '../../runtime/log.ts'
import type { Service } from '../service.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { hasEnded, type SourceRun } from '../sources/source-kind.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { CheckWatch } from '../watch-checks.ts'

export interface OpenRuns {
  /**
   * The Job of this run may be gone, or belong to an earlier source of the name.
   *
   * @param key of a HeartbeatCheck
   * @param source its key
   */
  note(key: string, source: string, runId: string): void
  /**
   * Closes the open runs whose Job is gone; the first call looks at all open runs of the cluster. `isConfirmed`:
   * whether the caches hold all of the namespace; runs of other namespaces wait. Returns the keys of the checks that
   * the next call tries again: a row is locked elsewhere or cannot be read. Rejects when the database does not serve.
   */
  closeGone(isConfirmed: (namespace: string) => boolean): Promise<readonly string[]>
}

export interface OpenRunsOptions {
  readonly service: Pick<Service, 'listFollowed' | 'abandonRuns'>
  readonly cluster: string
  readonly log: Log
  readonly sources: Pick<SourceWatch, 'getSource' | 'getRun' | 'goneRuns' | 'isListed'>
  readonly checks: Pick<CheckWatch, 'get'>
  /** Whether news of this run are not recorded yet: they may open the run. */
  readonly isWaiting: (key: string, runId: string) => boolean
}

export function createOpenRuns({ service, cluster, log, sources, checks, isWaiting }: OpenRunsOptions): OpenRuns {
  /** By the key of the HeartbeatCheck. A source that is not known has no runs. */
  const open = new Map<string, { source: string | null; readonly runIds: Set<string> }>()
  /** Keys of those in `open` whose error is logged. */
  const failed = new Set<string>()
  /** The last check of the cluster that was looked at; null: all were. */
  let cursor: number | null = 0

  function note(key: string, source: string | null, runIds: readonly string[]): void {
    const { runIds: known = new Set<string>() } = open.get(key) ?? {}
    for (const id of runIds) known.add(id)
    if (known.size > 0) open.set(key, { source, runIds: known })
  }

  async function noteAll(): Promise<void> {
    while (cursor !== null) {
      const page = await service.listFollowed(cluster, cursor)
      for (const { resource, source, openJobRuns } of page) {
        const key = keyOf(resource)
        const object = checks.get(key)
        const known = source === null ? null : keyOf({ namespace: resource.namespace, name: source })
        note(key, object === undefined ? known : sourceKeyOf(object), openJobRuns)
      }
      cursor = page.at(-1)?.key ?? null
    }
  }

  /** Returns false when the runs are to be closed later. */
  async function close(key: string, runIds: readonly string[]): Promise<boolean> {
    const { namespace, name } = splitKey(key)
    try {
      const outcome = await service.abandonRuns({ cluster, namespace, name }, runIds)
      failed.delete(key)
      return outcome === 'closed'
    } catch (error) {
      if (error instanceof AppError) throw error
      if (!failed.has(key))
        log.error({ error, namespace, name }, 'runs whose Jobs are gone could not be closed; it is tried again')
      failed.add(key)
      return false
    }
  }

  return {
    note: (key, source, runId) => note(key, source, [runId]),
    async closeGone(isConfirmed) {
      await noteAll()
      const left: string[] = []
      if (open.size === 0) return left
      /** Runs that are gone, and have a record of their own. */
      const recorded = new Set<string>()
      for (const { source, run, isListed } of sources.goneRuns())
        if (!isOfFormer(sources, source, run) && (!isListed || hasEnded(run))) recorded.add(run.metadata.uid)
      for (const [key, { source, runIds }] of open) {
        const { namespace } = splitKey(key)
        if (!sources.isListed(namespace) || !isConfirmed(namespace)) continue
        const uid = source === null ? undefined : sources.getSource(source)?.metadata.uid
        const isThere = (id: string) => recorded.has(id) || (uid !== undefined && sources.getRun(uid, id) !== undefined)
        const looked = [...runIds].filter((id) => !isWaiting(key, id))
        const lost = looked.filter((id) => !isThere(id))
        if (lost.length > 0 && !(await close(key, lost))) {
          left.push(key)
          continue
        }
        // Others may have come meanwhile.
        for (const id of looked) runIds.delete(id)
        if (runIds.size === 0) open.delete(key)
      }
      return left
    },
  }
}

/**
 * Whether the run belongs to an earlier source of this name. Such a run reports nothing: a Job belongs to a CronJob by
 * its uid. A source that is deleted has its runs until another one has its name.
 */
export function isOfFormer(
  sources: Pick<SourceWatch, 'getSource'>,
  source: string,
  { sourceUid }: Pick<SourceRun, 'sourceUid'>,
): boolean {
  const uid = sources.getSource(source)?.metadata.uid
  return uid !== undefined && uid !== sourceUid
}
