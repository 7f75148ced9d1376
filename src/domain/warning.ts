/**
 * Warnings (design, section 4, "Warnings"): completions of jobs that are done, and at which a person should look in the
 * morning. Which of them are notified.
 */

import type { CheckState, Completion, Instant, StoredStatus } from './check.ts'
import type { Notice } from './event.ts'
import { WARN_AGAIN_MS } from './limits.ts'

/** Whether a failure is a warning: the check takes its exit code for one. */
export function isWarning(exitCode: number | null, warnExitCodes: readonly number[]): boolean {
  return exitCode !== null && warnExitCodes.includes(exitCode)
}

interface Completed {
  readonly kind: Completion
  /** The status that it leaves. */
  readonly to: StoredStatus
  readonly at: Instant
  /** It ended before the check was watched. */
  readonly isPast?: boolean
}

/**
 * What a completion adds. A warning is notified if the completion before it was none, and while warnings continue one
 * in 24 hours. Nothing is notified of a paused check, and of the time before a check.
 */
export function countWarning(
  { status, warnedAt }: Pick<CheckState, 'status' | 'warnedAt'>,
  { kind, to, at, isPast = false }: Completed,
): { readonly counted: Pick<CheckState, 'lastOutcome' | 'warnedAt'>; readonly warned: Notice | null } {
  if (kind !== 'warn') return { counted: { lastOutcome: kind, warnedAt: null }, warned: null }
  if (isPast || to === 'paused' || (warnedAt !== null && at - warnedAt < WARN_AGAIN_MS))
    return { counted: { lastOutcome: kind, warnedAt }, warned: null }
  const facts = { at, from: status, to, downSince: null, flips: null }
  return {
    counted: { lastOutcome: kind, warnedAt: at },
    warned: { ...facts, type: 'check.warned', reason: 'warned' },
  }
}
