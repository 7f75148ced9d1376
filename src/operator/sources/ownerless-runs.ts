/**
 * Jobs that a person has a tool make from a CronJob, and that name no owner: such a Job belongs to the CronJob whose
 * name is in front of its own. Kubernetes Dashboard is such a tool. Pure, apart from the Jobs that are remembered.
 */

import { keyOf } from '../../kubernetes/objects.ts'
import type { Change } from '../../kubernetes/reflector.ts'
import type { Source, SourceRun } from './source-kind.ts'

export interface OwnerlessRuns {
  /** Adds the source to a run that belongs to one by its name. */
  own(change: Change<SourceRun>): Change<SourceRun>
  /** The changes of the runs that belong to another source, now that this one is known. */
  review(source: Source): Change<SourceRun>[]
}

export interface KnownSources {
  /** @param key namespace/name */
  get(key: string): Source | undefined
  values(): Iterable<Source>
}

/** Tools put this between the name of the CronJob and an end of their own. */
const MARK = '-manual-'
/** Tools leave so many characters of a longer name, or one more. */
const SHORTENED = 41

export function createOwnerlessRuns(sources: KnownSources): OwnerlessRuns {
  /** By uid. */
  const known = new Map<string, SourceRun>()

  function sourceUidOf(run: SourceRun): string | null {
    const source = findByName(run.metadata, sources)
    // A CronJob that was created after the Job is not the one that it was made from.
    return source !== null && source.createdAt <= run.createdAt ? source.metadata.uid : null
  }

  return {
    own({ before, after, ...more }) {
      const former = before === undefined ? undefined : (known.get(before.metadata.uid) ?? before)
      if (before !== undefined) known.delete(before.metadata.uid)
      if (after === undefined || !after.isOwnerless) return { ...more, before: former, after }
      const isSame = former?.isOwnerless === true && former.metadata.uid === after.metadata.uid
      const owned = { ...after, sourceUid: (isSame ? former.sourceUid : null) ?? sourceUidOf(after) }
      known.set(after.metadata.uid, owned)
      return { ...more, before: former, after: owned }
    },
    review({ metadata: { namespace }, createdAt }) {
      const changes: Change<SourceRun>[] = []
      for (const before of known.values()) {
        // The runs of a source that was deleted stay with it when a source of its name is created.
        if (before.metadata.namespace !== namespace || createdAt > before.createdAt) continue
        const after = { ...before, sourceUid: sourceUidOf(before) }
        if (after.sourceUid === before.sourceUid) continue
        known.set(after.metadata.uid, after)
        changes.push({ before, after, isListed: true })
      }
      return changes
    },
  }
}

/**
 * The source with the longest name, whose runs may have the given name; null: there is none, or it may be one of
 * several.
 */
function findByName({ namespace, name }: SourceRun['metadata'], sources: KnownSources): Source | null {
  const marked = name.lastIndexOf(MARK)
  for (let end = name.lastIndexOf('-'); end > 0 && end >= marked; end = name.lastIndexOf('-', end - 1)) {
    const source = sources.get(keyOf({ namespace, name: name.slice(0, end) }))
    if (source !== undefined) return source
  }
  if (marked < SHORTENED) return null
  const shortened = name.slice(0, marked)
  const found = [...sources.values()].filter(
    ({ metadata }) => metadata.namespace === namespace && metadata.name.startsWith(shortened),
  )
  return found.length === 1 ? found[0]! : null
}
