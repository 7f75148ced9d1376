/** Finds channels that cannot work. */

import { isIP } from 'node:net'
import type { ChannelKind, ChannelSettings } from '../domain/channel.ts'
import { invalidField } from '../domain/errors.ts'
import { isClear } from '../runtime/clear-urls.ts'
import type { Reach } from './context.ts'
import { KINDS } from './kinds/index.ts'

/**
 * Throws AppError `invalid_request` for a URL with an address that channels may not reach. Names are judged when they
 * are used.
 */
export function assertReachable(kind: ChannelKind, settings: ChannelSettings, reach: Reach): void {
  const [first] = findUnreachable(kind, settings, reach)
  if (first !== undefined) throw invalidField(`config.${first.field}`, `cannot work: ${first.why}`)
}

/** Why nothing can be delivered to the channel at the moment, as sentences with what to do. */
export function findWarnings(kind: ChannelKind, settings: ChannelSettings, reach: Reach): string[] {
  const unreachable = findUnreachable(kind, settings, reach).map(({ why }) => why)
  if (!KINDS[kind].config.needsSmtp || reach.hasSmtp) return unreachable
  return [...unreachable, 'no e-mail can be sent: set SMTP_URL, the mail server of this installation']
}

function findUnreachable(kind: ChannelKind, settings: ChannelSettings, { findObjection }: Reach) {
  return KINDS[kind].config.urlsOf(settings).flatMap(({ url, field }) => {
    const address = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
    const why = isIP(address) === 0 ? null : findObjection(address)
    return why === null ? [] : [{ field, why }]
  })
}

/** What is sent to the channel can be read on its way: a URL of it has no TLS. */
export function isInClear(kind: ChannelKind, settings: ChannelSettings): boolean {
  return KINDS[kind].config.urlsOf(settings).some(({ url }) => isClear(url))
}
