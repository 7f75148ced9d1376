/**
 * The composition root: what every process has, and the roles that ROLE asks for (design, section 8), in order of
 * dependence. start() begins the work and puts the end of each part on a stack; stop() unwinds the stack: not ready, no
 * new requests, what is in progress finishes, then the ops port and the databases close.
 */

import type { Config } from './config/config.ts'
import { AppError } from './domain/errors.ts'
import { toSeriesLabel } from './domain/labels.ts'
import { createHostRule } from './http/head.ts'
import { createOpsApp } from './http/ops/app.ts'
import { addressOf, createHttpServer } from './http/server.ts'
import type { Connection } from './kubernetes/connection.ts'
import { createApiRole, ROW_LOCK_MS } from './roles/api.ts'
import { type Base, limitConnections, loopOf, openDatabase } from './roles/base.ts'
import { createControllerRole } from './roles/controller.ts'
import { createMetrics } from './roles/metrics.ts'
import { createMetricsSource } from './roles/metrics-source.ts'
import { findUnencrypted } from './roles/unencrypted.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import type { Log } from './runtime/log.ts'
import { observeHttp } from './runtime/metrics.ts'
import { stopTogether } from './runtime/parts.ts'
import { createReporter, REPORT_MS } from './service/report.ts'
import type { Context } from './store/context.ts'
import { createDatabaseClock } from './store/postgres/database-clock.ts'

/** Without a slash at the end; `api` with its /api/v1. The controller role serves neither: both are null. */
export interface Addresses {
  readonly ping: string | null
  readonly api: string | null
  readonly ops: string
}

export type App = ReturnType<typeof createApp>

export interface AppOptions {
  readonly config: Config
  readonly databaseUrl: string
  /** Null only with the role controller. */
  readonly secretKey: Buffer | null
  /** The cluster to reconcile; null for none. */
  readonly connection?: Connection | null
  readonly log: Log
  readonly clock?: Clock
  readonly passwordCost?: Context['passwordCost']
}

const MEASURE_MS = 5_000
export const DATABASE_RETRY_MS = 500

