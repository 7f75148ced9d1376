/**
 * The kinds of sources: spec.sourceRef names one of them. Another kind is one more file in kinds/ and one entry here.
 */

import { cronJob } from './kinds/cron-job.ts'
import type { SourceKind } from './source-kind.ts'

const KINDS = [cronJob] as const

export const SOURCE_KINDS = KINDS.map(({ kind }) => kind)
export const SOURCE_GROUPS = KINDS.map(({ type }) => type.group)
type KindName = (typeof SOURCE_KINDS)[number]

export const sourceKindOf = (kind: KindName): SourceKind => KINDS.find((each) => each.kind === kind)!

/** As references to an object of the kind have it. */
export function typeOf(kind: KindName): { readonly apiVersion: string; readonly kind: KindName } {
  const { group, version } = sourceKindOf(kind).type
  return { apiVersion: `${group}/${version}`, kind }
}
