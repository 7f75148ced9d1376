/** The metrics of the product. The roles set them; /metrics of every role shows all of them. */

import { EVALUATOR_FLIP_REASONS } from '../checks/deadlines/expire-overdue.ts'
import { DROP_REASONS } from '../checks/ping/read-back.ts'
import type { AttemptResult } from '../delivery/outbox.ts'
import type { WatchdogResult } from '../delivery/watchdog.ts'
import { CHANNEL_KINDS } from '../domain/channel.ts'
import { PING_TYPES, SHOWN_STATUSES } from '../domain/check.ts'
import { PING_WARNINGS } from '../http/ping/request.ts'
import { createOperatorMetrics } from '../operator/metrics.ts'
import { createMachineryMetrics, createRegistry, metricsOn } from '../runtime/metrics.ts'
import { HISTORY_KINDS } from '../store/history/sizes.ts'

const ATTEMPT_RESULTS = ['delivered', 'retried', 'failed'] as const satisfies AttemptResult[]
const WATCHDOG_RESULTS = ['pinged', 'failed', 'withheld'] as const satisfies WatchdogResult[]
const PING_RESULTS = [
  'stored',
  'spooled',
  'duplicate',
  'not_found',
  'unconfirmed',
  'unavailable',
  'body_too_large',
  'body_compressed',
  'body_too_fine',
  'body_no_room',
]
/** Of pings whose path or method is wrong, so that their type is not known. */
const UNKNOWN_PING_RESULTS = ['not_found', 'unknown_signal', 'invalid_exit_code', 'wrong_method']
const GROUP_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 500]

export type Metrics = ReturnType<typeof createMetrics>

/** Every metric of the process, on a registry of its own. */
export function createMetrics() {
  const registry = createRegistry()
  const { counter, gauge, histogram } = metricsOn(registry)
  const metrics = {
    registry,
    ...createMachineryMetrics(registry),
    operator: createOperatorMetrics(registry),
    connections: gauge(
      'heartbeat_database_connections',
      'Connections to PostgreSQL that are busy or idle, and callers that wait for a connection',
      { pool: [], state: [] },
    ),
    connectionsDropped: counter(
      'heartbeat_connections_dropped_total',
      'Connections closed because too many were open on the port, in all or from one address',
      { server: ['ping', 'api', 'ops'] },
    ),
    pings: counter(
      'heartbeat_pings_total',
      'Pings received, by type and result; those of body_ are stored without a part of their text',
      {
        type: PING_TYPES,
        result: PING_RESULTS,
      },
    ),
    pingWarnings: counter(
      'heartbeat_ping_warnings_total',
      'Pings stored without a part of their metadata because that part was invalid or unknown',
      { warning: Object.keys(PING_WARNINGS) },
    ),
    pingCommitSeconds: histogram(
      'heartbeat_ping_commit_seconds',
      'Time from sending a group of pings to PostgreSQL to the end of its commit',
    ),
    pingGroupSize: histogram(
      'heartbeat_ping_group_size',
      'Number of pings committed together in one transaction',
      [],
      GROUP_SIZES,
    ),
    pingsWaiting: gauge(
      'heartbeat_pings_waiting',
      'Pings that wait in this process until the groups in flight are committed',
    ),
    knownChecks: gauge(
      'heartbeat_known_checks',
      'Checks whose public ids this process has in memory, so that their pings need no look-up',
    ),
    spoolAccepting: gauge(
      'heartbeat_spool_accepting',
      '1 if the spool has room for pings, 0 if it is full, broken or off',
    ),
    spoolPings: gauge('heartbeat_spool_pings', 'Pings on disk that wait until the database is available'),
    spoolBytes: gauge('heartbeat_spool_bytes', 'Size of the files of the spool'),
    spoolOldestSeconds: gauge('heartbeat_spool_oldest_seconds', 'Age of the oldest ping on disk; 0 without one'),
    spoolDropped: counter(
      'heartbeat_spool_dropped_total',
      'Pings on disk that were not recorded: their check was removed, the database rejects them, or the file is damaged',
      { reason: [...DROP_REASONS, 'damaged'] },
    ),
    flips: counter(
      'heartbeat_flips_total',
      'Status changes and outages written by the deadline evaluation of this replica',
      { reason: EVALUATOR_FLIP_REASONS },
    ),
    detectionSeconds: histogram(
      'heartbeat_deadline_detection_seconds',
      'Time from a missed deadline until the check is marked down',
    ),
    oldestOverdueSeconds: gauge(
      'heartbeat_deadline_oldest_overdue_seconds',
      'Age of the oldest deadline evaluation that is due and not done yet',
    ),
    undecidable: counter(
      'heartbeat_deadline_undecidable_total',
      'Evaluations postponed because the stored schedule or a stored time of the check cannot be read',
    ),
    gaps: counter('heartbeat_gaps_total', 'Downtimes of the whole service that this replica recorded'),
    gapSeconds: counter('heartbeat_gap_seconds_total', 'Total length of the downtimes that this replica recorded'),
    checks: gauge('heartbeat_checks', 'Number of checks by status', { status: SHOWN_STATUSES }),
    exporterActive: gauge(
      'heartbeat_exporter_active',
      '1 if /metrics of this replica includes the series of each check, 0 if another replica exports them',
    ),
    checkSeriesDropped: gauge(
      'heartbeat_check_series_dropped',
      'Checks missing from /metrics because another check has the same labels',
    ),
    cronJobsSeen: gauge(
      'heartbeat_cronjobs_seen_timestamp_seconds',
      'All Jobs of the cluster that changed before this time are recorded; of the replica that exports the series of each check',
      { cluster: [] },
    ),
    pruned: counter(
      'heartbeat_pruned_rows_total',
      'Rows of history deleted by this replica because they are too old or too many',
    ),
    historyRows: gauge(
      'heartbeat_history_rows',
      'Rows of history in the database, by kind: counted up to 10,000, above that estimated by PostgreSQL',
      { kind: HISTORY_KINDS },
    ),
    clockOffsetSeconds: gauge('heartbeat_clock_offset_seconds', 'Clock of PostgreSQL minus the clock of this process'),
    deliveries: counter('heartbeat_deliveries_total', 'Attempts to deliver an event, by kind of channel and result', {
      channel: CHANNEL_KINDS,
      result: ATTEMPT_RESULTS,
    }),
    deliverySeconds: histogram('heartbeat_delivery_attempt_seconds', 'Duration of an attempt to deliver an event', [
      'channel',
    ]),
    outboxOldestSeconds: gauge(
      'heartbeat_outbox_oldest_seconds',
      'Age of the oldest delivery that is due and not sent yet',
    ),
    watchdogPings: counter(
      'heartbeat_watchdog_pings_total',
      'Pings to WATCHDOG_URL by result; withheld means that the service was not on time, so no ping was sent',
      { result: WATCHDOG_RESULTS },
    ),
  }
  for (const result of UNKNOWN_PING_RESULTS) metrics.pings.inc({ type: 'unknown', result }, 0)
  return metrics
}
