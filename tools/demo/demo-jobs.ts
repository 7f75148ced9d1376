/** The jobs of the demo: names, schedules and outputs as a company with a shop has them. Data; demo.ts makes checks of it. */

import { DAY, HOUR, MINUTE, SECOND } from '../../test/support/builders.ts'

export type Ending =
  /** All is well. */
  | 'up'
  | 'failed'
  | 'missed'
  | 'late'
  | 'running'
  | 'paused'
  /** Never pinged. */
  | 'new'

export interface DemoJob {
  readonly name: string
  readonly project: DemoProject
  /** Cron, or milliseconds. */
  readonly schedule: string | number
  readonly timeZone?: string
  readonly graceMs: number
  readonly maxRuntimeMs?: number
  readonly tags: readonly string[]
  readonly description?: string
  /** The namespace of its HeartbeatCheck, whose name is the slug. */
  readonly namespace?: string
  /** Usual length of a run. Absent: the job only reports that it is done. */
  readonly durationMs?: number
  readonly ending: Ending
  /** The runs that failed or did not happen, counted from the last one (1). */
  readonly troubles?: Readonly<Record<number, 'failed' | 'missed'>>
  readonly output?: string
  readonly error?: string
}

export const DEMO_PROJECTS = ['Shop', 'Payments', 'Platform'] as const
export type DemoProject = (typeof DEMO_PROJECTS)[number]

const BERLIN = 'Europe/Berlin'

