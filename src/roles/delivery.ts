/** A part of the api role: the outbox, the keeper of alerts, the channel of the installation, the watchdog. */

import type { IncidentTokens } from '../auth/incident-tokens.ts'
import type { Reach } from '../channels/context.ts'
import { setInstallationChannel } from '../channels/installation-channel.ts'
import { createAlertKeeper } from '../channels/kinds/alertmanager/keep-alerts.ts'
import { createSenders } from '../channels/kinds/index.ts'
import { createLinks } from '../channels/kinds/kind.ts'
import { resealChannels } from '../channels/reseal.ts'
import type { OpeningSealer } from '../channels/seal.ts'
import type { Message } from '../delivery/claims.ts'
import { createHttpClient } from '../delivery/http.ts'
import { type AttemptReport, createOutbox, textOf } from '../delivery/outbox.ts'
import { createTargetRule, TargetRejected } from '../delivery/targets.ts'
import { createWatchdog } from '../delivery/watchdog.ts'
import { toIso } from '../domain/instant.ts'
import { type Part, startStages } from '../runtime/parts.ts'
import { oldestOverdueSeconds } from '../store/checks/states.ts'
import { saveSealingKey } from '../store/leases/sealing-key.ts'
import { type Base, loopOf, openDatabase } from './base.ts'

export interface DeliveryOptions extends Base {
  readonly sealer: OpeningSealer
  readonly incidentTokens: IncidentTokens
  readonly baseUrl: () => string
  /** Returns null when pings can be stored, else the reason why not. */
  readonly whyNotReady: () => string | null
  /** Resolves when no ping is being stored, or after a short wait. */
  readonly yieldToPings: () => Promise<void>
}

const OUTBOX_MS = 250
const KEEP_MS = 1_000
const INSTALLATION_MS = 60_000
const WATCHDOG_MS = 60_000
/** The evaluator runs four times a second; a stale beat delays it by less than this. */
const OVERDUE_SECONDS = 15
const STALE_POLL_MS = 15_000

/** The rules of the senders, for the use cases that create channels. */
export function reachOf({ allowedTargets, secrets }: Base['config']): Reach {
  const rule = createTargetRule(allowedTargets)
  return {
    findObjection(address) {
      const why = rule.findObjection(address)
      return why === null ? null : new TargetRejected(address, why).message
    },
    hasSmtp: secrets.smtpUrl !== undefined,
  }
}

/** A line about a digest has no ids of deliveries: it can have thousands. */
function describeMessage(message: Message, count: number) {
  if ('digest' in message) return { digest: message.digest.id, deliveries: count }
  const { id, eventId, type, attempts } = message.delivery
  return { delivery: id, event: eventId, type, attempt: attempts }
}

