/**
 * Alertmanagers, by version 2 of their API. An alert fires until its end, which has to be moved on again and again, and a restart forgets all
 * alerts. So the table `alerts` stores them: the sender of an event writes the alert and posts it at once, and the keeper (keep-alerts.ts)
 * repeats it, also after a failed delivery.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Outcome, Send } from '../../../delivery/outcome.ts'
import type { OpenChannel } from '../../../domain/channel.ts'
import type { Instant } from '../../../domain/check.ts'
import { AppError } from '../../../domain/errors.ts'
import type { NotifiedCheck } from '../../../domain/event.ts'
import { leaseUntil, type PostedAlert, raiseAlert, resolveAlert, savePosted } from '../../../store/outbox/alerts.ts'
import { linkForPeople, linkToAcknowledge, type SenderContext } from '../kind.ts'
import { buildAlert, buildTestAlert, fire, type PostableAlert, resolve } from './alert.ts'
import type { AlertmanagerSettings } from './config.ts'
import { postToPeers, repeatDelayMs } from './peers.ts'

type Channel = OpenChannel<AlertmanagerSettings>

/** How long the sender waits for the other peers once one has accepted. The keeper posts to them again. */
const OTHERS_MS = 500

export function createAlertmanagerSender(
  context: Pick<SenderContext, 'client' | 'clock' | 'links' | 'database'>,
): Send<AlertmanagerSettings> {
  const { clock, links, database } = context

  async function fireAlert(channel: Channel, event: NotifiedCheck, checkKey: number, signal: AbortSignal) {
    const now = clock.now()
    const lease = { channelId: channel.id, checkKey, until: leaseUntil(now) }
    const alert = buildAlert(event, channel.settings.labels, linkToAcknowledge(links, event))
    const { isNewest, before } = await raiseAlert(database, lease, alert)
    if (!isNewest) return nothingToPost('a later alert of the check has replaced it')
    const link = linkForPeople(links, event.check.id)
    const isReplacing = before !== null && !isDeepStrictEqual(before.labels, alert.labels)
    const ends = isReplacing ? [resolve(before, before.resolvedAt ?? now, link)] : []
    const posted = { ...alert, checkKey, resolvedAt: null }
    return post(channel, [...ends, fire(alert, now, link)], posted, lease.until, signal)
  }

  async function endAlert(channel: Channel, event: NotifiedCheck, checkKey: number, signal: AbortSignal) {
    const now = clock.now()
    const lease = { channelId: channel.id, checkKey, until: leaseUntil(now) }
    const alert = await resolveAlert(database, lease, event.at, now)
    if (alert === null) return nothingToPost('no alert of the check was firing')
    const resolvedAt = alert.resolvedAt ?? now
    const end = resolve(alert, resolvedAt, linkForPeople(links, event.check.id))
    const posted = { ...alert, checkKey, resolvedAt }
    return post(channel, [end], posted, lease.until, signal)
  }

  async function post(
    channel: Channel,
    alerts: readonly PostableAlert[],
    posted: Omit<PostedAlert, 'nextAt'>,
    until: Instant,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const result = await postToPeers(context, channel, alerts, signal, OTHERS_MS)
    const nextAt = clock.now() + repeatDelayMs(result, posted.resolvedAt !== null)
    await savePosted(database, channel.id, [{ ...posted, nextAt }], until)
    return result.outcome
  }

  return async ({ channel, event, checkKey }, signal) => {
    try {
      switch (event.type) {
        case 'channel.test': {
          const alert = buildTestAlert(event, channel.settings.labels, clock.now())
          return (await postToPeers(context, channel, [alert], signal, OTHERS_MS)).outcome
        }
        case 'check.down':
          return await fireAlert(channel, event, checkKey!, signal)
        case 'check.up':
        case 'check.paused':
          return await endAlert(channel, event, checkKey!, signal)
        default:
          return nothingToPost(`${event.type} is not sent to an Alertmanager`)
      }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
      return { kind: 'retry', status: null, error: 'the database did not respond; the delivery is repeated' }
    }
  }
}

function nothingToPost(note: string): Outcome {
  return { kind: 'delivered', status: null, note }
}
