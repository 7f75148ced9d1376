/**
 * The composition root: every part made once, in order of dependence. start() begins work, stop() ends it by emptying: not
 * ready, no new requests, what is in progress finishes, then what it stood on goes.
 */

import { createAuthenticate } from './auth/authenticate.ts'
import { createTokens } from './auth/tokens.ts'
import { expireOverdue } from './checks/expire-overdue.ts'
import { keepBeat } from './checks/keep-beat.ts'
import { createPruner } from './checks/prune-history.ts'
import { createPingRecorder } from './checks/record-ping.ts'
import type { Config } from './config.ts'
import { PING_TYPES, SHOWN_STATUSES } from './domain/check.ts'
import { AppError } from './domain/errors.ts'
import { API_PREFIX, createApiApp } from './http/api/app.ts'
import { createOpsApp } from './http/ops/app.ts'
import { createPingApp } from './http/ping/app.ts'
import { PING_WARNINGS } from './http/ping/request.ts'
import { createHttpServer } from './http/server.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import type { Log } from './runtime/log.ts'
import { createLoop, type LoopOptions } from './runtime/loop.ts'
import { createMetrics, type Metrics } from './runtime/metrics.ts'
import { createDatabase, type Database } from './store/database.ts'
import { createDatabaseClock } from './store/database-clock.ts'
import { countByStatus, oldestOverdueSeconds } from './store/states.ts'

/** Without a slash at the end; `api` with its /api/v1. */
export interface Addresses {
  readonly ping: string
  readonly api: string
  readonly ops: string
}

export interface App {
  /** Resolves when all three ports answer. `signal` ends its wait for a database that went away, with the error of the last try. */
  start(signal?: AbortSignal): Promise<Addresses & { readonly listening: Addresses }>
  stop(): Promise<void>
  readonly metrics: Metrics
}

export interface AppOptions {
  readonly config: Config
  readonly databaseUrl: string
  readonly secretKey: Buffer
  readonly log: Log
  readonly clock?: Clock
}

const BEAT_MS = 1_000
/** Two beats missed and a bit: the database cannot be written to. */
const STALE_BEAT_MS = 2_500
const EXPIRE_MS = 250
const EXPIRE_BATCH = 500
const MEASURE_MS = 5_000
/** How long a start waits for a database that is not there. */
export const DATABASE_PATIENCE_MS = 10_000
export const DATABASE_RETRY_MS = 500
/** The pruner itself rests in proportion to what its last pass cost. */
const PRUNE_MS = 60_000
/** Within the 30 s that Kubernetes gives a pod by default, the drain before it not counted. */
const GRACE_MS = 20_000