export const DEMO_JOBS: readonly DemoJob[] = [
  {
    name: 'Invoice export',
    project: 'Payments',
    schedule: '30 6 * * *',
    timeZone: BERLIN,
    graceMs: 30 * MINUTE,
    maxRuntimeMs: HOUR,
    tags: ['finance', 'nightly'],
    description: 'Sends the invoices of the day before to the bank. Runbook: wiki/finance/invoice-export',
    namespace: 'payments',
    durationMs: 4 * MINUTE,
    ending: 'failed',
    troubles: { 24: 'failed', 25: 'failed' },
    output: 'collected 1,284 invoices\nuploaded invoices.xml (3.1 MB)\n',
    error:
      'collected 1,311 invoices\nuploading invoices.xml ...\nssh: connect to host sftp.bank.example port 22: Connection timed out\nexport failed: nothing was sent, the next run sends it all\n',
  },
  {
    name: 'Offsite copy of the backups',
    project: 'Platform',
    schedule: '30 4 * * *',
    timeZone: BERLIN,
    graceMs: HOUR,
    tags: ['backup'],
    durationMs: 52 * MINUTE,
    ending: 'missed',
    troubles: { 41: 'missed' },
    output: 'sent 18,402,113,024 bytes  received 35 bytes  5.6 MB/s\n',
  },
  {
    name: 'Data warehouse sync',
    project: 'Platform',
    schedule: 2 * HOUR,
    graceMs: HOUR,
    tags: ['reporting'],
    durationMs: 11 * MINUTE,
    ending: 'late',
    troubles: { 31: 'failed', 112: 'missed' },
    error: 'ERROR 1205: lock wait timeout exceeded\n',
    output: 'orders: 4,812 rows\ncustomers: 96 rows\n',
  },
  {
    name: 'Nightly database backup',
    project: 'Platform',
    schedule: '0 2 * * *',
    timeZone: BERLIN,
    graceMs: 30 * MINUTE,
    maxRuntimeMs: 2 * HOUR,
    tags: ['backup', 'nightly'],
    description: 'pg_dump of all databases to the object store.\nRunbook: wiki/ops/backup',
    namespace: 'platform',
    durationMs: 38 * MINUTE,
    ending: 'up',
    troubles: { 12: 'failed', 47: 'missed', 48: 'missed' },
    output: 'dumped 14 databases, 18.4 GB\nchecksum ok\nremoved 1 backup older than 30 days\n',
    error: 'pg_dump: error: could not write to output file: No space left on device\n',
  },
  {
    name: 'Payment reconciliation',
    project: 'Payments',
    schedule: HOUR,
    graceMs: 15 * MINUTE,
    tags: ['finance'],
    namespace: 'payments',
    durationMs: 95 * SECOND,
    ending: 'up',
    troubles: { 90: 'failed', 91: 'failed', 92: 'failed' },
    output: 'matched 312 of 312 payments\n',
    error: '2 payments have no order: 88121, 88127\n',
  },
  {
    name: 'Fraud model training',
    project: 'Payments',
    schedule: 3 * DAY,
    graceMs: 6 * HOUR,
    maxRuntimeMs: 8 * HOUR,
    tags: ['ml'],
    durationMs: 3 * HOUR,
    ending: 'running',
    output: 'auc 0.9412, published model 2.17\n',
  },
  {
    name: 'Search index rebuild',
    project: 'Shop',
    schedule: '0 */4 * * *',
    graceMs: 20 * MINUTE,
    maxRuntimeMs: HOUR,
    tags: ['search'],
    namespace: 'shop',
    durationMs: 17 * MINUTE,
    ending: 'up',
    troubles: { 8: 'failed' },
    output: 'indexed 201,338 products\n',
    error: 'index is read-only: disk watermark exceeded\n',
  },
  {
    name: 'Currency rates',
    project: 'Payments',
    schedule: HOUR,
    graceMs: 10 * MINUTE,
    tags: ['finance'],
    durationMs: 3 * SECOND,
    ending: 'up',
    output: 'EUR/USD 1.0831, 31 rates\n',
  },
  {
    name: 'Certificate renewal',
    project: 'Platform',
    schedule: '0 3 * * 1',
    graceMs: DAY,
    tags: ['tls'],
    durationMs: 40 * SECOND,
    ending: 'up',
    output: 'renewed 3 certificates\n',
  },
  {
    name: 'Stock import',
    project: 'Shop',
    schedule: 30 * MINUTE,
    graceMs: 10 * MINUTE,
    tags: ['erp'],
    namespace: 'shop',
    durationMs: 48 * SECOND,
    ending: 'up',
    troubles: { 60: 'failed' },
    output: 'updated 2,204 articles\n',
    error: 'the ERP returned 503\n',
  },
  {
    name: 'Newsletter',
    project: 'Shop',
    schedule: '0 9 * * 4',
    timeZone: BERLIN,
    graceMs: HOUR,
    tags: ['mail'],
    durationMs: 22 * MINUTE,
    ending: 'up',
    output: 'sent 41,902, bounced 118\n',
  },
  {
    name: 'Sitemap',
    project: 'Shop',
    schedule: '15 5 * * *',
    graceMs: 2 * HOUR,
    tags: ['seo'],
    durationMs: 70 * SECOND,
    ending: 'up',
  },
  {
    name: 'Thumbnail clean-up',
    project: 'Shop',
    schedule: '40 3 * * *',
    graceMs: 2 * HOUR,
    tags: ['clean-up'],
    durationMs: 6 * MINUTE,
    ending: 'up',
    output: 'removed 812 files\n',
  },
  {
    name: 'Deletion of closed accounts',
    project: 'Platform',
    schedule: '0 1 * * *',
    timeZone: BERLIN,
    graceMs: 3 * HOUR,
    tags: ['privacy'],
    durationMs: 9 * MINUTE,
    ending: 'up',
    output: 'deleted 17 accounts\n',
  },
  {
    name: 'Ledger close',
    project: 'Payments',
    schedule: '0 4 1 * *',
    timeZone: BERLIN,
    graceMs: 12 * HOUR,
    tags: ['finance', 'monthly'],
    durationMs: 74 * MINUTE,
    ending: 'up',
    output: 'closed the books of last month\n',
  },
  {
    name: 'Log rotation',
    project: 'Platform',
    schedule: DAY,
    graceMs: HOUR,
    tags: [],
    ending: 'up',
  },
  {
    name: 'Exchange of delivery notes',
    project: 'Shop',
    schedule: '*/30 6-20 * * 1-5',
    timeZone: BERLIN,
    graceMs: 15 * MINUTE,
    tags: ['erp'],
    durationMs: 20 * SECOND,
    ending: 'up',
  },
  {
    name: 'Metrics roll-up',
    project: 'Platform',
    schedule: HOUR,
    graceMs: 20 * MINUTE,
    tags: ['reporting'],
    durationMs: 2 * MINUTE,
    ending: 'up',
  },
  {
    name: 'Purge of old sessions',
    project: 'Shop',
    schedule: DAY,
    graceMs: 2 * HOUR,
    tags: ['clean-up'],
    durationMs: 30 * SECOND,
    ending: 'paused',
  },
  {
    name: 'Label printer of the warehouse',
    project: 'Shop',
    schedule: 10 * MINUTE,
    graceMs: 5 * MINUTE,
    tags: [],
    ending: 'new',
  },
]
