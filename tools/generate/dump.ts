/** A database as SQL text that psql or one query restores: tables, rows, then what refers to other tables, and the sequences. */

import type { Client } from 'pg'
import { FUNCTIONS, tableSql } from './schema.ts'

/** Shared counters and a lease, worth nothing in another database. */
const WITHOUT_ROWS = ['exporter', 'rate_windows', 'login_failures', 'replicas']

export async function dumpDatabase(client: Client): Promise<string> {
  await client.query(`set timezone to 'UTC'`)
  const { rows: tables } = await client.query<{ name: string; ddl: string; keys: string[] | null; columns: string[] }>(
    `select c.relname as name, ${tableSql("'n', 'f'")} as ddl,
        (select array_agg(a.attname::text order by array_position(i.indkey::int2[], a.attnum)) from pg_index i
          join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey) where i.indrelid = c.oid and i.indisprimary) as keys,
        (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
      from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace order by c.relname`,
  )
  const rows = []
  for (const { name, keys, columns } of tables)
    if (!WITHOUT_ROWS.includes(name)) rows.push(await dumpRows(client, name, columns, keys ?? columns))
  return `${[
    'create extension pg_trgm;',
    ...(await readLines(client, `select text as line from (${FUNCTIONS}) functions`)),
    ...tables.map(({ ddl }) => ddl),
    ...rows.filter((text) => text !== ''),
    ...(await readLines(
      client,
      `select format('alter table %I add constraint %I %s;', r.relname, k.conname, pg_get_constraintdef(k.oid)) as line
        from pg_constraint k join pg_class r on r.oid = k.conrelid where k.contype = 'f' order by r.relname, k.conname`,
    )),
    ...(await readLines(
      client,
      `select pg_get_indexdef(i.indexrelid) || ';' as line from pg_index i join pg_class t on t.oid = i.indrelid
        where t.relkind = 'r' and t.relnamespace = 'public'::regnamespace
          and not exists (select from pg_constraint k where k.conindid = i.indexrelid) order by i.indexrelid::regclass::text`,
    )),
    ...(await readLines(
      client,
      `select format('select setval(%L, %s);', sequencename, last_value) as line from pg_sequences
        where schemaname = 'public' and last_value is not null order by sequencename`,
    )),
  ].join('\n\n')}\n`
}

/** One insert for each row, in the order of the primary key. */
async function dumpRows(
  client: Client,
  table: string,
  columns: readonly string[],
  keys: readonly string[],
): Promise<string> {
  const values = columns.map((column) => `quote_nullable("${column}"::text)`).join(', ')
  const { rows } = await client.query<{ line: string }>(
    `select concat_ws(', ', ${values}) as line from "${table}" order by ${keys.map((key) => `"${key}"`).join(', ')}`,
  )
  return rows
    .map(({ line }) => `insert into ${table} (${columns.join(', ')}) overriding system value values (${line});`)
    .join('\n')
}

async function readLines(client: Client, query: string): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(query)
  return rows.length === 0 ? [] : [rows.map(({ line }) => line).join('\n')]
}
