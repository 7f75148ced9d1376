/** The operator in this process, as roles/controller.ts makes it, and what tests ask of it. */

import { randomUUID } from 'node:crypto'
import { expect, inject } from 'vitest'
import { createClient, type KubernetesClient } from '../../src/kubernetes/client.ts'
import { type Connection, findConnection } from '../../src/kubernetes/connection.ts'
import { createKubernetesMetrics } from '../../src/kubernetes/metrics.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { createOperator, type Operator, type OperatorOptions } from '../../src/operator/operator.ts'
import { createMetrics, type Metrics } from '../../src/roles/metrics.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { createLog, type Log } from '../../src/runtime/log.ts'
import { createDatabaseClock } from '../../src/store/postgres/database-clock.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { startTestApp, type TestApp } from './app.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { serviceWith } from './operator-service.ts'
import { LOW_COST } from './passwords.ts'
import { silentLog } from './silent-log.ts'
import { eventually } from './until.ts'
import { openWorkplace, type TestCluster, type Workplace } from './workplace.ts'

export const PING_URL = 'http://heartbeat.monitoring.svc:8080'

export interface TestOperator extends AsyncDisposable {
  readonly operator: Operator
  /** Resolves when it takes part in the election, or cannot soon. */
  readonly started: Promise<void>
  readonly client: KubernetesClient
  readonly metrics: Metrics
  readonly testDatabase: TestDatabase
  readonly stop: () => Promise<void>
}

export interface TestOperatorOptions {
  readonly connection: Connection
  /** Two operators with one Lease are candidates for one leadership. */
  readonly leaseNamespace?: string
  /** Shared with another operator; made, and removed at the end, when it is left out. */
  readonly testDatabase?: TestDatabase
  readonly changes?: Partial<OperatorOptions>
}

export async function startTestOperator(options: TestOperatorOptions): Promise<TestOperator> {
  const { connection, leaseNamespace = 'default', changes = {} } = options
  const testDatabase = options.testDatabase ?? (await createTestDatabase())
  const { database, url } = testDatabase
  const databaseClock = createDatabaseClock(database, systemClock)
  await databaseClock.measure()
  const context = { database, clock: databaseClock, passwordCost: LOW_COST }
  await bootstrap(context, { email: 'admin@example.com' })
  const metrics = createMetrics()
  const kubernetesMetrics = createKubernetesMetrics(metrics.registry)
  const client = createClient({ connection, clock: systemClock, metrics: kubernetesMetrics.requests })
  const operator = createOperator({
    client,
    service: serviceWith(context, url),
    cluster: 'default',
    namespaces: null,
    pingUrl: () => PING_URL,
    leaseNamespace,
    identity: randomUUID(),
    clock: systemClock,
    log: silentLog,
    kubernetesMetrics,
    metrics: metrics.operator,
    pollMs: 500,
    ...changes,
  })
  const started = operator.start()
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= (async () => {
      await operator.stop()
      await client.close()
    })()
    return stopping
  }
  return {
    operator,
    started,
    client,
    metrics,
    testDatabase,
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      if (options.testDatabase === undefined) await testDatabase.close()
    },
  }
}

