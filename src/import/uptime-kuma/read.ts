/**
 * From the database of Uptime Kuma 2 to our checks. The file is read by Node's own SQLite, which no release of this program before 22.13 has:
 * hence the import when it is needed.
 */

import { access, constants } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { NO_SPEC } from '../../checks/read-spec.ts'
import { type Instant, NO_TEXTS } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { PUSH_TOKEN, PUSH_TOKEN_LENGTH } from '../../domain/push-token.ts'
import { type SourceCheck, SourceError, type SourceItem } from '../source.ts'
import { fitDescription, fitName, fitSeconds, fitSlug, fitTags } from '../texts.ts'
import { hasTables, readWindows, type Window } from './windows.ts'

interface Monitor {
  readonly id: number
  readonly name: string | null
  readonly type: string | null
  readonly active: number | null
  readonly parent?: number | null
  readonly interval: number | null
  readonly maxretries: number | null
  readonly retry_interval: number | null
  readonly push_token: string | null
  readonly upside_down: number | null
  readonly description?: string | null
  readonly resend_interval?: number | null
}

/** Databases of older versions lack the others. */
const REQUIRED = 'id name type active interval maxretries retry_interval push_token upside_down'.split(' ')

/** In the order of the source, monitors first. Throws SourceError. */
export async function readUptimeKuma(file: string, now: Instant): Promise<SourceItem[]> {
  let database: DatabaseSync | undefined
  try {
    database = await openDatabase(file)
    return readItems(database, file, now)
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

function readItems(database: DatabaseSync, file: string, now: Instant): SourceItem[] {
  const columns = new Set(
    database
      .prepare(`select name from pragma_table_info('monitor')`)
      .all()
      .map(({ name }) => name),
  )
  const missing = REQUIRED.filter((column) => !columns.has(column))
  if (missing.length > 0)
    throw new SourceError(`${file} is no database of Uptime Kuma: its table monitor has no ${missing.join(', ')}`)
  const monitors = database.prepare('select * from monitor order by id').all() as unknown as Monitor[]
  const tags = readTags(database)
  const windows = readWindows(database, now)
  const notified = readNotified(database)
  const byId = new Map(monitors.map((monitor) => [monitor.id, monitor]))
  const notifications = database.prepare('select name from notification order by id').all() as { name: string | null }[]
  return [
    ...monitors.map((monitor) => {
      const around = listAround(monitor, byId)
      return toItem(monitor, {
        tags: tags.get(monitor.id) ?? [],
        windows: [...new Set(around.flatMap(({ id }) => windows.get(id) ?? []))],
        notifications: notified.get(monitor.id) ?? [],
        sleeping: around.find(({ active }) => !active) ?? null,
      })
    }),
    ...notifications.map(({ name }) => {
      const reason = 'notifications of Uptime Kuma are not imported: create a channel here'
      return { kind: 'left out', name: `notification ${name ?? ''}`, reason } as const
    }),
  ]
}

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

/** The names of notifications, by the id of the monitor that has them. */
function readNotified(database: DatabaseSync): Map<number, string[]> {
  const called = new Map<number, string[]>()
  if (!hasTables(database, 'notification', 'monitor_notification')) return called
  const rows = database
    .prepare(
      'select l.monitor_id as id, t.name from monitor_notification l join notification t on t.id = l.notification_id order by l.monitor_id, t.id',
    )
    .all() as { id: number; name: string | null }[]
  for (const { id, name } of rows) called.set(id, [...(called.get(id) ?? []), name || 'without a name'])
  return called
}

/** The monitor and the groups around it, whose pauses and windows count too. A group may name itself as its parent. */
function listAround(monitor: Monitor, byId: ReadonlyMap<number, Monitor>): Monitor[] {
  const around = new Set<Monitor>()
  for (let at: Monitor | undefined = monitor; at !== undefined && !around.has(at); ) {
    around.add(at)
    at = byId.get(at.parent ?? Number.NaN)
  }
  return [...around]
}

/** What other tables say of a monitor. */
interface Known {
  readonly tags: readonly string[]
  readonly windows: readonly Window[]
  readonly notifications: readonly string[]
  /** The monitor, or a group around it, that is not active. */
  readonly sleeping: Monitor | null
}

function toItem(monitor: Monitor, known: Known): SourceItem {
  const { id, type, push_token: token, upside_down } = monitor
  const name = monitor.name || `monitor ${id}`
  if (type !== 'push') return { kind: 'left out', name, reason: `is of type ${type}: only push monitors are imported` }
  if (upside_down) return { kind: 'left out', name, reason: 'is upside down: a push to it is a failure' }
  if (!token) return { kind: 'refused', name, reason: 'has no push token' }
  const fault = findTokenFault(token)
  return fault === null ? toCheck(monitor, token, known) : { kind: 'refused', name, reason: fault }
}

/** The message holds characters of the token, and not the token, which is the right to ping. */
function findTokenFault(token: string): string | null {
  if (PUSH_TOKEN.test(token)) return null
  const others = [...new Set(token.replace(/[A-Za-z0-9_-]/g, ''))].map((character) =>
    /[!-~]/.test(character) ? character : `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`,
  )
  const allowed = `a token has 1 to ${PUSH_TOKEN_LENGTH} of A-Z, a-z, 0-9, - and _, so give it another one there`
  if (others.length === 0) return `its push token has ${token.length} characters: ${allowed}`
  return `its push token has the characters ${others.slice(0, 10).join(' ')}: ${allowed}`
}

/** A push that comes late by less is none that is missing: the loop of a job drifts by the time that its request takes. */
const DRIFT = { seconds: 5, share: 0.05 }

function toCheck(monitor: Monitor, pushToken: string, known: Known): SourceCheck {
  const { tags, windows, notifications, sleeping } = known
  const notes: string[] = []
  const name = fitName(monitor.name ?? '', `monitor ${monitor.id}`, notes)
  const interval = monitor.interval ?? 60
  const maxRetries = monitor.maxretries ?? 0
  const retries = maxRetries * (monitor.retry_interval || interval)
  const grace = Math.max(retries, DRIFT.seconds, Math.ceil(interval * DRIFT.share))
  const active = sleeping === null
  // A push of status=down counts as a retry there; for one that does not come the grace time stands for the retries.
  const failuresBeforeDown = Math.min(maxRetries + 1, LIMITS.threshold.max)
  if (failuresBeforeDown <= maxRetries)
    notes.push(`${failuresBeforeDown} pushes of status=down alarm, and not one after ${maxRetries} retries`)
  for (const { title, fault } of windows)
    if (fault !== null) notes.push(`is without its maintenance window ${title}: ${fault}`)
  if (notifications.length > 0)
    notes.push(`is without its notifications (${notifications.join(', ')}): it notifies all channels of the project`)
  // That many intervals.
  const resends = (monitor.resend_interval ?? 0) * interval
  const remindEverySeconds =
    resends === 0 ? null : fitSeconds(resends, LIMITS.remindEverySeconds, 'time until an alarm is sent again', notes)
  if (sleeping !== null && sleeping !== monitor)
    notes.push(`is paused, as its group ${sleeping.name || sleeping.id} is: it has no group here, so resume it alone`)
  return {
    kind: 'check',
    name,
    identity: { pushToken },
    slug: fitSlug('', name, notes),
    texts: {
      ...NO_TEXTS,
      name,
      description: fitDescription(monitor.description ?? '', notes),
      tags: fitTags(tags, notes),
    },
    spec: {
      ...NO_SPEC,
      periodSeconds: fitSeconds(interval, LIMITS.periodSeconds, 'interval', notes),
      graceSeconds: fitSeconds(grace, LIMITS.graceSeconds, 'time for retries', notes),
      failuresBeforeDown,
      remindEverySeconds,
    },
    armed: active,
    past: { isUp: false, isPaused: !active, lastPingAt: null, lastDurationMs: null },
    silences: windows.flatMap(({ silence }) => silence ?? []),
    notes,
  }
}
