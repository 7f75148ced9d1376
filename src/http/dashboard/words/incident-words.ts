/** Counts below a threshold, reminders and pauses in words. */

import type { CheckRecord } from '../../../checks/find-checks.ts'
import { acknowledgementAt, type Instant, type Pause } from '../../../domain/check.ts'
import type { Doer } from '../../../domain/doer.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import { reminderDueAt } from '../../../domain/reminders.ts'
import { type ClockWords, everyWords, inWords } from './time-words.ts'

type Judged = Pick<CheckRecord, 'state' | 'spec'>

/** `2 of 3 failures`, `1 of 2 misses`, or both. Null: nothing is counted, or the check is down or paused. */
export function countWords({ state, spec }: Judged): string | null {
  if (state.status === 'down' || state.status === 'paused') return null
  const counts = [
    [state.consecutiveFailures, spec.failuresBeforeDown, 'failures'],
    [state.consecutiveMisses, spec.missesBeforeDown, 'misses'],
  ] as const
  const words = counts.flatMap(([count, most, what]) => (count === 0 ? [] : [`${count} of ${most} ${what}`]))
  return words.length === 0 ? null : words.join(' and ')
}

/** Null as above. */
export function countSentence(check: Judged): string | null {
  const words = countWords(check)
  return words === null ? null : `${words} in a row: the check is not down yet.`
}

/** `3 failures or 2 misses in a row`. Null: the first of either takes it down. */
export function thresholdWords({ failuresBeforeDown, missesBeforeDown }: CheckRecord['spec']): string | null {
  if (failuresBeforeDown === 1 && missesBeforeDown === 1) return null
  const count = (many: number, one: string, more: string) => (many === 1 ? `one ${one}` : `${many} ${more}`)
  const failures = count(failuresBeforeDown, 'failure', 'failures')
  return `${failures} or ${count(missesBeforeDown, 'miss', 'misses')} in a row`
}

/** `every day and at each further run`. Null: there are none. */
export function reminderWords({ remindEverySeconds, remindOnEachRun }: CheckRecord['spec']): string | null {
  const every = remindEverySeconds === null ? [] : [everyWords(remindEverySeconds).toLowerCase()]
  const words = [...every, ...(remindOnEachRun ? ['at each further run'] : [])]
  return words.length === 0 ? null : words.join(' and ')
}

/** Null: the check is not down, and none was sent or is due. */
export function reminderSentence(
  { state, spec: { remindEverySeconds } }: Judged,
  { now, clock }: { readonly now: Instant; readonly clock: ClockWords },
): string | null {
  const remindEveryMs = remindEverySeconds === null ? null : remindEverySeconds * 1_000
  const isQuiet = acknowledgementAt(state, now) !== null
  const dueAt = isQuiet ? null : reminderDueAt({ remindEveryMs }, state)
  const { reminders } = state
  const sent = reminders === 0 ? [] : [reminders === 1 ? 'One reminder was sent.' : `${reminders} reminders were sent.`]
  const due = dueAt === null ? [] : [`The next reminder is due at ${clock(dueAt)} (${inWords(dueAt, now)}).`]
  return sent.length + due.length === 0 ? null : [...sent, ...due].join(' ')
}

/** `by ada@example.com until 03:12 UTC`. */
export function pauseWords({ by, until }: Pause, clock: ClockWords): string {
  return `by ${doerWords(by)}${until === null ? '' : ` until ${clock(until)}`}`
}

/** Why, as the person who paused the check said, after a colon; empty: nothing was said. */
export const commentWords = ({ comment }: Pause): string => (comment ? `: ${toOneLine(comment)}` : '')

function doerWords({ kind, name }: Doer): string {
  if (kind === 'kubernetes') return 'its HeartbeatCheck'
  const known = toOneLine(name ?? '')
  if (kind === 'api_key') return `the API key ${known}`
  return known === '' ? 'a person' : known
}
