/** Maintenance windows of Uptime Kuma 2 as silences. Those that are none here say why. */

import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../domain/check.ts'
import { comes, InvalidSchedule, parseCron } from '../../domain/cron.ts'
import { LIMITS } from '../../domain/limits.ts'
import { SHORTEST_MS } from '../../domain/silence.ts'
import { instantOfLocal, isTimeZone } from '../../domain/time-zone.ts'
import type { SourceSilence } from '../source.ts'
import { fitName } from '../texts.ts'

/** Either a silence, or why there is none; neither for one that has ended. */
export interface Window {
  readonly title: string
  readonly silence: SourceSilence | null
  readonly fault: string | null
}

/** Databases of older versions lack columns. */
interface Maintenance {
  readonly id: number
  readonly title: string | null
  readonly active: number | null
  readonly strategy: string | null
  readonly start_date: string | null
  readonly end_date: string | null
  readonly interval_day?: number | null
  readonly cron?: string | null
  /** Seconds. */
  readonly duration?: number | null
  readonly timezone?: string | null
}

/** Databases of older versions lack tables. */
export function hasTables(database: DatabaseSync, ...names: readonly [string, string]): boolean {
  return database.prepare('select name from sqlite_master where name in (?, ?)').all(...names).length === names.length
}

/** By the id of the monitor. */
export function readWindows(database: DatabaseSync, now: Instant): Map<number, Window[]> {
  const found = new Map<number, Window[]>()
  if (!hasTables(database, 'maintenance', 'monitor_maintenance')) return found
  const zone = readServerZone(database)
  const rows = database.prepare('select * from maintenance').all() as unknown as Maintenance[]
  const windows = new Map(rows.map((row) => [row.id, toWindow(row, zone, now)]))
  const links = database
    .prepare('select monitor_id, maintenance_id from monitor_maintenance order by monitor_id, maintenance_id')
    .all() as { monitor_id: number; maintenance_id: number }[]
  for (const { monitor_id: id, maintenance_id: of } of links)
    found.set(id, [...(found.get(id) ?? []), ...(windows.has(of) ? [windows.get(of)!] : [])])
  return found
}

/** Of windows without a zone of their own. */
function readServerZone(database: DatabaseSync): string {
  if (!hasTables(database, 'setting', 'maintenance')) return 'UTC'
  const row = database.prepare(`select value from setting where key = 'serverTimezone'`).get()
  // A text of JSON.
  const zone = String(row?.value ?? '').replaceAll('"', '')
  return isTimeZone(zone) ? zone : 'UTC'
}

function toWindow(row: Maintenance, serverZone: string, now: Instant): Window {
  const title = row.title || `maintenance ${row.id}`
  const own = row.timezone ?? ''
  const zone = own === '' || own === 'SAME_AS_SERVER' ? serverZone : own
  const outcome = isTimeZone(zone) ? readTimes(row, zone, now) : `it is in the unknown time zone ${zone}`
  if (typeof outcome === 'string') return { title, silence: null, fault: outcome }
  const comment = fitName(title, `maintenance ${row.id}`, [])
  return { title, silence: outcome === null ? null : { ...outcome, comment }, fault: null }
}

type Times = Omit<SourceSilence, 'comment'>

/** A text: why there is no silence like it. Null: it has ended. */
function readTimes(row: Maintenance, zone: string, now: Instant): Times | string | null {
  const { strategy, active, interval_day: days, cron, duration: durationSeconds } = row
  if (!active) return 'it is not active'
  if (strategy === 'manual') return 'it has no end'
  const startsAt = readDate(row.start_date, zone)
  const endsAt = readDate(row.end_date, zone)
  if (endsAt !== null && endsAt <= now) return null
  if (strategy === 'single')
    return startsAt === null || endsAt === null || endsAt - startsAt < SHORTEST_MS
      ? 'it has no times'
      : { startsAt, endsAt }
  if (strategy === 'recurring-interval' && (days ?? 1) > 1) return `it comes each ${days} days`
  if (endsAt !== null || (startsAt !== null && startsAt > now)) return 'it recurs from a day, or until a day'
  const { min, max } = LIMITS.silenceSeconds
  if (!cron || durationSeconds == null || durationSeconds < min || durationSeconds > max)
    return 'it has no schedule and duration that can be read here'
  try {
    return comes(parseCron(cron, zone, 'cron'))
      ? { schedule: cron, timeZone: zone, durationSeconds }
      : 'its schedule names no real date'
  } catch (error) {
    if (error instanceof InvalidSchedule) return `its schedule ${error.message}`
    throw error
  }
}

/** `2026-11-21 03:00`, with or without seconds, by the clocks of the zone. Null for anything else. */
function readDate(text: string | null, zone: string): Instant | null {
  const local = Date.parse(`${(text ?? '').replace(' ', 'T')}Z`)
  return Number.isNaN(local) ? null : instantOfLocal(local, zone)
}
