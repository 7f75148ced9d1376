/** Getting the word out, as far as this replica does it: the outbox, the alerts that are kept alive, the watchdog. Part of the api role. */

import { setInstallationChannel } from '../channels/installation-channel.ts'
import { resealChannels } from '../channels/reseal.ts'
import type { Sealer } from '../channels/seal.ts'
import { createAlertmanagerSender } from '../delivery/alertmanager.ts'
import { createEmailSender } from '../delivery/email.ts'
import { createHttpClient } from '../delivery/http.ts'
import { createAlertKeeper } from '../delivery/keep-alerts.ts'
import { createLinks } from '../delivery/links.ts'
import { type AttemptReport, createOutbox, textOf } from '../delivery/outbox.ts'
import { createSlackSender } from '../delivery/slack.ts'
import { createWatchdog } from '../delivery/watchdog.ts'
import { createWebhookSender } from '../delivery/webhook.ts'
import type { ChannelKind } from '../domain/channel.ts'
import { toIso } from '../domain/instant.ts'
import { oldestOverdueSeconds } from '../store/checks/states.ts'
import { createDatabase } from '../store/postgres/database.ts'
import { type Base, loopOf } from './base.ts'

export interface Delivery {
  start(signal?: AbortSignal): Promise<void>
  stop(): Promise<void>
}

export interface DeliveryOptions extends Base {
  readonly sealer: Sealer
  readonly baseUrl: () => string
  /** Null when pings can be stored. */
  readonly whyNotReady: () => string | null
  /** Resolves when no ping is being stored, or has waited for long enough. */
  readonly giveWay: () => Promise<void>
}

const OUTBOX_MS = 250
const KEEP_MS = 1_000
const INSTALLATION_MS = 60_000
const WATCHDOG_MS = 60_000
/** The evaluator looks four times a second, and waits out at most a stale beat by itself. */
const OVERDUE_SECONDS = 15
const STALE_TURN_MS = 15_000

export function createDelivery(base: DeliveryOptions): Delivery {
  const { config, databaseUrl, log, metrics, clock, databaseClock, sealer, baseUrl, whyNotReady, giveWay } = base
  const { alertmanagerUrls: installationUrls, smtpUrl, watchdogUrl } = config.secrets
  // Of its own: management calls must not wait for deliveries, nor deliveries for them.
  const database = createDatabase({
    url: databaseUrl,
    name: 'outbox',
    connections: 3,
    // A claim or an end that is lost is a delivery that is repeated, with the same event.
    isForgetful: true,
    looksUp: true,
    onConnectionError: (error) => log.warn({ error }, 'a database connection broke'),
  })
  const client = createHttpClient({ allowedTargets: config.allowedTargets })
  const links = createLinks(baseUrl)
  const email = createEmailSender({ smtpUrl, from: config.smtpFrom, links })
  const { now } = databaseClock
  const shared = { client, clock: { now }, links }
  const alertmanager = createAlertmanagerSender({ ...shared, database })
  const outbox = createOutbox({
    database,
    senders: { webhook: createWebhookSender(shared), slack: createSlackSender(shared), email, alertmanager },
    sealer,
    installationUrls,
    now,
    clock,
    random: Math.random,
    giveWay,
    onAttempt: reportAttempt,
    onFault: (error) => log.error({ error }, 'an attempt to deliver failed by a fault of the service'),
  })
  const outboxLoop = loopOf(base, 'outbox', OUTBOX_MS, outbox.run)

  const keeper = createAlertKeeper({
    ...shared,
    database,
    sealer,
    installationUrls,
    onProblem: (channel, why) => log.warn({ channel, why }, 'an Alertmanager could not be told again'),
  })
  const keepLoop = loopOf(base, 'alerts', KEEP_MS, keeper.run)

  // Said again and again, by those that are configured and by those that are not: whoever was started last does not decide alone.
  const installationLoop = loopOf(base, 'installation', INSTALLATION_MS, async () => {
    await setInstallationChannel({ database: base.database, clock: databaseClock }, installationUrls.length > 0)
    return 'done'
  })

  const watchdog =
    watchdogUrl === null
      ? null
      : createWatchdog({
          url: watchdogUrl,
          client,
          clock,
          log,
          isOnTime: whyNotOnTime,
          onResult: (result) => metrics.watchdogPings.inc({ result }),
        })
  const watchdogLoop = watchdog === null ? null : loopOf(base, 'watchdog', WATCHDOG_MS, watchdog.run)

  /** Null while deadlines are found and deliveries are taken up when they should be. A receiver that is away is no fault of ours. */
  async function whyNotOnTime(): Promise<string | null> {
    const notReady = whyNotReady()
    if (notReady !== null) return notReady
    const turnMs = clock.now() - outbox.lastTurnAt()
    if (turnMs > STALE_TURN_MS) return `the outbox has not been looked at for ${Math.round(turnMs / 1_000)} s`
    const overdueSeconds = await oldestOverdueSeconds(database)
    return overdueSeconds > OVERDUE_SECONDS
      ? `a deadline has been waiting for ${Math.round(overdueSeconds)} s to be looked at`
      : null
  }

  function reportAttempt({ delivery, channel, result, outcome, ms, nextAttemptAt }: AttemptReport): void {
    const kind: ChannelKind = channel.kind
    metrics.deliveries.inc({ channel: kind, result })
    metrics.deliverySeconds.observe({ channel: kind }, ms / 1_000)
    const line = {
      delivery: delivery.id,
      event: delivery.eventId,
      type: delivery.event?.type,
      channel: channel.id,
      kind,
      attempt: delivery.attempts,
      status: outcome.status,
      ms,
    }
    const why = textOf(outcome)
    // What went well is counted and listed; in a flood of deliveries these lines would cost a sixth of the processor's time.
    if (result === 'delivered')
      why === undefined ? log.debug(line, 'delivered') : log.info({ ...line, note: why }, 'delivered')
    else if (result === 'retried')
      log.warn({ ...line, why, nextAttemptAt: toIso(nextAttemptAt!) }, 'not delivered; it is tried again')
    else log.warn({ ...line, why }, 'not delivered, and given up: it can be sent again by POST /deliveries/{id}/retry')
  }

  return {
    async start(signal) {
      await base.whenAvailable(async () => {
        await installationLoop.runOnce()
        const { resealed, unreadable } = await resealChannels({ database: base.database, sealer })
        if (resealed > 0) log.info({ resealed }, 'channels were sealed anew under the present SECRET_KEY')
        if (unreadable > 0)
          log.warn(
            { unreadable },
            'channels are sealed under a SECRET_KEY that is not known: set it in PREVIOUS_SECRET_KEYS',
          )
      }, signal)
      for (const loop of [outboxLoop, keepLoop, installationLoop, watchdogLoop]) loop?.start()
    },

    async stop() {
      await Promise.all([
        outboxLoop.stop(),
        keepLoop.stop().then(keeper.stop),
        installationLoop.stop(),
        watchdogLoop?.stop(),
      ])
      await outbox
        .stop()
        .catch((error) => log.warn({ error }, 'the last deliveries could not be written; they are sent again'))
      email.close()
      await Promise.all([client.close(), database.close()])
    },
  }
}