export function createApp(options: AppOptions) {
  const { config, databaseUrl, secretKey, connection = null, log, clock = systemClock, passwordCost } = options
  const { bindAddress } = config
  const metrics = createMetrics()
  const stack = new AsyncDisposableStack()
  const database = openDatabase(options, stack, { name: 'management', connections: 8 })
  // One connection each for a group of pings, two look-ups of their checks, the read-back, the evaluator, the beat and
  // the clock, and a spare one.
  const pingDatabase =
    config.role === 'controller'
      ? null
      : openDatabase(options, stack, {
          name: 'pings',
          connections: 8,
          genericPlans: true,
          looksUp: true,
          lockMs: ROW_LOCK_MS,
        })
  const databaseClock = createDatabaseClock(pingDatabase ?? database, clock)

  let isStarted = false
  let isStopping = false
  const shared = { config, databaseUrl, log, metrics, clock, databaseClock, database }
  const base: Base = { ...shared, isStopping: () => isStopping, whenAvailable }
  const apiRole =
    pingDatabase === null || secretKey === null
      ? null
      : createApiRole({ ...base, secretKey, pingDatabase, passwordCost })
  // The ping API of another process when PING_URL is not set.
  const pingUrl = () => apiRole?.pingUrl() ?? config.pingUrl ?? `http://127.0.0.1:${config.pingPort}`
  const controllerRole =
    connection === null || config.role === 'api' ? null : createControllerRole({ ...base, connection, pingUrl })

  const clockLoop = loopOf(base, 'clock', MEASURE_MS, async () => {
    await databaseClock.measure()
    metrics.clockOffsetSeconds.set(databaseClock.offsetMs() / 1_000)
  })
  const reporter = createReporter({
    database,
    clock: databaseClock,
    role: config.role,
    cluster: controllerRole === null ? null : config.clusterName,
    isLeading: () => controllerRole?.isLeader() ?? false,
  })
  const reportLoop = loopOf(base, 'report', REPORT_MS, reporter.run)
  const opsApp = createOpsApp({
    isStarted: () => isStarted,
    whyNotReady,
    state: () => (apiRole === null || apiRole.whyNotStoring() === null ? 'ok' : 'database unavailable; spooling'),
    remark: whyNotReconciling,
    metricsToken: config.secrets.metricsToken,
    metrics: {
      contentType: metrics.registry.contentType,
      labelNames: config.metricLabels.map(toSeriesLabel),
      ...createMetricsSource({
        ...base,
        pools: { management: database, pings: pingDatabase },
        api: apiRole,
        isStoring: () => whyNotReady() === null && apiRole?.whyNotStoring() === null,
      }),
      onFault: (error) => log.error({ error }, 'metrics could not be served'),
    },
    onRequest: (route, method, status, ms) =>
      observeHttp(metrics, { server: 'ops', route, method, status: String(status) }, ms / 1_000),
  })
  const opsServer = createHttpServer({
    name: 'ops',
    handler: opsApp.callback(),
    bindAddress,
    port: config.opsPort,
    ...limitConnections(base, 'ops'),
    isKnownHost: createHostRule(bindAddress, [config.baseUrl, config.pingUrl]),
    errorText: (text) => ({ type: 'text/plain; charset=utf-8', text }),
  })

  /** With the api role only its readiness counts: pings are stored whether or not the cluster answers. */
  function whyNotReady(): string | null {
    if (isStopping) return 'stopping'
    if (!isStarted) return 'starting'
    return apiRole === null ? (controllerRole?.whyNotReady() ?? null) : apiRole.whyNotReady()
  }

  /** Resolves when all ports are open. `signal` ends the wait for the database, with the error of the last try. */
  async function start(signal?: AbortSignal): Promise<Addresses & { readonly listening: Addresses }> {
    const ops = addressOf(bindAddress, await opsServer.listen())
    stack.defer(() => opsServer.close(0))
    await whenAvailable(() => databaseClock.measure(), signal)
    clockLoop.start()
    stack.defer(clockLoop.stop)
    const defer = stopTogether(stack)
    if (apiRole !== null) defer(apiRole.stop)
    const served = (await apiRole?.start(signal)) ?? { ping: null, api: null }
    if (controllerRole !== null) defer(controllerRole.stop)
    const reconciling = controllerRole?.start()
    reportLoop.start()
    defer(stopReports)
    isStarted = true
    await reconciling
    await warnOfUnencrypted()
    const shown = apiRole === null ? served : { ping: apiRole.pingUrl(), api: apiRole.baseUrl() }
    return { ...shown, ops, listening: { ...served, ops } }
  }

  /** A process that stops while the database is away is shown as missing. */
  async function stopReports(): Promise<void> {
    await reportLoop.stop()
    await reporter.stop().catch((error) => log.warn({ error }, 'the replica could not be deregistered'))
  }

  /** A database that has just become unavailable is reported by others. */
  async function warnOfUnencrypted(): Promise<void> {
    const isDatabaseInClear = await database.isInClear().catch(() => false)
    const clearChannels = (await apiRole?.clearChannels().catch(() => 0)) ?? 0
    const addresses = { ping: pingUrl(), api: apiRole?.baseUrl() ?? null }
    const unencrypted = findUnencrypted({ ...addresses, ...config, isDatabaseInClear, clearChannels })
    if (unencrypted.length > 0)
      log.warn(
        { unencrypted },
        'sent unencrypted; use TLS where the network is not trusted (docs/operate/operations.md, TLS)',
      )
  }

  /**
   * The database was available a moment ago, so it is likely to come back; a replica that ends would only be restarted.
   */
  async function whenAvailable(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    const giveUpAt = clock.now() + config.databaseWaitSeconds * 1_000
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const isPassing = error instanceof AppError && error.code === 'unavailable'
        if (!isPassing || signal?.aborted || clock.now() > giveUpAt) throw error
        log.warn({ error }, 'the database became unavailable during the start; trying again')
      }
      await clock.sleep(DATABASE_RETRY_MS, signal)
    }
  }

  /** Stops what has been started, also when start() failed half way. */
  async function stop(): Promise<void> {
    isStopping = true
    await stack.disposeAsync()
  }

  /** What start() has waited for, a second at most; null: the cluster is reconciled, or there is none. */
  function whyNotReconciling(): string | null {
    return controllerRole?.whyNotReconciling() ?? null
  }

  return { start, stop, whyNotReconciling, metrics }
}
