/** Badges: the status of a check, or of several together, for pages of others (design, section 3.7). */

import { type ShownStatus, TAGS } from './check.ts'

/** What a badge is about: a check, the checks with a tag, or all of the project. */
export type BadgeSubject =
  | { readonly kind: 'check'; readonly slug: string }
  | { readonly kind: 'tag'; readonly tag: string }
  | { readonly kind: 'project' }

export type StatusCounts = Readonly<Record<ShownStatus, number>>

const TAG = new RegExp(`^${TAGS.shape}$`)
export const isTag = (text: string) => TAG.test(text)

/**
 * The status that stands for all of them: the worst that needs attention, else `up`. Checks that are new or paused say nothing, unless there are no
 * others; no checks at all are `new`. `isLateUp`: late counts as up.
 */
export function statusOfAll(counts: StatusCounts, isLateUp: boolean): ShownStatus {
  if (counts.down > 0) return 'down'
  if (counts.late > 0) return isLateUp ? 'up' : 'late'
  if (counts.up > 0) return 'up'
  return counts.paused > 0 && counts.new === 0 ? 'paused' : 'new'
}
