/** Whether the operator monitors a CronJob, and why (docs/use/cronjobs.md). Pure. */

import type { CronJobSettings } from '../../domain/cron-job-settings.ts'
import { WATCH_LABEL } from '../names.ts'

type Labels = Readonly<Record<string, string>> | undefined

export interface Decision {
  /** Null: not known yet, so nothing is created and nothing is deleted. */
  readonly isWatched: boolean | null
  readonly because:
    | 'label of the CronJob'
    | 'label of the Namespace'
    | 'WATCH_CRONJOBS'
    | 'no label'
    | 'Namespace unknown'
}

/**
 * The CronJob's own label decides first. `namespaceLabel`: the value of the label on its Namespace; null: there is
 * none; undefined: not known, as without the right to read it. A value other than `true` and `false` counts as no
 * label.
 */
export function decide(
  watch: Exclude<CronJobSettings['watch'], 'none'>,
  labels: Labels,
  namespaceLabel: string | null | undefined,
): Decision {
  const own = labels?.[WATCH_LABEL]
  if (own === 'true' || own === 'false') return { isWatched: own === 'true', because: 'label of the CronJob' }
  if (watch === 'all') return { isWatched: true, because: 'WATCH_CRONJOBS' }
  if (namespaceLabel === undefined) return { isWatched: null, because: 'Namespace unknown' }
  if (namespaceLabel === 'true') return { isWatched: true, because: 'label of the Namespace' }
  return { isWatched: false, because: 'no label' }
}
