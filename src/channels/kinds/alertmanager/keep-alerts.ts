/**
 * Keeps the alerts at Alertmanagers true: repeats a firing alert before its end, ends one that became false without an
 * event (check removed, moved, renamed; channel muted or changed), and repeats each end for a while, for peers that
 * were away. Every replica runs a keeper; they share the work by leases (store/outbox/alerts.ts). A slow channel delays
 * no other.
 */

import { isDeepStrictEqual } from 'node:util'
import type { OpenChannel } from '../../../domain/channel.ts'
import type { Instant } from '../../../domain/check.ts'
import type { Labels } from '../../../domain/labels.ts'
import { startTimer } from '../../../runtime/clock.ts'
import { createLimiter } from '../../../runtime/limiter.ts'
import {
  type LeasedAlert,
  leaseAlerts,
  leaseUntil,
  listChannelsWithDueAlerts,
  savePosted,
} from '../../../store/outbox/alerts.ts'
import type { ChannelRow } from '../../../store/outbox/channels.ts'
import { openChannel } from '../../open-channel.ts'
import type { Sealer } from '../../seal.ts'
import { linkForPeople, type SenderContext } from '../kind.ts'
import { ALERT_LIFE_MS, fire, reannotateAlert, relabelAlert, resolve } from './alert.ts'
import type { AlertmanagerSettings } from './config.ts'
import { postToPeers, repeatDelayMs } from './peers.ts'

type Channel = OpenChannel<AlertmanagerSettings>

export type AlertKeeper = ReturnType<typeof createAlertKeeper>

export interface AlertKeeperOptions extends Pick<SenderContext, 'client' | 'clock' | 'links' | 'database'> {
  readonly sealer: Sealer
  /** ALERTMANAGER_URL. */
  readonly installationUrls: readonly string[]
  /** A channel, or one of its peers, fails. Called once until all peers accept again. */
  readonly onProblem: (channelId: string, problem: string) => void
  /** Alerts in one batch. */
  readonly batch?: number
}

const BATCH = 500
/** Channels at the same time. Each holds a batch in memory. */
const MAX_CHANNELS = 16
const MAX_FAILING = 1_000
const POST_MS = 10_000
/**
 * The wait for the other peers once one has accepted a batch. While a peer does not respond, 100,000 alerts take ten
 * minutes: the other peers get each again before ALERT_LIFE_MS has passed.
 */
const OTHERS_MS = 3_000

export function createAlertKeeper(options: AlertKeeperOptions) {
  const { clock, links, database, sealer, installationUrls, onProblem, batch = BATCH } = options
  const inTurn = createLimiter({ atOnce: MAX_CHANNELS })
  const working = new Map<string, Promise<void>>()
  const failing = new Set<string>()
  const errors: unknown[] = []

  /** Begins the work that is due. Throws the database's error, also that of work that an earlier run has begun. */
  async function run(signal: AbortSignal): Promise<'done'> {
    const now = clock.now()
    for (const row of await listChannelsWithDueAlerts(database, now, now - ALERT_LIFE_MS)) {
      if (working.has(row.id)) continue
      const work = inTurn(() => keepChannel(row, signal))
        .catch((error) => void errors.push(error))
        .finally(() => working.delete(row.id))
      working.set(row.id, work)
    }
    if (errors.length > 0) throw errors.splice(0)[0]
    return 'done'
  }

  async function keepChannel(row: ChannelRow, signal: AbortSignal): Promise<void> {
    let channel: Channel
    try {
      channel = openChannel(row, sealer, installationUrls) as Channel
    } catch (error) {
      return report(row.id, (error as Error).message)
    }
    while (!signal.aborted && (await keepBatch(channel, signal)) === 'again');
  }

  /** `'again'`: more alerts are due, or one of these was changed while it was posted. */
  async function keepBatch(channel: Channel, signal: AbortSignal): Promise<'again' | 'done'> {
    const now = clock.now()
    const until = leaseUntil(now)
    const leased = await leaseAlerts(database, channel.id, { now, until, limit: batch })
    const changed = leased.length === 0 ? 0 : await tell(channel, leased, now, until, signal)
    return leased.length === batch || changed > 0 ? 'again' : 'done'
  }

  /**
   * Posts what is true of the alerts, and stores it. Returns how many of them another writer has changed in between.
   */
  async function tell(
    channel: Channel,
    leased: readonly LeasedAlert[],
    now: Instant,
    until: Instant,
    signal: AbortSignal,
  ): Promise<number> {
    const plans = leased.map((alert) => plan(alert, channel.settings.labels, now))
    const timeout = new AbortController()
    const stopTimer = startTimer(POST_MS, () => timeout.abort())
    // Ends first: a check may have got the labels that another one had.
    const alerts = [...plans.flatMap(({ ends }) => ends), ...plans.flatMap(({ fires }) => fires)]
    const result = await postToPeers(options, channel, alerts, AbortSignal.any([signal, timeout.signal]), OTHERS_MS)
    stopTimer()
    const { outcome } = result
    if (!signal.aborted) report(channel.id, outcome.kind === 'delivered' ? (outcome.note ?? null) : outcome.error)
    const postedAt = clock.now()
    const posted = plans.map(({ after }, index) => {
      const { labels, resolvedAt } = leased[index]!
      const nextAt = postedAt + repeatDelayMs(result, after.resolvedAt !== resolvedAt)
      // Until a peer has accepted the new labels, the alert to be ended is the one with the old labels.
      return { ...after, ...(outcome.kind === 'delivered' ? {} : { labels }), nextAt }
    })
    return savePosted(database, channel.id, posted, until)
  }

  /** What to post about an alert, and what is true afterwards. */
  function plan(alert: LeasedAlert, own: Labels, now: Instant) {
    const { resolvedAt, isTrue, check } = alert
    const link = check === null ? null : linkForPeople(links, check.id)
    // An end stays an end: if the check is down again, its event raises the alert.
    if (check === null || resolvedAt !== null || !isTrue) {
      const endsAt = resolvedAt ?? now
      return { ends: [resolve(alert, endsAt, link)], fires: [], after: { ...alert, resolvedAt: endsAt } }
    }
    const labels = relabelAlert(alert, check, own)
    const after = { ...alert, labels, annotations: reannotateAlert(alert, alert.newestText) }
    const ends = isDeepStrictEqual(labels, alert.labels) ? [] : [resolve(alert, now, link)]
    return { ends, fires: [fire(after, now, link)], after }
  }

  function report(channelId: string, problem: string | null): void {
    if (problem === null) failing.delete(channelId)
    else if (!failing.has(channelId)) {
      // Removed channels would stay.
      if (failing.size >= MAX_FAILING) failing.clear()
      failing.add(channelId)
      onProblem(channelId, problem)
    }
  }

  return {
    run,
    /** Resolves when all work has ended. Call it after the last run; the signal of that run ends its posts. */
    async stop(): Promise<void> {
      await Promise.all(working.values())
    },
  }
}