export function createApp({ config, databaseUrl, secretKey, log, clock = systemClock }: AppOptions): App {
  const metrics = createMetrics({
    pingTypes: PING_TYPES,
    pingWarnings: Object.keys(PING_WARNINGS),
    flipReasons: ['missed', 'overran', 'outage'],
    statuses: SHOWN_STATUSES,
    loops: ['beat', 'expire', 'clock', 'prune'],
  })
  const onConnectionError = (error: Error) => log.warn({ error }, 'a database connection broke')
  const database = createDatabase({ url: databaseUrl, name: 'management', connections: 8, onConnectionError })
  const pingDatabase = createDatabase({
    url: databaseUrl,
    name: 'pings',
    connections: 3,
    genericPlans: true,
    onConnectionError,
  })
  const databaseClock = createDatabaseClock(pingDatabase, clock)
  const parts = { database, clock: databaseClock }

  let isStarted = false
  let isStopping = false
  let lastBeatAt = Number.NEGATIVE_INFINITY

  const recorder = createPingRecorder({
    database: pingDatabase,
    now: databaseClock.now,
    onGroup(size, seconds) {
      metrics.pingGroupSize.observe(size)
      metrics.pingCommitSeconds.observe(seconds)
    },
    onError: (error, pings) => log.error({ error, pings }, 'pings could not be stored'),
  })

  const loopOf = (name: string, everyMs: number, run: LoopOptions['run']) =>
    createLoop({
      name,
      everyMs,
      run,
      clock,
      onError(error) {
        metrics.loopFailures.inc({ loop: name })
        log.warn({ error, loop: name }, 'background work failed; it is tried again')
      },
    })

  const beatLoop = loopOf('beat', BEAT_MS, async () => {
    await keepBeat({
      database: pingDatabase,
      recorder,
      onGap(gap) {
        metrics.gaps.inc()
        metrics.gapSeconds.inc((gap.endedAt - gap.startedAt) / 1_000)
        log.warn(
          { seconds: Math.round((gap.endedAt - gap.startedAt) / 1_000) },
          'no replica could take pings for a while; deadlines are moved accordingly',
        )
      },
    })
    lastBeatAt = clock.now()
    return 'done'
  })
  const expireLoop = loopOf('expire', EXPIRE_MS, () =>
    expireOverdue({
      database: pingDatabase,
      batch: EXPIRE_BATCH,
      oldestPingWaitMs: recorder.oldestWaitMs,
      monotonicMs: clock.now,
      onFlip(reason, seconds) {
        metrics.flips.inc({ reason })
        metrics.detectionSeconds.observe(seconds)
      },
      onFailed(error, checkKey) {
        metrics.undecidable.inc()
        log.error({ error, checkKey }, 'a check cannot be evaluated; it is put aside for five minutes')
      },
    }),
  )
  const clockLoop = loopOf('clock', MEASURE_MS, async () => {
    await databaseClock.measure()
    metrics.clockOffsetSeconds.set(databaseClock.offsetMs() / 1_000)
    return 'done'
  })
  const pruneLoop = loopOf(
    'prune',
    PRUNE_MS,
    createPruner(parts, {
      maxPings: config.historyMaxPings,
      maxDays: config.historyMaxDays,
      onPruned: (rows) => metrics.pruned.inc(rows),
    }),
  )

  let baseUrl = config.baseUrl ?? ''
  const tokens = createTokens(secretKey, databaseClock)
  const apiApp = createApiApp({
    parts,
    tokens,
    authenticate: createAuthenticate(parts, tokens),
    rateLimitPerMinute: config.rateLimitPerMinute,
    baseUrl: () => baseUrl,
    isStopping: () => isStopping,
    log,
    onRequest: (route, method, status, ms) =>
      observeHttp(metrics, { server: 'api', route, method, status: String(status) }, ms / 1_000),
  })
  const pingApp = createPingApp({
    record: recorder.record,
    now: databaseClock.now,
    onPing: (type, result) => metrics.pings.inc({ type, result }),
    onRequest: (method, status, seconds) =>
      observeHttp(metrics, { server: 'ping', route: PING_ROUTE, method, status: String(status) }, seconds),
    onWarning: (warning) => metrics.pingWarnings.inc({ warning }),
    onError: (error) => log.error({ error }, 'a ping failed'),
  })
  const opsApp = createOpsApp({
    isStarted: () => isStarted,
    whyNotReady,
    metrics: renderMetrics,
    onRequest: (route, method, status, ms) =>
      observeHttp(metrics, { server: 'ops', route, method, status: String(status) }, ms / 1_000),
  })

  const plain = (message: string) => ({ type: 'text/plain; charset=utf-8', text: message })
  const json = (message: string) => ({
    type: 'application/json; charset=utf-8',
    text: JSON.stringify({ error: message }),
  })
  const { bindAddress } = config
  const handlePing = pingApp.callback()
  const pingServer = createHttpServer({
    name: 'ping',
    handler(request, response) {
      // Already during the drain: a connection that is idle when the port closes may be cut with a ping on its way.
      if (isStopping) response.setHeader('Connection', 'close')
      return handlePing(request, response)
    },
    bindAddress,
    port: config.pingPort,
    errorText: plain,
  })
  const apiServer = createHttpServer({
    name: 'api',
    handler: apiApp.callback(),
    bindAddress,
    port: config.apiPort,
    errorText: json,
  })
  const opsServer = createHttpServer({
    name: 'ops',
    handler: opsApp.callback(),
    bindAddress,
    port: config.opsPort,
    errorText: plain,
  })

  function whyNotReady(): string | null {
    if (isStopping) return 'stopping'
    if (!isStarted) return 'starting'
    return clock.now() - lastBeatAt > STALE_BEAT_MS ? 'the database cannot be written to' : null
  }

  /** The gauges that mirror the database are computed when somebody looks, and left as they were while it cannot be asked. */
  async function renderMetrics(): Promise<{ contentType: string; text: string }> {
    metrics.pingsWaiting.set(recorder.waiting())
    reportConnections(metrics, 'management', database)
    reportConnections(metrics, 'pings', pingDatabase)
    if (whyNotReady() === null) {
      try {
        const [counts, overdueSeconds] = await Promise.all([countByStatus(database), oldestOverdueSeconds(database)])
        for (const [status, count] of Object.entries(counts)) metrics.checks.set({ status }, count)
        metrics.oldestOverdueSeconds.set(overdueSeconds)
      } catch (error) {
        log.warn({ error }, 'the gauges of the database could not be read')
      }
    }
    return { contentType: metrics.registry.contentType, text: await metrics.registry.metrics() }
  }

  async function start(signal?: AbortSignal): ReturnType<App['start']> {
    const ops = addressOf(await opsServer.listen())
    await whenAvailable(() => databaseClock.measure(), signal)
    const ping = addressOf(await pingServer.listen())
    const api = `${addressOf(await apiServer.listen())}${API_PREFIX}`
    baseUrl ||= api
    // The gap since the last stop is on record before any deadline is looked at.
    await whenAvailable(beatLoop.runOnce, signal)
    for (const loop of [beatLoop, expireLoop, clockLoop, pruneLoop]) loop.start()
    isStarted = true
    return { ping: config.pingUrl ?? ping, api: baseUrl, ops, listening: { ping, api, ops } }
  }

  /** The database was there a moment ago, so it is likely to come back; a replica that gave up at once would only be started again. */
  async function whenAvailable(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    const giveUpAt = clock.now() + DATABASE_PATIENCE_MS
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const isPassing = error instanceof AppError && error.code === 'unavailable'
        if (!isPassing || signal?.aborted || clock.now() > giveUpAt) throw error
        log.warn({ error }, 'the database went away while the service started; it is tried again')
      }
      await clock.sleep(DATABASE_RETRY_MS, signal)
    }
  }

  /** An address that listens everywhere is reached at the loopback address too. */
  function addressOf({ port }: { port: number }): string {
    const host = ['0.0.0.0', '::'].includes(bindAddress) ? '127.0.0.1' : bindAddress
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  async function stop(): Promise<void> {
    isStopping = true
    if (isStarted) await clock.sleep(config.drainSeconds * 1_000)
    const closing = Promise.all([pingServer.close(GRACE_MS), apiServer.close(GRACE_MS)])
    // From here on nobody can ping this replica: a gap, unless others beat, begins now, and no deadline is this one's to judge.
    await Promise.all([expireLoop.stop(), beatLoop.stop()])
    if (isStarted) await beatLoop.runOnce().catch((error) => log.warn({ error }, 'the last beat could not be written'))
    await closing
    await Promise.all([clockLoop.stop(), pruneLoop.stop(), recorder.stop()])
    await Promise.all([database.close(), pingDatabase.close()])
    await opsServer.close(0)
  }

  return { start, stop, metrics }
}

const PING_ROUTE = '/ping/{public_id}'
const KNOWN_METHODS = new Set(['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Callers may make up methods, and a label must not follow them. */
function observeHttp(
  { httpSeconds }: Metrics,
  labels: { server: string; route: string; method: string; status: string },
  seconds: number,
): void {
  httpSeconds.observe(KNOWN_METHODS.has(labels.method) ? labels : { ...labels, method: 'other' }, seconds)
}

function reportConnections(metrics: Metrics, pool: string, database: Database): void {
  const { total, idle, waiting } = database.connections()
  metrics.connections.set({ pool, state: 'busy' }, total - idle)
  metrics.connections.set({ pool, state: 'idle' }, idle)
  metrics.connections.set({ pool, state: 'waiting' }, waiting)
}
