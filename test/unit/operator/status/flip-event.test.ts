import { expect, it } from 'vitest'
import type { FlipReason } from '../../../../src/domain/check.ts'
import { toFlipEvent } from '../../../../src/operator/status/flip-event.ts'
import { NOON } from '../../../support/builders.ts'

const eventOf = (reason: FlipReason, isFlapping: boolean) =>
  toFlipEvent({ id: 'flip', at: NOON, from: 'up', to: 'down', reason, pingId: null, detail: null }, isFlapping)

it.each(['missed', 'failed', 'overran', 'recovered'] as const)(
  '%s of a check that flaps is counted in one Event, so that other Events of the resource are not dropped',
  (reason) => {
    expect(eventOf(reason, false)).toMatchObject({ id: 'flip', note: expect.stringContaining('2026-11-21T12:00:00Z') })
    expect(eventOf(reason, true)).toEqual({
      type: 'Warning',
      reason: 'Flapping',
      action: 'Monitor',
      note: 'the job goes down and up more than 10 times within 10 minutes: its changes are not notified until it stays the same for as long',
    })
  },
)

it.each(['first_success', 'paused', 'resumed', 'outage'] as const)(
  '%s of a check that flaps has its own Event',
  (reason) => {
    expect(eventOf(reason, true)).toEqual(eventOf(reason, false))
  },
)

it.each([
  ['missed', false, null, 'the job reported no completion by 2026-11-21T12:00:00Z'],
  ['missed', true, null, 'no run of the job had started by 2026-11-21T12:00:00Z'],
  [
    'missed',
    true,
    'pod backup-1-x waits: Unschedulable',
    'no run of the job had started by 2026-11-21T12:00:00Z: pod backup-1-x waits: Unschedulable',
  ],
  [
    'failed',
    true,
    'container backup failed (exit code 3)',
    'the job reported a failure at 2026-11-21T12:00:00Z: container backup failed (exit code 3)',
  ],
  ['overran', true, null, 'a run of the job had taken longer than maxRuntimeSeconds at 2026-11-21T12:00:00Z'],
  [
    'overran',
    true,
    'Job backup-1 has run for longer than 60 s (the default)',
    'a run of the job had not ended by 2026-11-21T12:00:00Z: Job backup-1 has run for longer than 60 s (the default)',
  ],
] as const)(
  '%s of a check that follows a CronJob (%s) says why, where that is known: %s',
  (reason, isFollowed, detail, note) => {
    const flip = { id: 'flip', at: NOON, from: 'up', to: 'down', reason, pingId: null, detail } as const
    expect(toFlipEvent(flip, false, isFollowed)).toMatchObject({ note })
  },
)
