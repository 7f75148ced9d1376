/** What tests of e-mail share: a channel of one recipient, and senders; a file ends with `afterAll(closeSenders)`. */

import { createEmailSender, type EmailSender } from '../../../src/channels/kinds/email/send.ts'
import type { Links, SmtpOptions } from '../../../src/channels/kinds/kind.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import type { Event } from '../../../src/domain/event.ts'
import { createAuthority } from '../../../tools/cluster/control-plane-certificates.ts'
import { aFlipEvent } from '../../support/events.ts'

export const FROM = 'Heartbeat Operator <heartbeat@example.com>'
/** With what has to be escaped in HTML. */
export const links: Links = {
  check: (id) => `https://heartbeat.example.com/api/v1/checks/${id}`,
  dashboard: (id) => `https://heartbeat.example.com/checks/${id}?a=1&b=2`,
  checks: () => 'https://heartbeat.example.com/checks?a=1&b=2',
  acknowledge: () => null,
}
export const authority = createAuthority('mail-test')

const opened = new Set<EmailSender>()

export function closeSenders(): void {
  for (const sender of opened) sender.close()
  opened.clear()
}

export function aSender(smtpUrl: string | undefined, options: Partial<SmtpOptions> = {}): EmailSender {
  const sender = createEmailSender({ smtp: { url: smtpUrl, from: FROM, ...options }, links })
  opened.add(sender)
  return sender
}

export function deliver(
  send: EmailSender,
  event: Event = aFlipEvent(),
  to: readonly string[] = ['ops@example.com'],
  signal: AbortSignal = AbortSignal.timeout(10_000),
): Promise<Outcome> {
  const channel = {
    id: '0197a000-0000-7000-8000-000000000005',
    name: 'On call',
    isTrusted: false,
    settings: { kind: 'email' as const, to },
  }
  return send({ channel, event, checkKey: 1 }, signal)
}