/** An operator beside the product's ports, as a person has them: resources go in through Kubernetes, pings and calls through HTTP. */
export interface Scene<C extends TestCluster = TestCluster> extends AsyncDisposable {
  readonly cluster: C
  readonly app: TestApp
  readonly testDatabase: TestDatabase
  readonly place: Workplace
  /** The one that was started last. */
  operator(): TestOperator
  /** Stops the operator and starts another, which knows nothing of what this one has seen. */
  restart(changes?: Partial<OperatorOptions>): Promise<void>
  sql(text: string, ...values: unknown[]): ReturnType<TestDatabase['database']['query']>
  /** The check of a HeartbeatCheck, of this name or as it was read, as the management API shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  checkOf(of: string | HeartbeatCheck): Promise<any>
}

/** The operator polls often and resyncs soon, unless `changes` say otherwise. `environment`: of the app. */
export async function startScene<C extends TestCluster>(
  cluster: C,
  changes: Partial<OperatorOptions> = {},
  leaseNamespace?: string,
  environment: Record<string, string> = {},
): Promise<Scene<C>> {
  const app = await startTestApp({ environment })
  const testDatabase = await testDatabaseOf(app)
  const start = (more: Partial<OperatorOptions> = {}) =>
    startTestOperator({
      connection: cluster.connection,
      ...(leaseNamespace === undefined ? {} : { leaseNamespace }),
      testDatabase,
      changes: { pollMs: 500, resyncMs: 2_000, pingUrl: () => app.pingUrl, ...changes, ...more },
    })
  let operator = await start()
  const place = await openWorkplace(cluster)
  return {
    cluster,
    app,
    testDatabase,
    place,
    operator: () => operator,
    async restart(more) {
      await operator.stop()
      operator = await start(more)
    },
    sql: (text, ...values) => app.database.query(text, values),
    async checkOf(of) {
      const { status } = typeof of === 'string' ? await place.get(of) : of
      const answer = await app.call('GET', `/checks/${status!.checkId}`)
      expect(answer).toMatchObject({ status: 200 })
      return answer.body
    },
    async [Symbol.asyncDispose]() {
      await operator.stop()
      await app.close()
    },
  }
}

/** The database of an app, which closes it. */
export async function testDatabaseOf({ database }: TestApp): Promise<TestDatabase> {
  const { rows } = await database.query<{ name: string }>('select current_database() as name')
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${rows[0]!.name}`
  const nothing = () => Promise.resolve()
  return { database, url: url.href, clear: nothing, close: nothing, [Symbol.asyncDispose]: nothing }
}

/** A clock that runs so many times as fast as the system's: leases, resyncs and back-offs take a part of their time. */
export function fasterClock(factor: number): Clock {
  const from = systemClock.now()
  return {
    now: () => from + (systemClock.now() - from) * factor,
    sleep: (ms, signal) => systemClock.sleep(ms / factor, signal),
  }
}

/** Throws when no cluster is configured there. */
export async function connectionOf(kubeconfig: string): Promise<Connection> {
  return (await findConnection({ KUBECONFIG: kubeconfig }, { clock: systemClock }))!
}

/** A client of its own, for a part of what an operator asks. */
export function clientOf(connection: Connection, random = Math.random): KubernetesClient & AsyncDisposable {
  const client = createClient({ connection, clock: systemClock, random })
  return { ...client, [Symbol.asyncDispose]: client.close }
}

export interface Listening {
  readonly log: Log
  /** Messages of warnings and errors, oldest first. */
  readonly said: string[]
  /** What the errors in them say themselves. */
  readonly errors: string[]
}

/** A log that is kept. */
export function listen(): Listening {
  const said: string[] = []
  const errors: string[] = []
  const hear = ({ error }: { error?: unknown }, message: string) => {
    said.push(message)
    if (error !== undefined) errors.push(String(error))
  }
  const quiet = createLog({ level: 'silent', format: 'json' })
  return { said, errors, log: { debug: quiet.debug, info: quiet.info, warn: hear, error: hear } as Log }
}

export function whenLeading({ operator }: TestOperator, limitMs = 45_000): Promise<true> {
  return eventually('the operator leads', () => operator.isLeader(), limitMs)
}

/** The sum over all label sets that hold these labels. */
export async function readMetric(
  { metrics: { registry } }: Pick<TestOperator, 'metrics'>,
  name: string,
  labels: Record<string, string> = {},
): Promise<number> {
  const metric = await registry.getSingleMetric(name)?.get()
  if (metric === undefined) throw new Error(`there is no metric ${name}`)
  return metric.values
    .filter((value) => Object.entries(labels).every(([key, wanted]) => String(value.labels[key]) === wanted))
    .reduce((sum, { value }) => sum + value, 0)
}
