/**
 * The api role: stores pings, serves the management API, evaluates deadlines, prunes history. Any number of replicas
 * can run. It needs PostgreSQL and nothing else, and no Kubernetes credentials (design, section 8).
 */

import { randomUUID } from 'node:crypto'
import { logEntry } from '../audit/log-entry.ts'
import { createAuthenticate } from '../auth/authenticate.ts'
import { createIncidentTokens } from '../auth/incident-tokens.ts'
import { createIssuers } from '../auth/issuers.ts'
import { createSignIn } from '../auth/sign-in.ts'
import { createTokens } from '../auth/tokens.ts'
import { countClear } from '../channels/count-clear.ts'
import { createSealer } from '../channels/seal.ts'
import { createBeat } from '../checks/deadlines/beat.ts'
import { createEvaluator } from '../checks/deadlines/evaluator.ts'
import { createExporter, EXPORTER_MS } from '../checks/export-checks.ts'
import { ROW_LOCK_MS } from '../checks/ping/commit.ts'
import { createPingCounts } from '../checks/ping/counts.ts'
import { createFindAddressed } from '../checks/ping/find-addressed.ts'
import { createHasCheck } from '../checks/ping/has-check.ts'
import { createKnownChecks } from '../checks/ping/known-checks.ts'
import { createPingRecorder, type PingRecorder } from '../checks/ping/record.ts'
import { createBusyPruner } from '../checks/prune-busy.ts'
import { createPruner } from '../checks/prune-history.ts'
import { createChangeHub } from '../checks/watch-changes.ts'
import type { AuditEntry } from '../domain/audit.ts'
import { AppError } from '../domain/errors.ts'
import { API_PREFIX } from '../http/api/app.ts'
import { createFindClientAddress } from '../http/client-address.ts'
import { createLive } from '../http/dashboard/live.ts'
import { createHostRule } from '../http/head.ts'
import { serveManagement } from '../http/management.ts'
import { createPingApp } from '../http/ping/app.ts'
import { addressOf, createHttpServer } from '../http/server.ts'
import { observeHttp } from '../runtime/metrics.ts'
import { type Part, startStages } from '../runtime/parts.ts'
import { createSteadyLog } from '../runtime/steady-log.ts'
import type { Context } from '../store/context.ts'
import type { Database } from '../store/postgres/database.ts'
import { takeCreation } from '../tenancy/rate-limit.ts'
import { type Base, limitConnections, loopOf, openDatabase } from './base.ts'
import { createDelivery, reachOf } from './delivery.ts'
import { createSpoolRole } from './spool.ts'

/** Of the connections of pings. */
export { ROW_LOCK_MS }

export type ApiRole = ReturnType<typeof createApiRole>

export interface ApiRoleOptions extends Base {
  readonly secretKey: Buffer
  /** A pool of its own, so that management calls cannot take the connections that pings need. */
  readonly pingDatabase: Database
  readonly passwordCost: Context['passwordCost']
}

const BEAT_MS = 1_000
const EXPIRE_MS = 250
/** A check is known to this process a minute after its creation at the latest. */
const KNOWN_MS = 30_000
/** Less than the ten seconds after which Prometheus gives up a scrape. */
const EXPORT_MS = 8_000
/** The pruner itself pauses in proportion to the duration of its work. */
const PRUNE_MS = 60_000
/** A minute is the longest that a check may have more history than its limits; a run and a retry fit in between. */
const PRUNE_BUSY_MS = 20_000
/** Less than the 30 s that Kubernetes gives a pod by default, without the drain. */
const GRACE_MS = 20_000

