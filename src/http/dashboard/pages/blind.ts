/** What pages say while the Jobs of a cluster are not seen. */

import type { Instant } from '../../../domain/check.ts'
import type { BlindCluster } from '../../../service/find-blind.ts'
import { type Html, html, isolated } from '../html.ts'
import { badge } from '../icons.ts'
import { ago, exactWords } from '../words/time-words.ts'

export function blindWords({ cluster, seenAt }: BlindCluster, now: Instant): Html {
  return html`The Jobs of the cluster ${isolated(cluster)} have not been seen since ${exactWords(seenAt)}, ${ago(seenAt, now)}: deadlines of the checks that follow its CronJobs wait, and no run is called missed. Look whether a controller runs there, for HeartbeatChecks that are Stalled with the reason Forbidden, and at the log of the controllers.`
}

/** Above a list or a check; nothing while all is seen. */
export function blindBanner(blind: readonly BlindCluster[], now: Instant, what: string): Html | string {
  if (blind.length === 0) return ''
  return html`<div class="verdict verdict-bad"><p>${badge('down', what)}</p>
<ul>${blind.map((cluster) => html`<li>${blindWords(cluster, now)}</li>`)}</ul></div>`
}