export function createDelivery(base: DeliveryOptions) {
  const { config, log, metrics, clock, databaseClock, sealer, baseUrl, whyNotReady, yieldToPings } = base
  const { alertmanagerUrls: installationUrls, smtpUrl, watchdogUrl } = config.secrets
  const stack = new AsyncDisposableStack()
  // A pool of its own: management calls and deliveries must not wait for each other.
  const database = openDatabase(base, stack, {
    name: 'outbox',
    connections: 3,
    // A lost claim or outcome only repeats a delivery, with the same event.
    isForgetful: true,
    looksUp: true,
  })
  const client = stack.adopt(createHttpClient({ allowedTargets: config.allowedTargets }), (opened) => opened.close())
  const { now } = databaseClock
  const links = createLinks(baseUrl, config.isDashboardOn, base.incidentTokens.sign)
  const context = { client, clock: { now }, links, database }
  const { smtpFrom: from, isSmtpTlsRequired: isTlsRequired, smtpName: name } = config
  const senders = createSenders({ ...context, smtp: { url: smtpUrl, from, isTlsRequired, name } })
  for (const sender of Object.values(senders)) stack.defer(() => sender.close?.())
  const outbox = createOutbox({
    database,
    senders,
    sealer,
    installationUrls,
    now,
    clock,
    random: Math.random,
    yieldToPings,
    onAttempt: reportAttempt,
    onBug: (error) => log.error({ error }, 'an attempt to deliver failed by an error in the service'),
  })
  const outboxLoop = loopOf(base, 'outbox', OUTBOX_MS, outbox.run)

  const keeper = createAlertKeeper({
    ...context,
    sealer,
    installationUrls,
    onProblem: (channel, why) => log.warn({ channel, why }, 'an Alertmanager did not accept its alerts'),
  })
  const keepLoop = loopOf(base, 'alerts', KEEP_MS, keeper.run)

  // Repeated by all replicas: during a rollout their configurations differ, and the last one to start must not decide
  // alone.
  const installationLoop = loopOf(base, 'installation', INSTALLATION_MS, async () => {
    await setInstallationChannel({ database: base.database, clock: databaseClock }, installationUrls.length > 0)
    await saveSealingKey(base.database, sealer.publicKey)
  })

  const watchdog =
    watchdogUrl === null
      ? null
      : createWatchdog({
          url: watchdogUrl,
          client,
          clock,
          log,
          whyNotOnTime,
          onResult: (result) => metrics.watchdogPings.inc({ result }),
        })
  const watchdogLoop = watchdog === null ? null : loopOf(base, 'watchdog', WATCHDOG_MS, watchdog.run)

  /** Null while deadlines are evaluated and due deliveries are claimed on time. Failing receivers do not count. */
  async function whyNotOnTime(): Promise<string | null> {
    const notReady = whyNotReady()
    if (notReady !== null) return notReady
    const pollMs = clock.now() - outbox.lastPollAt()
    if (pollMs > STALE_POLL_MS) return `the outbox was polled ${Math.round(pollMs / 1_000)} s ago`
    const overdueSeconds = await oldestOverdueSeconds(database)
    return overdueSeconds > OVERDUE_SECONDS
      ? `a deadline passed ${Math.round(overdueSeconds)} s ago and is not evaluated yet`
      : null
  }

  function reportAttempt({ message, count, channel, result, outcome, ms, nextAttemptAt }: AttemptReport): void {
    const { kind } = channel
    metrics.deliveries.inc({ channel: kind, result }, count)
    metrics.deliverySeconds.observe({ channel: kind }, ms / 1_000)
    const line = { ...describeMessage(message, count), channel: channel.id, kind, status: outcome.status, ms }
    const why = textOf(outcome)
    // At debug level: in a flood of deliveries these lines would cost a sixth of the processor's time. A metric counts
    // them.
    if (result === 'delivered')
      why === undefined ? log.debug(line, 'delivered') : log.info({ ...line, note: why }, 'delivered')
    else if (result === 'retried')
      log.warn({ ...line, why, nextAttemptAt: toIso(nextAttemptAt!) }, 'not delivered; it is tried again')
    else log.warn({ ...line, why }, 'not delivered, and given up: it can be sent again by POST /deliveries/{id}/retry')
  }

  async function stopOutbox(): Promise<void> {
    await outbox
      .stop()
      .catch((error) => log.warn({ error }, 'the last outcomes could not be written; these deliveries are sent again'))
  }

  const prepare = async () => {
    await installationLoop.runOnce()
    const { resealed, unreadable } = await resealChannels({ database: base.database, sealer })
    if (resealed > 0) log.info({ resealed }, 'channels were resealed under the present SECRET_KEY')
    if (unreadable > 0)
      log.warn(
        { unreadable },
        'channels are sealed under a SECRET_KEY that is not known: set it in PREVIOUS_SECRET_KEYS',
      )
  }
  const stages: Part[][] = [
    [{ start: (signal) => base.whenAvailable(prepare, signal), stop: stopOutbox }],
    [
      outboxLoop,
      installationLoop,
      watchdogLoop ?? {},
      { start: keepLoop.start, stop: () => keepLoop.stop().then(keeper.stop) },
    ],
  ]
  return {
    start: (signal?: AbortSignal) => startStages(stages, stack, signal),
    /** Stops what has been started, also when start() failed half way. */
    stop: () => stack.disposeAsync(),
  }
}
