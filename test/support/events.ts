/** Events on their way out, as tests need them; each builder takes overrides. */

import type { ChannelTested, NotifiedCheck } from '../../src/domain/event.ts'

type Changes = Partial<Omit<NotifiedCheck, 'facts' | 'check'>> & {
  readonly facts?: Partial<NotifiedCheck['facts']>
  readonly check?: Partial<NotifiedCheck['check']>
}

/** `Nightly backup` of the project `shop` missed its ping at 3 in the morning. */
export const aFlipEvent = ({ facts, check, ...changes }: Changes = {}): NotifiedCheck => ({
  id: '0197a000-0000-7000-8000-000000000001',
  type: 'check.down',
  at: Date.UTC(2026, 10, 21, 3),
  lastPing: null,
  ...changes,
  facts: {
    reason: 'missed',
    occurred_at: '2026-11-21T03:00:00.000Z',
    detected_at: '2026-11-21T03:00:00.412Z',
    status: 'down',
    previous_status: 'up',
    down_for_seconds: null,
    gap: null,
    ...facts,
  },
  check: {
    id: '0197a000-0000-7000-8000-000000000002',
    name: 'Nightly backup',
    slug: 'nightly-backup',
    project: { id: '0197a000-0000-7000-8000-000000000003', slug: 'shop' },
    kubernetes: null,
    ...check,
  },
})

/** A failure with exit code 3, shortly before. */
export const aLastPing = (changes: Partial<NonNullable<NotifiedCheck['lastPing']>> = {}) => ({
  type: 'fail' as const,
  exit_code: 3,
  duration_ms: 1_000,
  created_at: '2026-11-21T02:59:58.123Z',
  body: 'disk full',
  ...changes,
})

export const aTestEvent: ChannelTested = {
  id: '0197a000-0000-7000-8000-000000000004',
  type: 'channel.test',
  at: Date.UTC(2026, 10, 21, 3),
}
