/**
 * Keeps Alertmanagers believing what is true, and only that: tells again what still fires before it ends, ends what is not true any
 * more although no event said so (check removed, moved, renamed; channel muted or changed), and repeats each end for a while,
 * for peers that were away. Every replica runs one; they share the work by claims (store/outbox/alerts.ts).
 *
 * Each pass begins work on the channels that have something to tell, and does not wait for those that take long: they go on by
 * themselves, and until they are done the next passes leave them out.
 */

import type { Sealer } from '../channels/seal.ts'
import type { Instant } from '../domain/check.ts'
import { startTimer } from '../runtime/clock.ts'
import {
  type ClaimedAlert,
  claimAlerts,
  claimUntil,
  finishTelling,
  forgetAlerts,
  forgetChannelAlerts,
  type Labels,
  listChannelsToTell,
} from '../store/outbox/alerts.ts'
import type { ChannelRow } from '../store/outbox/channels.ts'
import { ALERT_LIFE_MS, fire, type PostableAlert, relabelAlert, resolve } from './alert.ts'
import { type AlertmanagerChannel, type AlertmanagerParts, createPeers, waitAfter } from './alertmanager.ts'
import { openChannel } from './open-channel.ts'

export interface AlertKeeper {
  /** One pass. `'again'`: some channels had to wait for others. Throws what the database said to it or to an earlier one. */
  run(signal: AbortSignal): Promise<'again' | 'done'>
  /** Resolves when nothing is on its way any more. Call it after the last pass, whose signal cuts short what is. */
  stop(): Promise<void>
}

export interface AlertKeeperOptions extends AlertmanagerParts {
  readonly sealer: Sealer
  /** ALERTMANAGER_URL. */
  readonly installationUrls: readonly string[]
  /** A channel cannot be told, or not all of its peers can. Called once until all have been told again. */
  readonly onProblem: (channelId: string, problem: string) => void
  readonly batch?: number
}

const BATCH = 500
/** Channels at once: each holds a batch in memory. */
const MOST_CHANNELS = 16
const TELL_MS = 10_000
/** Longer than a healthy channel takes. */
const PASS_MS = 1_000

