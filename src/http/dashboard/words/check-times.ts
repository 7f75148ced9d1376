/** Times on the pages of a check. */

import type { CheckRecord } from '../../../checks/find-checks.ts'
import type { Instant } from '../../../domain/check.ts'
import { type Html, html } from '../html.ts'
import { clockOf } from './check-words.ts'
import { ago } from './words.ts'

export type When = (at: Instant) => Html

/** `21 Nov, 02:05 CET, 2 days ago`, in the zone of the check's schedule: on a phone nothing shows on hover. */
export function whenOf({ spec }: Pick<CheckRecord, 'spec'>, now: Instant): When {
  const clock = clockOf(spec.timeZone ?? 'UTC', now)
  return (at) => html`<span class="clock-time">${clock(at)} <small class="muted">${ago(at, now)}</small></span>`
}
