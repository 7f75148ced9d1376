/**
 * From the database of Uptime Kuma 2 to our checks. The file is read by Node's own SQLite, which no release of this program before 22.13 has:
 * hence the import when it is needed.
 */

import { access, constants } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { LIMITS } from '../../domain/limits.ts'
import { PUSH_TOKEN } from '../../domain/push-token.ts'
import { type SourceCheck, SourceError, type SourceItem } from '../source.ts'
import { fitDescription, fitName, fitSeconds, fitSlug, fitTags } from '../texts.ts'

interface Monitor {
  readonly id: number
  readonly name: string | null
  readonly type: string | null
  readonly active: number | null
  readonly parent: number | null
  readonly interval: number | null
  readonly maxretries: number | null
  readonly retry_interval: number | null
  readonly push_token: string | null
  readonly upside_down: number | null
  readonly description: string | null
}

const MONITOR = [
  'id',
  'name',
  'type',
  'active',
  'interval',
  'maxretries',
  'retry_interval',
  'push_token',
  'upside_down',
]
/** Columns that came later. */
const OPTIONAL = ['parent', 'description']

/** In the order of the source, monitors first. Throws SourceError. */
export async function readUptimeKuma(file: string): Promise<SourceItem[]> {
  let database: DatabaseSync | undefined
  try {
    database = await openDatabase(file)
    return readItems(database, file)
  } catch (error) {
    if (error instanceof SourceError) throw error
    throw new SourceError(`${file} cannot be read as a database of Uptime Kuma: ${(error as Error).message}`)
  } finally {
    database?.close()
  }
}

async function openDatabase(file: string): Promise<DatabaseSync> {
  const isThere = (path: string) =>
    access(path, constants.R_OK).then(
      () => true,
      () => false,
    )
  if (!(await isThere(file))) throw new SourceError(`the file ${file} is missing or cannot be read`)
  const { DatabaseSync } = await import('node:sqlite')
  // A copy without its log never changes; reading it that way needs no right to write beside it.
  const url = pathToFileURL(resolve(file))
  if (!(await isThere(`${file}-wal`))) url.searchParams.set('immutable', '1')
  return new DatabaseSync(url, { readOnly: true })
}

function readItems(database: DatabaseSync, file: string): SourceItem[] {
  const columns = new Set(
    database
      .prepare(`select name from pragma_table_info('monitor')`)
      .all()
      .map(({ name }) => name),
  )
  const missing = MONITOR.filter((column) => !columns.has(column))
  if (missing.length > 0)
    throw new SourceError(`${file} is no database of Uptime Kuma: its table monitor has no ${missing.join(', ')}`)
  const list = [...MONITOR.map(quote), ...OPTIONAL.map((name) => (columns.has(name) ? quote(name) : `null as ${name}`))]
  const monitors = database.prepare(`select ${list.join(', ')} from monitor order by id`).all() as unknown as Monitor[]
  const tags = readTags(database)
  const byId = new Map(monitors.map((monitor) => [monitor.id, monitor]))
  const notifications = database.prepare('select name from notification order by id').all() as { name: string | null }[]
  return [
    ...monitors.map((monitor) => toItem(monitor, tags.get(monitor.id) ?? [], isActive(monitor, byId))),
    ...notifications.map(({ name }) => {
      const reason = 'notifications of Uptime Kuma are not imported: create a channel here'
      return { kind: 'left out', name: `notification ${name ?? ''}`, reason } as const
    }),
  ]
}

const quote = (column: string) => `"${column}"`

/** By the id of the monitor. A tag with a value is both. */
function readTags(database: DatabaseSync): Map<number, string[]> {
  const rows = database
    .prepare(
      'select m.monitor_id as id, t.name, m.value from monitor_tag m join tag t on t.id = m.tag_id order by m.monitor_id, m.id',
    )
    .all() as { id: number; name: string; value: string | null }[]
  const tags = new Map<number, string[]>()
  for (const { id, name, value } of rows) tags.set(id, [...(tags.get(id) ?? []), value ? `${name}:${value}` : name])
  return tags
}

/** A monitor in a group that is not active is not watched either. A group may name itself among its parents. */
function isActive(monitor: Monitor, byId: ReadonlyMap<number, Monitor>): boolean {
  let at: Monitor | undefined = monitor
  for (let depth = 0; at !== undefined && depth < byId.size; depth += 1) {
    if (!at.active) return false
    at = at.parent === null ? undefined : byId.get(at.parent)
  }
  return true
}

function toItem(monitor: Monitor, tags: readonly string[], active: boolean): SourceItem {
  const { id, type, push_token: token, upside_down } = monitor
  const name = monitor.name || `monitor ${id}`
  if (type !== 'push') return { kind: 'left out', name, reason: `is of type ${type}: only push monitors are imported` }
  if (upside_down) return { kind: 'left out', name, reason: 'is upside down: a push to it is a failure' }
  if (token === null || !PUSH_TOKEN.test(token)) return { kind: 'refused', name, reason: 'has no push token' }
  return toCheck(monitor, token, tags, active)
}

function toCheck(monitor: Monitor, pushToken: string, given: readonly string[], active: boolean): SourceCheck {
  const notes: string[] = []
  const name = fitName(monitor.name ?? '', `monitor ${monitor.id}`, notes)
  const retries = (monitor.maxretries ?? 0) * (monitor.retry_interval ?? 0)
  return {
    kind: 'check',
    name,
    identity: { pushToken },
    slug: fitSlug('', name, notes),
    texts: {
      name,
      description: fitDescription(monitor.description ?? '', notes),
      tags: fitTags(given, notes),
      labels: {},
      channels: null,
    },
    spec: {
      periodSeconds: fitSeconds(monitor.interval ?? 60, LIMITS.periodSeconds, 'interval', notes),
      schedule: null,
      timeZone: null,
      graceSeconds: fitSeconds(retries, LIMITS.graceSeconds, 'time for retries', notes),
      maxRuntimeSeconds: null,
      jobArea: null,
      resumeOnPing: false,
    },
    armed: active,
    past: { isUp: false, isPaused: !active, lastPingAt: null, lastDurationMs: null },
    notes,
  }
}
