/** The status of a HeartbeatSilence beside what all kinds have. Pure. */

import type { Instant } from '../../domain/check.ts'
import { toTime } from '../../kubernetes/objects.ts'
import type { DeclaredSilence } from '../../silences/declare-silence.ts'
import type { Statement } from '../resource/conditions.ts'
import type { Described } from '../resource/declared-kind.ts'
import type { ACTIVE_REASONS } from '../schema/silence.ts'

type Active = Statement<'Active', (typeof ACTIVE_REASONS)[number]>

/** `silence`: null where the service has none, for a fault of the resource. */
export function describeSilence(silence: DeclaredSilence | null): Described {
  if (silence === null) return { fields: {}, statements: [] }
  const { id, activeUntil, nextStartsAt } = silence
  const fields = {
    ...(id === null ? {} : { silenceId: id }),
    ...(activeUntil === null ? {} : { activeUntil: toTime(activeUntil) }),
    ...(nextStartsAt === null ? {} : { nextStartTime: toTime(nextStartsAt) }),
  }
  return { fields, statements: [describeActive(activeUntil, nextStartsAt)] }
}

function describeActive(activeUntil: Instant | null, nextStartsAt: Instant | null): Active {
  const type = 'Active'
  if (activeUntil !== null)
    return {
      type,
      status: 'True',
      reason: 'Active',
      message: `no channel is notified of the checks that it covers until ${toTime(activeUntil)}`,
    }
  return nextStartsAt === null
    ? { type, status: 'False', reason: 'Ended', message: 'its times are over: delete it, or give it other times' }
    : { type, status: 'False', reason: 'Planned', message: `it begins at ${toTime(nextStartsAt)}` }
}