export function createApiRole(base: ApiRoleOptions) {
  const { config, log, metrics, clock, databaseClock, database, pingDatabase, secretKey, passwordCost, isStopping } =
    base
  const onAudit = (entry: AuditEntry) => logEntry(log, entry)
  const context: Context = { database, clock: databaseClock, onAudit, passwordCost }
  const stack = new AsyncDisposableStack()
  let pingUrl = config.pingUrl ?? ''

  const processId = randomUUID()
  const counts = createPingCounts()
  const known = createKnownChecks({ database, clock })
  const recorder: PingRecorder = createPingRecorder({
    database: pingDatabase,
    known,
    counts,
    now: clock.now,
    onGroup(size, seconds) {
      metrics.pingGroupSize.observe(size)
      metrics.pingCommitSeconds.observe(seconds)
    },
    onError: (error, pings) => log.error({ error, pings }, 'pings could not be stored'),
    spool:
      config.spoolMaxBytes === 0
        ? null
        : {
            pings: () => spool.pings(),
            isKnown: (publicId) => known.has(publicId),
            onBegin: (error) => log.warn({ error }, 'the database stores no pings: they are stored on disk meanwhile'),
          },
  })
  const spool = createSpoolRole({ ...base, counts, recorder })

  const beat = createBeat({
    database: pingDatabase,
    recorder,
    clock,
    self: () => ({ id: processId, spool: spool.report() }),
    onGap(gap) {
      const seconds = (gap.endedAt - gap.startedAt) / 1_000
      metrics.gaps.inc()
      metrics.gapSeconds.inc(seconds)
      const line = { seconds: Math.round(seconds) }
      log.warn(line, 'no replica could store pings in the database for a while')
    },
    onSettled(gap, isSpooled) {
      const line = { seconds: Math.round((gap.endedAt - gap.startedAt) / 1_000) }
      log.info(
        line,
        isSpooled
          ? 'the pings of that time were stored on disk and are recorded; deadlines are evaluated as usual'
          : 'pings of that time may be lost; deadlines are moved accordingly',
      )
    },
  })
  const knownLoop = loopOf(base, 'known_checks', KNOWN_MS, known.refresh)
  const beatLoop = loopOf(base, 'beat', BEAT_MS, beat.run)
  const evaluate = createEvaluator({
    database: pingDatabase,
    recorder,
    clock,
    onFlip(reason, seconds) {
      metrics.flips.inc({ reason })
      metrics.detectionSeconds.observe(seconds)
    },
    onFailed(error, checkKey) {
      metrics.undecidable.inc()
      log.error({ error, checkKey }, 'a check cannot be evaluated; it is tried again in five minutes')
    },
  })
  const expireLoop = loopOf(base, 'expire', EXPIRE_MS, evaluate)
  const { yieldToPings } = recorder
  const pruning = {
    maxPings: config.historyMaxPings,
    maxFlips: config.historyMaxFlips,
    maxDays: config.historyMaxDays,
    auditMaxDays: config.auditMaxDays,
    onPruned: (rows: number) => metrics.pruned.inc(rows),
  }
  const pruneLoop = loopOf(base, 'prune', PRUNE_MS, createPruner(context, pruning))
  const pruneBusyLoop = loopOf(base, 'prune_busy', PRUNE_BUSY_MS, createBusyPruner(context, { ...pruning, counts }))

  // A pool of its own: reading all checks takes longer than any other statement may.
  const exportDatabase = openDatabase(base, stack, { name: 'exporter', connections: 2, statementMs: EXPORT_MS })
  const exporter = createExporter({ database: exportDatabase, clock: databaseClock }, config.metricLabels)
  const exporterLoop = loopOf(base, 'exporter', EXPORTER_MS, async () => {
    // A replica that is not ready does not renew its lease, so that another replica takes it.
    if (whyNotStoring() === null) await exporter.hold()
  })

  let baseUrl = config.baseUrl ?? ''
  const tokens = createTokens(secretKey, databaseClock)
  const issuers = createIssuers(config.oidcIssuers, databaseClock, (issuer, error) =>
    log.warn({ issuer, error }, 'the keys of an issuer cannot be fetched; tokens that need them are rejected'),
  )
  const sealer = createSealer(secretKey, config.secrets.previousSecretKeys)
  const incidentTokens = createIncidentTokens(secretKey, config.secrets.previousSecretKeys)
  const onSignInFailed = createSteadyLog<unknown>((provider, error, count) =>
    log.warn({ provider, error, count }, 'a sign-in with an identity provider failed'),
  )
  const signIn = createSignIn(context, secretKey, config.secrets.signIn, onSignInFailed)
  const changes = createChangeHub({
    context,
    databaseUrl: base.databaseUrl,
    clock,
    onProblem: (error) => log.warn({ error }, 'changes of checks could not be found for open pages; it is tried again'),
  })
  const live = createLive({
    context,
    changes,
    clock,
    onProblem: (error) => log.warn({ error }, 'the sessions of open pages could not be read; it is tried again'),
  })
  const management = serveManagement({
    context: { ...context, sealer, reach: reachOf(config) },
    tokens,
    authenticate: createAuthenticate(context, tokens, issuers),
    rateLimitPerMinute: config.rateLimitPerMinute,
    findClientAddress: createFindClientAddress(config.trustedProxies),
    isPasswordLoginOn: config.isPasswordLoginOn,
    isDashboardOn: config.isDashboardOn,
    signIn,
    kept: { days: config.historyMaxDays, flips: config.historyMaxFlips },
    live,
    baseUrl: () => baseUrl,
    pingUrl: () => pingUrl,
    isStopping,
    log,
    onRequest: (route, method, status, ms) =>
      observeHttp(metrics, { server: 'api', route, method, status: String(status) }, ms / 1_000),
  })
  const pingApp = createPingApp({
    record: recorder.record,
    hasCheck: createHasCheck(database),
    find: createFindAddressed({
      database: pingDatabase,
      context,
      now: clock.now,
      countCreation: (projectId) => takeCreation(context, projectId, config.pingCreatePerMinute),
      maxChecks: config.pingCreateMaxChecks,
      onRefused: () => spool.pings()?.noteRefusal(),
    }),
    now: databaseClock.now,
    processNow: clock.now,
    isStopping,
    onPing: (type, result) => metrics.pings.inc({ type, result }),
    onRequest: (method, status, seconds, route) =>
      observeHttp(metrics, { server: 'ping', route, method, status: String(status) }, seconds),
    onWarning: (warning) => metrics.pingWarnings.inc({ warning }),
    onError: (error) => log.error({ error }, 'a ping failed'),
  })
  const delivery = createDelivery({
    ...base,
    sealer,
    incidentTokens,
    baseUrl: () => baseUrl,
    whyNotReady: whyNotStoring,
    yieldToPings,
  })
  const { bindAddress } = config
  const pingServer = createHttpServer({
    name: 'ping',
    handler: pingApp,
    bindAddress,
    port: config.pingPort,
    ...limitConnections(base, 'ping'),
    errorText: (text) => ({ type: 'text/plain; charset=utf-8', text }),
  })
  const apiServer = createHttpServer({
    ...management,
    bindAddress,
    port: config.apiPort,
    ...limitConnections(base, 'api'),
    isKnownHost: createHostRule(bindAddress, [config.baseUrl, config.pingUrl]),
  })

  /** Null when pings can be stored in the database. */
  function whyNotStoring(): string | null {
    return beat.isStale() ? 'the database cannot be written to' : null
  }

  /** Null when pings can be stored, in the database or on disk: a pod whose spool takes pings stays in its Service. */
  function whyNotReady(): string | null {
    return spool.pings()?.hasRoom() ? null : whyNotStoring()
  }

  /** Goes on serving while load balancers notice that this replica is not ready. Another replica exports meanwhile. */
  async function drain(): Promise<void> {
    const drained = clock.sleep(config.drainSeconds * 1_000)
    await exporterLoop.stop()
    await exporter
      .release()
      .catch((error) => log.warn({ error }, 'the exporter lease could not be released; it expires'))
    await drained
  }

  let hasLastBeat = false
  /**
   * The ports close at the same time. Unless other replicas beat, a gap begins now, so no deadline is evaluated any
   * more.
   */
  async function stopBeat(): Promise<void> {
    await Promise.all([expireLoop.stop(), beatLoop.stop()])
    try {
      await beatLoop.runOnce()
      hasLastBeat = true
    } catch (error) {
      log.warn({ error }, 'the last beat could not be written')
    }
  }

  /** A row that another session holds must not keep the process from serving. */
  async function drainSpool(signal?: AbortSignal): Promise<void> {
    await base
      .whenAvailable(() => spool.drain(signal), signal)
      .catch((error) => {
        if (!(error instanceof AppError)) throw error
        log.warn({ error }, 'pings that were stored on disk are not all recorded yet; the start goes on')
      })
  }

  /** Deadlines wait for what this process could not record. A stop may take long: the beat may be old by now. */
  async function endBeat(): Promise<void> {
    const waits = (spool.report()?.pendingSince ?? null) !== null
    if (waits || !hasLastBeat || !recorder.isWell()) return
    await beat.end().catch((error) => log.warn({ error }, 'the end of this process could not be written'))
  }

  const listening = { ping: '', api: '' }
  const pings: Part = {
    async start() {
      listening.ping = addressOf(bindAddress, await pingServer.listen())
      pingUrl ||= listening.ping
    },
    stop: () => pingServer.close(GRACE_MS),
  }
  const managementApi: Part = {
    async start() {
      listening.api = `${addressOf(bindAddress, await apiServer.listen())}${API_PREFIX}`
      baseUrl ||= listening.api
    },
    // Its streams have no end of their own.
    stop: () => live.stop().then(() => apiServer.close(GRACE_MS)),
  }
  const beats: Part = {
    async start(signal) {
      // The gap since the last stop is recorded before the first deadline is evaluated.
      await base.whenAvailable(beatLoop.runOnce, signal)
      // Other replicas evaluate no deadline while this one says that pings wait here.
      beatLoop.start()
    },
    stop: stopBeat,
  }
  const stages: Part[][] = [
    [{ stop: endBeat }],
    [{ start: spool.open, stop: spool.close }],
    [{ stop: recorder.stop }],
    [
      // Before the first ping: only a ping of a known check goes behind older pings on disk, or to the disk in an
      // outage.
      { start: (signal) => base.whenAvailable(() => known.refresh(signal), signal) },
      { stop: changes.stop },
      pings,
      managementApi,
      beats,
      { start: drainSpool },
      spool.loop,
      { start: expireLoop.start },
      knownLoop,
      pruneLoop,
      pruneBusyLoop,
      // Also after a start that failed half way.
      { stop: delivery.stop },
      { start: delivery.start },
      { start: exporterLoop.start },
    ],
    // A start that failed half way does not drain.
    [{ stop: drain }],
    // Open pages find another replica during the drain.
    [{ stop: async () => void live.stop() }],
  ]

  return {
    /** Resolves with the listening addresses when both ports are open. */
    async start(signal?: AbortSignal): Promise<{ ping: string; api: string }> {
      await startStages(stages, stack, signal)
      return listening
    },
    /** Stops what has been started, also when start() failed half way. A role that served drains first. */
    stop: () => stack.disposeAsync(),
    whyNotReady,
    whyNotStoring,
    /** The public addresses. */
    pingUrl: () => pingUrl,
    baseUrl: () => baseUrl,
    setGauges() {
      metrics.pingsWaiting.set(recorder.waiting())
      metrics.knownChecks.set(known.size)
      spool.setGauges()
    },
    /** Reads the series of each check for /metrics. */
    exportChecks: exporter.read,
    /** Channels with a URL without TLS. */
    clearChannels: () => countClear({ database, sealer }),
  }
}
