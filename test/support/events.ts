/** Events on their way out, as tests need them; each builder takes overrides. */

import { type Digest, planDigest } from '../../src/domain/digest.ts'
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
    flips: null,
    gap: null,
    ...facts,
  },
  check: {
    id: '0197a000-0000-7000-8000-000000000002',
    name: 'Nightly backup',
    slug: 'nightly-backup',
    tags: [],
    labels: {},
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

const numbered = (kind: string, number: number) => `0197a000-0000-7000-${kind}-${String(number).padStart(12, '0')}`

/** One for each check, in order of time: the first is of `Job 1`. */
export const manyFlipEvents = (count: number, changesOf: (number: number) => Changes = () => ({})): NotifiedCheck[] =>
  Array.from({ length: count }, (_, index) => {
    const { check, ...changes } = changesOf(index + 1)
    const id = numbered('9000', index + 1)
    return aFlipEvent({
      id: numbered('8000', index + 1),
      ...changes,
      check: { id, name: `Job ${index + 1}`, ...check },
    })
  })

/** The digest of these events, as the outbox makes it. */
export function aDigest(events: readonly NotifiedCheck[], changes: Partial<Digest> = {}): Digest {
  return {
    id: '0197a000-0000-7000-8000-0000000d19e5',
    at: Date.UTC(2026, 10, 21, 3, 0, 1),
    events: events.length,
    ...planDigest(events),
    ...changes,
  }
}
