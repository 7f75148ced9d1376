/** The schema as text, read back from the catalog: what all migrations together really made. */

import type { Queryable } from '../../src/store/postgres/database.ts'

/** A statement that makes the table `c` of pg_class, without its indexes and without the constraints of these kinds. */
export const tableSql = (without: string) => `format(E'create %stable %I (\\n  %s\\n)%s;',
  case c.relpersistence when 'u' then 'unlogged ' else '' end, c.relname,
  (select string_agg(line, E',\\n  ' order by place, line) from (
     select a.attnum as place, format('%I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
       case when a.attnotnull then ' not null' else '' end,
       case when a.attidentity <> '' then ' generated always as identity'
         when a.attgenerated <> '' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
         when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end) as line
     from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     union all
     select 1000, format('constraint %I %s', k.conname, pg_get_constraintdef(k.oid))
     from pg_constraint k where k.conrelid = c.oid and k.contype not in (${without})) lines),
  coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', ''))`

/** The functions of the schema, without those of extensions. */
export const FUNCTIONS = `select pg_get_functiondef(p.oid) || ';' as text from pg_proc p
  where p.pronamespace = 'public'::regnamespace and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')`

export async function describeSchema(database: Queryable): Promise<string> {
  const { rows } = await database.query<{ text: string }>(
    `select ${tableSql("'n'")} ||
        coalesce((select string_agg(E'\\n' || pg_get_indexdef(i.indexrelid) || ';', '' order by i.indexrelid::regclass::text) from pg_index i
          where i.indrelid = c.oid and not exists (select from pg_constraint k where k.conindid = i.indexrelid)), '') as text
      from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.relname`,
  )
  const { rows: others } = await database.query<{ text: string }>(
    `${FUNCTIONS}
      union all
      select pg_get_triggerdef(t.oid) || ';' from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = 'public'::regnamespace and not t.tgisinternal
      order by text`,
  )
  return `-- Written by \`npm run db:schema\` from what the migrations made; compared in test/db/schema.test.ts.\n\n${[...rows, ...others].map(({ text }) => `${text}\n`).join('\n')}`
}
