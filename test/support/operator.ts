/**
 * The operator in this process, as roles/controller.ts makes it, on a real API server and a PostgreSQL of its own, with waits
 * that suit a test: it polls often and resyncs soon.
 */

import { randomUUID } from 'node:crypto'
import { createClient, type KubernetesClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { createKubernetesMetrics } from '../../src/kubernetes/metrics.ts'
import { createOperator, type Operator, type OperatorOptions } from '../../src/operator/operator.ts'
import { createMetrics, type Metrics } from '../../src/roles/metrics.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabaseClock } from '../../src/store/postgres/database-clock.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { silentLog } from './silent-log.ts'

export const PING_URL = 'http://heartbeat.monitoring.svc:8080'

export interface TestOperator extends AsyncDisposable {
  readonly operator: Operator
  readonly client: KubernetesClient
  readonly metrics: Metrics
  readonly testDatabase: TestDatabase
  readonly stop: () => Promise<void>
}

export interface TestOperatorOptions {
  readonly kubeconfig: string
  /** Shared with another operator; made, and removed at the end, when it is left out. */
  readonly testDatabase?: TestDatabase
  readonly changes?: Partial<OperatorOptions>
}

/** Every test has the cluster to itself as far as leading goes: the Lease is in a namespace of its own. */
export async function startTestOperator(
  options: TestOperatorOptions & { leaseNamespace: string },
): Promise<TestOperator> {
  const { kubeconfig, leaseNamespace, changes = {} } = options
  const testDatabase = options.testDatabase ?? (await createTestDatabase())
  const { database, url } = testDatabase
  const databaseClock = createDatabaseClock(database, systemClock)
  await databaseClock.measure()
  const context = { database, clock: databaseClock }
  await bootstrap(context, { email: 'admin@example.com' })
  const metrics = createMetrics()
  const kubernetesMetrics = createKubernetesMetrics(metrics.registry)
  const connection = await findConnection({ KUBECONFIG: kubeconfig }, { clock: systemClock })
  const client = createClient({ connection: connection!, clock: systemClock, metrics: kubernetesMetrics.requests })
  const operator = createOperator({
    client,
    context,
    databaseUrl: url,
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
  operator.start()
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
