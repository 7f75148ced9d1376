/** What a plan did, for the audit log. */

import type { Act } from '../../domain/audit.ts'
import type { CheckEvent } from '../../domain/check-event.ts'
import type { StoredCheck } from '../../store/checks/checks.ts'
import { TURNED } from '../pause-resume.ts'
import { actOn, actsOfChange } from '../with-locked-check.ts'
import type { Change, Creation } from './plan.ts'

export function actOfCreation(check: Pick<StoredCheck, 'id' | 'name' | 'projectId'>, { kind }: Creation): Act {
  return actOn(check, 'check.created', { managed_by: 'kubernetes', ...(kind === 'revive' ? { revived: true } : {}) })
}

export function actsOfDeclaration(check: StoredCheck, { check: before, events }: Change): Act[] {
  return [...actsOfChange(before, check), ...actsOfEvents(check, events)]
}

export function actsOfEvents(check: StoredCheck, events: readonly CheckEvent[]): Act[] {
  return events.flatMap(({ kind }) => (kind === 'pause' || kind === 'resume' ? [actOn(check, TURNED[kind])] : []))
}
