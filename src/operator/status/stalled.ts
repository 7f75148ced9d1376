/** What a person has to correct before a HeartbeatCheck can be brought in line: a retry alone does not help. */

import { AppError } from '../../domain/errors.ts'
import { describeInvalid } from '../heartbeat-check.ts'
import { StalledResource } from '../resource/stalled.ts'
import type { StalledReason } from '../schema/reasons.ts'

export class Stalled extends StalledResource<StalledReason> {}

/** For what may be unknown: none where a person has to correct something first. */
export function noneIfStalled(error: unknown): never[] {
  if (error instanceof Stalled) return []
  throw error
}

/** Null for an error that a retry corrects. */
export function toStalled(error: unknown): Stalled | null {
  if (!(error instanceof AppError)) return null
  if (error.field === 'adoptId' && error.code !== 'unavailable') return new Stalled('AdoptionRefused', error.message)
  if (error.field === 'retained') return new Stalled('RetainedCheckExists', error.message)
  switch (error.code) {
    case 'invalid_request':
      return new Stalled('InvalidSpec', describeInvalid(error))
    case 'forbidden':
      return new Stalled('ProjectNotAllowed', error.message)
    case 'not_found':
      return new Stalled('ProjectNotFound', error.message)
    default:
      return null
  }
}