export function createAlertKeeper(options: AlertKeeperOptions): AlertKeeper {
  const { clock, links, database, sealer, installationUrls, onProblem, batch = BATCH } = options
  const peers = createPeers(options, null)
  const underWay = new Map<string, Promise<void>>()
  const inTrouble = new Set<string>()
  const faults: unknown[] = []

  async function run(signal: AbortSignal): Promise<'again' | 'done'> {
    const due = await listChannelsToTell(database, clock.now())
    let hasLeftOut = false
    for (const { channelId, channel } of due) {
      if (underWay.has(channelId)) continue
      if (underWay.size < MOST_CHANNELS) start(channelId, channel, signal)
      else hasLeftOut = true
    }
    await waitFor(Promise.all(underWay.values()), PASS_MS)
    if (faults.length > 0) throw faults.splice(0)[0]
    return hasLeftOut ? 'again' : 'done'
  }

  function start(channelId: string, row: ChannelRow | null, signal: AbortSignal): void {
    const working = (row === null ? forgetChannel(channelId) : keepChannel(row, signal))
      .catch((error) => void faults.push(error))
      .finally(() => underWay.delete(channelId))
    underWay.set(channelId, working)
  }

  async function forgetChannel(channelId: string): Promise<void> {
    inTrouble.delete(channelId)
    await forgetChannelAlerts(database, channelId)
  }

  async function keepChannel(row: ChannelRow, signal: AbortSignal): Promise<void> {
    let channel: AlertmanagerChannel
    try {
      channel = openChannel(row, sealer, installationUrls) as AlertmanagerChannel
    } catch (error) {
      return report(row.id, (error as Error).message)
    }
    while (!signal.aborted && (await keepBatch(channel, signal)) === 'again');
  }

  /** `'again'`: there is more, or somebody wrote one of these alerts while it was told. */
  async function keepBatch(channel: AlertmanagerChannel, signal: AbortSignal): Promise<'again' | 'done'> {
    const now = clock.now()
    const until = claimUntil(now)
    const claimed = await claimAlerts(database, channel.id, { now, until, limit: batch })
    const isOver = ({ resolvedAt }: ClaimedAlert) => resolvedAt !== null && now - resolvedAt > ALERT_LIFE_MS
    const over = claimed.filter(isOver).map(({ checkKey }) => checkKey)
    if (over.length > 0) await forgetAlerts(database, channel.id, over, until)
    const plans = claimed.filter((alert) => !isOver(alert)).map((alert) => plan(alert, channel.settings.labels, now))
    const overtaken = plans.length === 0 ? 0 : await tell(channel, plans, until, signal)
    return claimed.length === batch || overtaken > 0 ? 'again' : 'done'
  }

  /** Answers how many alerts were written by somebody else meanwhile. */
  async function tell(
    channel: AlertmanagerChannel,
    plans: readonly Plan[],
    until: Instant,
    signal: AbortSignal,
  ): Promise<number> {
    const ending = new AbortController()
    const stopTimer = startTimer(TELL_MS, () => ending.abort())
    // Ends first: one check may have got the labels that another one had.
    const alerts = [...plans.flatMap(({ ends }) => ends), ...plans.flatMap(({ fires }) => fires)]
    const telling = await peers.tell(channel, alerts, AbortSignal.any([signal, ending.signal]))
    stopTimer()
    const { outcome } = telling
    if (!signal.aborted) report(channel.id, outcome.kind === 'delivered' ? (outcome.note ?? null) : outcome.error)
    const now = clock.now()
    const told = plans.map(({ alert: { checkKey, labels, resolvedAt }, newLabels, endsAt }) => ({
      checkKey,
      // As long as nobody has heard of the new ones the old ones are those to be ended.
      labels: outcome.kind === 'delivered' ? newLabels : labels,
      resolvedAt: endsAt,
      nextAt: now + waitAfter(telling, endsAt !== resolvedAt),
    }))
    return finishTelling(database, channel.id, told, until)
  }

  /** What is to be said about an alert. */
  interface Plan {
    readonly alert: ClaimedAlert
    readonly ends: readonly PostableAlert[]
    readonly fires: readonly PostableAlert[]
    readonly newLabels: Labels
    /** Null: it fires. */
    readonly endsAt: Instant | null
  }

  function plan(alert: ClaimedAlert, own: Labels, now: Instant): Plan {
    const { labels, resolvedAt, isTrue, check } = alert
    const link = check === null ? null : links.check(check.id)
    // An end is an end: whether the check is down again is for its event to say.
    const endsAt = resolvedAt ?? (isTrue ? null : now)
    if (endsAt !== null || check === null)
      return { alert, ends: [resolve(alert, endsAt ?? now, link)], fires: [], newLabels: labels, endsAt: endsAt ?? now }
    const newLabels = relabelAlert(alert, check, own)
    const ends = newLabels === labels ? [] : [resolve(alert, now, link)]
    return { alert, ends, fires: [fire({ ...alert, labels: newLabels }, now, link)], newLabels, endsAt }
  }

  function report(channelId: string, problem: string | null): void {
    if (problem === null) inTrouble.delete(channelId)
    else if (!inTrouble.has(channelId)) {
      inTrouble.add(channelId)
      onProblem(channelId, problem)
    }
  }

  return {
    run,
    async stop() {
      await Promise.all(underWay.values())
    },
  }
}

/** Or for `ms`, whichever is shorter. */
function waitFor(work: Promise<unknown>, ms: number): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stopTimer = startTimer(ms, resolve)
  return Promise.race([work, promise]).finally(stopTimer)
}
