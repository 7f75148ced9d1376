/** The kinds of sources, by the `kind` of spec.sourceRef. Another kind is one more file in kinds/ and one line here. */

import { cronJob } from './kinds/cron-job.ts'
import type { SourceKind } from './source-kind.ts'

type KindName = SourceKind['kind']

const KINDS: Readonly<Record<KindName, SourceKind>> = { CronJob: cronJob }

export const sourceKindOf = (kind: KindName): SourceKind => KINDS[kind]

/** As references to an object of the kind have it. */
export function typeOf(kind: KindName): { readonly apiVersion: string; readonly kind: KindName } {
  const { group, version } = KINDS[kind].type
  return { apiVersion: `${group}/${version}`, kind }
}
