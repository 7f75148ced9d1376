/** A `kuma.db` with the tables that Uptime Kuma 2 makes, as far as monitors are concerned. */

import { DatabaseSync } from 'node:sqlite'

export interface KumaMonitor {
  readonly name: string
  readonly type?: string
  readonly active?: boolean
  readonly interval?: number
  readonly maxretries?: number
  readonly retryInterval?: number
  readonly pushToken?: string | null
  readonly upsideDown?: boolean
  readonly description?: string | null
  /** The place of its group in the list, from 1. */
  readonly parent?: number | null
  readonly resendInterval?: number
  /** Titles of windows: of one that `windows` does not have, a single one without times. */
  readonly maintenance?: readonly string[]
  /** Their names; databases without any have no table for them. */
  readonly notifies?: readonly string[]
  /** Names, or names and values. */
  readonly tags?: readonly (string | readonly [string, string])[]
}

/** Columns, types and defaults of version 2.0 that the import reads, with some that it does not. */
const SCHEMA = `
  create table "user" (id integer primary key autoincrement, username varchar(255) not null unique, password varchar(255), active boolean not null default 1);
  create table monitor (id integer primary key autoincrement not null, name varchar(150), active boolean not null default 1,
    user_id integer references "user" on update cascade on delete set null, interval integer not null default 20, url text, type varchar(20),
    weight integer default 2000, hostname varchar(255), port integer, created_date datetime not null default (datetime('now')), keyword varchar(255),
    maxretries integer not null default 0, ignore_tls boolean not null default 0, upside_down boolean not null default 0,
    retry_interval integer not null default 0, push_token varchar(32) default null, resend_interval integer not null default 0,
    description text default null, parent integer references monitor on update cascade on delete set null, timeout double not null default 0,
    conditions text not null default '[]');
  create table heartbeat (id integer primary key autoincrement, important boolean not null default 0, monitor_id integer not null references monitor on delete cascade,
    status smallint not null, msg text, time datetime not null, ping integer, duration integer not null default 0, down_count integer not null default 0,
    end_time datetime null, retries integer not null default 0);
  create table notification (id integer primary key autoincrement, name varchar(255), config longtext, active boolean not null default 1,
    user_id integer not null, is_default boolean not null default 0);
  create table tag (id integer primary key autoincrement, name varchar(255) not null, color varchar(255) not null, created_date datetime not null default (datetime('now')));
  create table monitor_tag (id integer primary key autoincrement, monitor_id integer not null references monitor on delete cascade,
    tag_id integer not null references tag on delete cascade, value text);
`

const MAINTENANCE_SCHEMA = `
  create table maintenance (id integer primary key autoincrement, title varchar(150) not null, description text not null default '', user_id integer,
    active boolean not null default 1, strategy varchar(50) not null default 'single', start_date datetime, end_date datetime,
    start_time time, end_time time, weekdays varchar2(250) default '[]', days_of_month text default '[]', interval_day integer, cron text, timezone varchar(255), duration integer);
  create table monitor_maintenance (id integer primary key autoincrement, monitor_id integer not null references monitor on delete cascade,
    maintenance_id integer not null references maintenance on delete cascade);
`

const NOTIFICATION_SCHEMA = `
  create table monitor_notification (id integer primary key autoincrement, monitor_id integer not null references monitor on delete cascade,
    notification_id integer not null references notification on delete cascade);
`

/** Columns of the table maintenance, by the title. */
export type KumaWindows = Readonly<Record<string, Readonly<Record<string, string | number>>>>

export interface KumaOptions {
  readonly windows?: KumaWindows
  readonly serverZone?: string
  readonly notifications?: readonly string[]
  /** The journal as Uptime Kuma sets it. Left open: what was written is in the log beside the file. */
  readonly isOpen?: boolean
}

/** Writes the file. Returns what closes it, if it stays open. */
export function writeKumaDatabase(
  file: string,
  monitors: readonly KumaMonitor[],
  { windows: times = {}, serverZone, notifications = [], isOpen = false }: KumaOptions = {},
): () => void {
  const database = new DatabaseSync(file)
  database.exec('pragma journal_mode = wal; pragma wal_autocheckpoint = 0')
  database.exec(SCHEMA)
  const addMonitor = database.prepare(
    `insert into monitor (name, type, active, interval, maxretries, retry_interval, push_token, upside_down, description, parent, resend_interval)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const addTag = database.prepare(`insert into tag (name, color) values (?, '#4B5563')`)
  const giveTag = database.prepare('insert into monitor_tag (monitor_id, tag_id, value) values (?, ?, ?)')
  for (const [place, monitor] of monitors.entries()) {
    const { name, type = 'push', interval = 60, maxretries = 0, retryInterval = 60, description = null } = monitor
    const { pushToken = tokenOf(place), parent = null, resendInterval = 0, tags = [] } = monitor
    const [active, upsideDown] = [Number(monitor.active ?? true), Number(monitor.upsideDown ?? false)]
    const values = [name, type, active, interval, maxretries, retryInterval, pushToken, upsideDown, description, parent]
    addMonitor.run(...values, resendInterval)
    for (const tag of tags) {
      const [word, value] = typeof tag === 'string' ? [tag, ''] : tag
      const { lastInsertRowid } = addTag.run(word)
      giveTag.run(place + 1, lastInsertRowid, value)
    }
  }
  const windows = monitors.flatMap(({ maintenance = [] }, place) =>
    maintenance.map((title) => [title, place + 1] as const),
  )
  if (windows.length > 0) database.exec(MAINTENANCE_SCHEMA)
  for (const title of new Set(windows.map(([title]) => title))) {
    const columns = { title, ...times[title] }
    const names = Object.keys(columns)
    database
      .prepare(`insert into maintenance (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`)
      .run(...Object.values(columns))
  }
  for (const [title, monitor] of windows)
    database
      .prepare(
        'insert into monitor_maintenance (monitor_id, maintenance_id) select ?, id from maintenance where title = ?',
      )
      .run(monitor, title)
  if (serverZone !== undefined) {
    database.exec(
      'create table setting (id integer primary key autoincrement, key varchar(200) not null unique, value text)',
    )
    database.prepare(`insert into setting (key, value) values ('serverTimezone', ?)`).run(JSON.stringify(serverZone))
  }
  const addNotification = database.prepare('insert into notification (name, config, user_id) values (?, ?, 1)')
  for (const name of notifications) addNotification.run(name, '{"type":"webhook"}')
  const notifying = monitors.flatMap(({ notifies = [] }, place) => notifies.map((name) => [place + 1, name] as const))
  if (notifying.length > 0) database.exec(NOTIFICATION_SCHEMA)
  for (const [monitor, name] of notifying)
    database
      .prepare(
        'insert into monitor_notification (monitor_id, notification_id) select ?, id from notification where name = ?',
      )
      .run(monitor, name)
  const close = () => database.close()
  if (!isOpen) close()
  return close
}

/** 32 letters and digits, another one for each place. */
export function tokenOf(place: number): string {
  return `Push${String(place).padStart(28, '0')}`
}
