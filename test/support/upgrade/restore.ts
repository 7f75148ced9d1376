/** The dump of the latest release in a database of its own, as if that release had stopped a moment ago. */

import { readFileSync } from 'node:fs'
import { Client } from 'pg'
import { createEmptyDatabase, type EmptyDatabase } from '../database.ts'
import { FILES } from './known.ts'

/** History is found and pruned by the time that is in its ids (UUIDv7). */
const IDS_OF_HISTORY = {
  pings: ['id'],
  ping_bodies: ['ping_id'],
  flips: ['id', 'ping_id'],
  events: ['id', 'flip_id'],
  deliveries: ['id', 'event_id'],
}

export interface Restored extends EmptyDatabase {
  /** How much later every stored time is than in the dump. */
  readonly laterMs: number
}

export async function restoreRelease(): Promise<Restored> {
  const database = await createEmptyDatabase()
  const client = new Client({ connectionString: database.url })
  await client.connect()
  try {
    await client.query(readFileSync(FILES.dump, 'utf8'))
    const { rows } = await client.query<{ ms: string }>(
      'select round(extract(epoch from clock_timestamp() - beat_at) * 1000) as ms from service_beat',
    )
    const laterMs = Number(rows[0]!.ms)
    await client.query(await writeLater(client, laterMs))
    return { ...database, laterMs }
  } catch (error) {
    await database.close()
    throw error
  } finally {
    await client.end()
  }
}

/** Statements that move all times of the database. */
async function writeLater(client: Client, ms: number): Promise<string> {
  const { rows } = await client.query<{ table: string; columns: string[] }>(
    `select table_name as table, array_agg(column_name::text) as columns from information_schema.columns
      where table_schema = 'public' and data_type = 'timestamp with time zone' group by table_name`,
  )
  const later = (id: string) =>
    `(lpad(to_hex(('x' || left(replace(${id}::text, '-', ''), 12))::bit(48)::bigint + ${ms}), 12, '0') || substr(replace(${id}::text, '-', ''), 13))::uuid`
  const set = (table: string, assignments: string[]) => `update ${table} set ${assignments.join(', ')}`
  return [
    'begin',
    'set local session_replication_role = replica',
    ...rows.map(({ table, columns }) =>
      set(
        table,
        columns.map((column) => `"${column}" = "${column}" + ${ms} * interval '1 millisecond'`),
      ),
    ),
    ...Object.entries(IDS_OF_HISTORY).map(([table, ids]) =>
      set(
        table,
        ids.map((id) => `${id} = ${later(id)}`),
      ),
    ),
    `update check_states set runs = (select jsonb_agg(run || jsonb_build_object('startedAt', (run ->> 'startedAt')::numeric + ${ms},
        'deadlineAt', (run ->> 'deadlineAt')::numeric + ${ms})) from jsonb_array_elements(runs) run) where runs is not null`,
    'commit',
  ].join(';')
}

/** A response of the release as it reads now: times are moved; ids of history, which were moved too, and the port of pings are left out. */
export function toPresent(path: string, response: unknown, laterMs: number): unknown {
  const isHistory = /^\/deliveries|\/(pings|flips)$/.test(path)
  return JSON.parse(JSON.stringify(response), (name, value) => {
    if (isHistory && ['id', 'ping_id', 'event_id', 'next_cursor'].includes(name)) return undefined
    if (name === 'ping_url') return value.replace(/:\d+\//, '/')
    if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return value
    return new Date(Date.parse(value) + laterMs).toISOString()
  })
}
