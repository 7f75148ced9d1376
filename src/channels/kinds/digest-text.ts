/** The words of a digest, for the kinds of channels that send one. Plain text without mark-up, as of a single event (event-text.ts). */

import { type Digest, subtractCounts, type TypeCount, totalOf } from '../../domain/digest.ts'
import type { NotifiedType } from '../../domain/event.ts'
import { describeEvent, type EventText, TONES, type Tone } from './event-text.ts'
import { type Links, linkForPeople } from './kind.ts'

export interface DigestText {
  readonly tone: Tone
  /** `57 checks: 50 down, 7 up again` */
  readonly headline: string
  readonly checks: readonly CheckLine[]
  /** What follows when only the first `shown` of `checks` are listed; null when nothing is left out. */
  readonly rest: (shown: number) => string | null
  /** That some checks have several events; null when none has. */
  readonly note: string | null
  /** Where a person finds all checks. */
  readonly link: string
}

/** One check by name, status and reason. */
export interface CheckLine extends Pick<EventText, 'tone' | 'name' | 'change' | 'reason'> {
  readonly link: string
}

const WORDS = {
  'check.down': 'down',
  'check.flapping': 'flapping',
  'check.warned': 'with a warning',
  'check.late': 'late',
  'check.unknown': 'unknown',
  'check.paused': 'paused',
  'check.resumed': 'watched again',
  'check.acknowledged': 'acknowledged',
  'check.up': 'up again',
} as const satisfies Record<NotifiedType, string>

export function describeDigest(digest: Digest, links: Links): DigestText {
  const { named, counts, events } = digest
  const total = totalOf(counts)
  return {
    // The worst is named first.
    tone: named.length === 0 ? 'info' : TONES[named[0]!.type],
    headline: `${total} ${total === 1 ? 'check' : 'checks'}: ${sumUp(counts)}`,
    checks: named.map((event) => {
      const { tone, name, change, reason } = describeEvent(event)
      return { tone, name, change, reason, link: linkForPeople(links, event.check.id) }
    }),
    rest(shown) {
      const left = subtractCounts(counts, named.slice(0, shown))
      return left.length === 0 ? null : `And ${totalOf(left)} more: ${sumUp(left)}`
    },
    note: events > total ? `${events} events in all: of each check its newest counts` : null,
    link: links.checks(),
  }
}

/** `50 down, 7 up again` */
function sumUp(counts: readonly TypeCount[]): string {
  return counts.map(({ type, checks }) => `${checks} ${WORDS[type]}`).join(', ')
}
