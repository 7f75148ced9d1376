/**
 * Keeps the alerts at Alertmanagers true: repeats a firing alert before its end, ends an alert that became false without an event (check
 * removed, moved, renamed; channel muted or changed), and repeats each end for a while, for peers that were away. Every replica runs a keeper;
 * they share the work by leases (store/outbox/alerts.ts). A run starts work on each channel with due alerts and waits for a short time only.
 * Work on a slow channel continues in the background, and later runs skip the channel until it is done.
 */

import type { OpenChannel } from '../../../domain/channel.ts'
import type { Instant } from '../../../domain/check.ts'
import type { Labels } from '../../../domain/labels.ts'
import { startTimer } from '../../../runtime/clock.ts'
import {
  deleteAlerts,
  deleteChannelAlerts,
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
import { ALERT_LIFE_MS, fire, type PostableAlert, reannotateAlert, relabelAlert, resolve } from './alert.ts'
import type { AlertmanagerSettings } from './config.ts'
import { createPeers, repeatDelayMs } from './peers.ts'

type Channel = OpenChannel<AlertmanagerSettings>

export interface AlertKeeper {
  /** `'again'`: some channels had to wait for others. Throws the database's error, from this run or an earlier one. */
  run(signal: AbortSignal): Promise<'again' | 'done'>
  /** Resolves when all work has ended. Call it after the last run; the signal of that run ends its posts. */
  stop(): Promise<void>
}

export interface AlertKeeperOptions extends Pick<SenderContext, 'client' | 'clock' | 'links' | 'database'> {
  readonly sealer: Sealer
  /** ALERTMANAGER_URL. */
  readonly installationUrls: readonly string[]
  /** A channel, or one of its peers, fails. Called once until all peers accept again. */
  readonly onProblem: (channelId: string, problem: string) => void
  /** Alerts in one batch. */
  readonly batch?: number
  /** How long a run waits for the channels. */
  readonly runMs?: number
}

const BATCH = 500
/** Channels at the same time. Each holds a batch in memory. */
const MAX_CHANNELS = 16
const POST_MS = 10_000
/** Longer than a healthy channel needs. */
const RUN_MS = 1_000

/** What to post about an alert, and what is true afterwards. */
interface Plan {
  readonly alert: LeasedAlert
  readonly ends: readonly PostableAlert[]
  readonly fires: readonly PostableAlert[]
  readonly newLabels: Labels
  readonly newAnnotations: Labels
  /** Null: it fires. */
  readonly endsAt: Instant | null
}

export function createAlertKeeper(options: AlertKeeperOptions): AlertKeeper {
  const { clock, links, database, sealer, installationUrls, onProblem, batch = BATCH, runMs = RUN_MS } = options
  const peers = createPeers(options, null)
  const working = new Map<string, Promise<void>>()
  const failing = new Set<string>()
  const errors: unknown[] = []

  async function run(signal: AbortSignal): Promise<'again' | 'done'> {
    const due = await listChannelsWithDueAlerts(database, clock.now())
    let isFull = false
    for (const { channelId, channel } of due) {
      if (working.has(channelId)) continue
      if (working.size < MAX_CHANNELS) start(channelId, channel, signal)
      else isFull = true
    }
    await waitFor(Promise.all(working.values()), runMs)
    if (errors.length > 0) throw errors.splice(0)[0]
    return isFull ? 'again' : 'done'
  }

  function start(channelId: string, row: ChannelRow | null, signal: AbortSignal): void {
    const work = (row === null ? forgetChannel(channelId) : keepChannel(row, signal))
      .catch((error) => void errors.push(error))
      .finally(() => working.delete(channelId))
    working.set(channelId, work)
  }

  async function forgetChannel(channelId: string): Promise<void> {
    failing.delete(channelId)
    await deleteChannelAlerts(database, channelId)
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
    const isOver = ({ resolvedAt }: LeasedAlert) => resolvedAt !== null && now - resolvedAt > ALERT_LIFE_MS
    const over = leased.filter(isOver).map(({ checkKey }) => checkKey)
    if (over.length > 0) await deleteAlerts(database, channel.id, over, until)
    const plans = leased.filter((alert) => !isOver(alert)).map((alert) => plan(alert, channel.settings.labels, now))
    const changed = plans.length === 0 ? 0 : await post(channel, plans, until, signal)
    return leased.length === batch || changed > 0 ? 'again' : 'done'
  }

  function plan(alert: LeasedAlert, own: Labels, now: Instant): Plan {
    const { labels, annotations, resolvedAt, isTrue, check } = alert
    const link = check === null ? null : linkForPeople(links, check.id)
    // An end stays an end: if the check is down again, its event raises the alert.
    const endsAt = resolvedAt ?? (isTrue ? null : now)
    if (endsAt !== null || check === null) {
      const ends = [resolve(alert, endsAt ?? now, link)]
      return { alert, ends, fires: [], newLabels: labels, newAnnotations: annotations, endsAt: endsAt ?? now }
    }
    const newLabels = relabelAlert(alert, check, own)
    const ends = newLabels === labels ? [] : [resolve(alert, now, link)]
    const newAnnotations = reannotateAlert(alert, alert.newestText)
    const fires = [fire({ ...alert, labels: newLabels, annotations: newAnnotations }, now, link)]
    return { alert, ends, fires, newLabels, newAnnotations, endsAt }
  }

  /** Returns how many of the alerts were changed in between by another writer. */
  async function post(channel: Channel, plans: readonly Plan[], until: Instant, signal: AbortSignal): Promise<number> {
    const timeout = new AbortController()
    const stopTimer = startTimer(POST_MS, () => timeout.abort())
    // Ends first: a check may have got the labels that another one had.
    const alerts = [...plans.flatMap(({ ends }) => ends), ...plans.flatMap(({ fires }) => fires)]
    const result = await peers.post(channel, alerts, AbortSignal.any([signal, timeout.signal]))
    stopTimer()
    const { outcome } = result
    if (!signal.aborted) report(channel.id, outcome.kind === 'delivered' ? (outcome.note ?? null) : outcome.error)
    const now = clock.now()
    const posted = plans.map(({ alert: { checkKey, labels, resolvedAt }, newLabels, newAnnotations, endsAt }) => ({
      checkKey,
      // Until a peer has accepted the new labels, the alert to be ended is the one with the old labels.
      labels: outcome.kind === 'delivered' ? newLabels : labels,
      annotations: newAnnotations,
      resolvedAt: endsAt,
      nextAt: now + repeatDelayMs(result, endsAt !== resolvedAt),
    }))
    return savePosted(database, channel.id, posted, until)
  }

  function report(channelId: string, problem: string | null): void {
    if (problem === null) failing.delete(channelId)
    else if (!failing.has(channelId)) {
      failing.add(channelId)
      onProblem(channelId, problem)
    }
  }

  return {
    run,
    async stop() {
      await Promise.all(working.values())
    },
  }
}

/** Waits for the work, `ms` at most. */
function waitFor(work: Promise<unknown>, ms: number): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stopTimer = startTimer(ms, resolve)
  return Promise.race([work, promise]).finally(stopTimer)
}
