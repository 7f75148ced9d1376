/** What a reconcile reads of the source that a HeartbeatCheck follows. */

import type { HeartbeatCheck } from '../heartbeat-check.ts'
import { sourceKeyOf } from './followers.ts'
import type { Source } from './source-kind.ts'
import type { SourceWatch } from './watch-sources.ts'

export type SourceReader = Pick<
  SourceWatch,
  'areaOf' | 'getSource' | 'runsOf' | 'isListed' | 'missingRight' | 'missingReasonRights'
>

/** Whether it is not known yet if a source of this namespace is there, and what it says. */
export function isSourceAwaited(sources: SourceReader | null | undefined, namespace: string): boolean {
  return sources != null && !sources.isListed(namespace) && sources.missingRight(namespace) === null
}

/** The source of the resource. Null: it is not there. Undefined: it cannot be read, or the resource follows none. */
export function readSource(sources: SourceReader | null, object: HeartbeatCheck): Source | null | undefined {
  const key = sourceKeyOf(object)
  const isReadable = key !== null && sources !== null && sources.missingRight(object.metadata.namespace!) === null
  return isReadable ? (sources.getSource(key) ?? null) : undefined
}
