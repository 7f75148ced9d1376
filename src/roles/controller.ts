/** Reconciles HeartbeatChecks of one cluster while it leads (design, sections 7 and 8). No port but ops. */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { logEntry } from '../audit/log-entry.ts'
import type { AuditEntry } from '../domain/audit.ts'
import { createClient } from '../kubernetes/client.ts'
import type { Connection } from '../kubernetes/connection.ts'
import { createKubernetesMetrics } from '../kubernetes/metrics.ts'
import { createOperator } from '../operator/operator.ts'
import { isLoopback } from '../runtime/clear-urls.ts'
import { waitAtMost } from '../runtime/clock.ts'
import type { Base } from './base.ts'
import { serviceOf } from './operator-service.ts'
import { userAgent } from './user-agent.ts'

export interface ControllerRoleOptions extends Base {
  readonly connection: Connection
  readonly pingUrl: () => string
}

/** A cluster that cannot be reached does not delay the start for longer. */
const CLUSTER_WAIT_MS = 1_000

export function createControllerRole(options: ControllerRoleOptions) {
  const { config, connection, database, databaseClock, databaseUrl, clock, log, metrics, pingUrl } = options
  const kubernetesMetrics = createKubernetesMetrics(metrics.registry)
  const client = createClient({
    connection,
    clock,
    metrics: kubernetesMetrics.requests,
    userAgent: userAgent(config.role),
    onWarning: (text) => log.warn({ text }, 'the API server warns'),
  })
  const context = { database, clock: databaseClock, onAudit: (entry: AuditEntry) => logEntry(log, entry) }
  const operator = createOperator({
    client,
    service: serviceOf({ context, databaseUrl, clock }),
    cluster: config.clusterName,
    namespaces: config.watchNamespaces,
    takeOver: config.takeOver,
    // Who asks for a cluster knows which; `npm start` takes the one that it finds.
    yieldsToOthers: config.role === 'all' && config.kubernetes === 'auto',
    revival: config.revival,
    projects: config.projects,
    isProjectAnnotationOn: config.isProjectAnnotationOn,
    cronJobs: config.cronJobs,
    pingUrl,
    leaseNamespace: connection.namespace,
    identity: `${hostname()}_${randomBytes(8).toString('hex')}`,
    clock,
    log,
    kubernetesMetrics,
    metrics: metrics.operator,
  })
  return {
    /**
     * Resolves when whyNotReconciling() is known, or soon; a cluster that cannot be reached is retried in the
     * background.
     */
    async start(): Promise<void> {
      if (isLoopback(pingUrl()) && (config.role === 'controller' || !isLoopback(connection.server)))
        log.warn(
          { pingUrl: pingUrl() },
          'the published URLs lead to the loopback address, where no job of the cluster finds the ping API: set PING_URL to its public address',
        )
      await waitAtMost(CLUSTER_WAIT_MS, operator.start())
    },
    async stop(): Promise<void> {
      await operator.stop()
      await client.close()
    },
    /** Null when the caches are filled, whether it leads or not. */
    whyNotReady: () => (operator.hasSynced() ? null : 'the HeartbeatChecks of the cluster were not listed yet'),
    isLeader: operator.isLeader,
    whyNotReconciling: operator.whyNotReconciling,
  }
}
