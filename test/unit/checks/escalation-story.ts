/** A check and its channels, each with its `after_seconds` in milliseconds: what each of them gets. */

import { decideChanges } from '../../../src/checks/change.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import type { Circumstances } from '../../../src/domain/circumstances.ts'
import type { LockedCheck } from '../../../src/store/checks/states.ts'
import { aSpec, aState, DAY, HOUR, MINUTE, NOON, UNREAD_SPEC } from '../../support/builders.ts'

/** What a channel gets: an event that is sent, or a row that says why not. */
export interface Got {
  readonly type: string
  readonly at: number
  readonly isEscalated: boolean
  readonly reminder: number | null
  /** Null: it is sent. */
  readonly notSent: string | null
}

export type Did = 'success' | 'fail' | 'warn' | 'pause' | 'resume'
const BY = { kind: 'user', id: 'u', name: 'Ada' } as const

/** Nothing is missed: the story alone decides. The check is up at NOON. */
export function createStory(afters: readonly number[], overrides: Parameters<typeof aSpec>[0] = {}) {
  const spec = aSpec({ schedule: { kind: 'period', periodMs: 1_000 * DAY }, ...overrides })
  const begin = aState({ expectedAt: NOON + 1_000 * DAY, dueAt: NOON + 1_000 * DAY + HOUR })
  let check: LockedCheck = { key: 1, ...UNREAD_SPEC, spec, state: begin, stampedAt: NOON, wakeAt: null }
  let now = NOON
  let silence = null as Circumstances['silence']
  const channels = [...afters]
  const got = new Map<number, Got[]>()

  const apply = (event: CheckEvent) => {
    if (silence !== null && now >= silence.until) silence = null
    const escalations = [...new Set(channels)].filter((after) => after > 0).sort((a, b) => a - b)
    const waking = event.kind === 'deadline' ? { isLateWanted: false } : ('first' as const)
    const around = new Map([[1, { silence, dependencies: [], escalations }]])
    const decided = decideChanges([check], [{ key: 1, event, at: now }], waking, around)
    for (const decision of decided.decisions) if (decision.kind === 'failed') throw decision.error
    check = decided.after[0]!
    for (const { type, data, suppressed, reach } of decided.changeSet.events)
      for (const after of channels) {
        const notSent = after > reach.upTo ? 'escalation' : (suppressed?.reason ?? null)
        const { reminder = null, escalated: isEscalated = false } = data
        if (isEscalated && reach.upTo <= reach.above) throw new Error('an event is for no channel')
        if (after <= reach.above || after > reach.listed) continue
        // As `insertEvents`: what was not sent before is not taken over either.
        if (type === 'check.acknowledged' && after > reach.upTo) continue
        got.set(after, [...(got.get(after) ?? []), { type, at: now, isEscalated, reminder, notSent }])
      }
  }
  const evaluate = () => apply({ kind: 'deadline', gaps: [] })
  return {
    apply,
    evaluate,
    do(...kinds: Did[]) {
      for (const kind of kinds)
        apply(kind === 'pause' || kind === 'resume' ? { kind } : { kind, runId: null, durationMs: null })
    },
    acknowledge: (forMs: number | null) =>
      apply({
        kind: 'acknowledge',
        acknowledged: { by: BY, at: now, until: forMs === null ? null : now + forMs, comment: null },
      }),
    unacknowledge: () => apply({ kind: 'acknowledge', acknowledged: null }),
    silence(forMs: number | null) {
      silence = forMs === null ? null : { id: 's', from: now, until: now + forMs }
    },
    /** Its checks are woken. */
    addChannel(after: number) {
      channels.push(after)
      evaluate()
    },
    removeChannel: (after: number) => void channels.splice(channels.indexOf(after), 1),
    /** Time passes, with each evaluation that is due; `isAway`: we see nothing of it. */
    pass(ms: number, isAway = false) {
      const until = now + ms
      let looks = 0
      for (let next = check.wakeAt; !isAway && next !== null && next <= until; next = check.wakeAt) {
        now = Math.max(now, next)
        evaluate()
        looks += 1
        if (looks > 10 + ms / MINUTE) throw new Error('it is evaluated without end')
      }
      now = until
      if (isAway) evaluate()
    },
    now: () => now,
    state: () => check.state,
    wakeAt: () => check.wakeAt,
    isSilenced: () => silence !== null && now < silence.until,
    got: (after: number): readonly Got[] => got.get(after) ?? [],
    /** In words, such as `down escalated` or `up not sent: escalation`, since the last call. */
    take(after: number) {
      const words = (got.get(after) ?? []).map(({ type, isEscalated, reminder, notSent }) =>
        [
          type.slice(6),
          ...(isEscalated ? ['escalated'] : []),
          ...(reminder === null ? [] : [`#${reminder}`]),
          ...(notSent === null ? [] : [`not sent: ${notSent}`]),
        ].join(' '),
      )
      got.delete(after)
      return words
    },
  }
}
