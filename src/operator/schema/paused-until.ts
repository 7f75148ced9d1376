/** The annotation that pauses a check until a time (docs/use/checks.md). */

import { z } from 'zod'
import type { Instant } from '../../domain/check.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import { PAUSED_UNTIL_ANNOTATION } from '../names.ts'

const Time = z.iso.datetime({ offset: true })

export interface PausedUntil {
  /** Null: the annotation is not set. `kept`: it is no time, so the pause of the check stays as it is. */
  readonly pausedUntil: Instant | 'kept' | null
  /** A Warning about a value that is no time, once for the same value; null: it is one. */
  readonly warning: { readonly reason: 'InvalidPausedUntil'; readonly note: string; readonly id: string } | null
}

export function readPausedUntil({ metadata: { annotations } }: KubernetesObject): PausedUntil {
  const value = annotations?.[PAUSED_UNTIL_ANNOTATION]
  if (value === undefined) return { pausedUntil: null, warning: null }
  if (Time.safeParse(value).success) return { pausedUntil: Date.parse(value), warning: null }
  const note = `the annotation ${PAUSED_UNTIL_ANNOTATION} must be an ISO 8601 time with its offset, such as 2030-01-31T12:00:00Z, not ${JSON.stringify(value)}; the pause of the check stays as it is`
  return { pausedUntil: 'kept', warning: { reason: 'InvalidPausedUntil', note, id: `InvalidPausedUntil ${note}` } }
}
