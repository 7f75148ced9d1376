/** How a table of columns (columns.ts) becomes the lists of SQL, and rows become fields. */

import { isDeepStrictEqual } from 'node:util'
import type { Instant } from '../../domain/check.ts'
import { toSnakeCase } from '../../domain/field-names.ts'
import * as arrays from '../postgres/binary-arrays.ts'
import { timestamp } from '../postgres/instants.ts'

export type SqlType =
  | 'bool'
  | 'bytea'
  | 'int2'
  | 'int4'
  | 'int8'
  | 'jsonb'
  | 'text'
  | 'text[]'
  | 'timestamptz'
  | 'uuid'
  | 'uuid[]'

/** The name of a column is the name of its field in snake_case. */
export interface Column<Value> {
  readonly type: SqlType
  /** What is stored. Default: the value itself. */
  readonly encode?: (value: Value) => unknown
  /** The value of what is stored. Default: what is stored. */
  readonly decode?: (stored: unknown) => Value
}

export type Columns<Fields> = { readonly [Name in keyof Fields]-?: Column<Fields[Name]> }

export function fieldsOf<Fields>(columns: Columns<Fields>): (keyof Fields & string)[] {
  return Object.keys(columns) as (keyof Fields & string)[]
}

/** `lastPingAt` is stored as `last_ping_at`. */
export const columnOf = toSnakeCase

/** `name, description`; with an alias `c.name, c.description`. */
export function namesOf<Fields>(columns: Columns<Fields>, alias?: string): string {
  return fieldsOf(columns)
    .map((field) => (alias === undefined ? columnOf(field) : `${alias}.${columnOf(field)}`))
    .join(', ')
}

/** For each field its parameter, counted from `first`: `$4::uuid`. */
export function parametersOf<Fields>(columns: Columns<Fields>, first: number): Readonly<Record<keyof Fields, string>> {
  return Object.fromEntries(
    fieldsOf(columns).map((field, index) => [field, `$${first + index}::${columns[field].type}`]),
  ) as Record<keyof Fields, string>
}

/** `name = $4::text, description = $5::text` */
export function settersOf<Fields>(columns: Columns<Fields>, first: number): string {
  const parameters = parametersOf(columns, first)
  return fieldsOf(columns)
    .map((field) => `${columnOf(field)} = ${parameters[field]}`)
    .join(', ')
}

/** The values of `parametersOf` and `settersOf`. */
export function valuesOf<Fields>(columns: Columns<Fields>, fields: Fields): unknown[] {
  return fieldsOf(columns).map((field) => {
    const { type, encode }: Column<Fields[typeof field]> = columns[field]
    const value = encode === undefined ? fields[field] : encode(fields[field])
    if (type === 'timestamptz') return timestamp(value as Instant | null)
    return type === 'jsonb' && value !== null ? JSON.stringify(value) : value
  })
}

/** An array of PostgreSQL for the values of a column of many rows. */
const ARRAY_OF: { readonly [Type in SqlType]?: (values: readonly never[]) => Buffer } = {
  bool: arrays.boolArray,
  bytea: arrays.byteaArray,
  int2: arrays.int2Array,
  int4: arrays.int4Array,
  int8: arrays.int8Array,
  jsonb: arrays.jsonbArray,
  text: arrays.textArray,
  timestamptz: arrays.instantArray,
  uuid: arrays.uuidArray,
}

/** Rows as an array for each column: `unnest($1::int8[]) as key, ...`. In a select list the arrays advance together. */
export function unnestOf<Fields>(columns: Columns<Fields>): string {
  return fieldsOf(columns)
    .map((field, index) => `unnest($${index + 1}::${columns[field].type}[]) as ${columnOf(field)}`)
    .join(', ')
}

/** The values of `unnestOf`. */
export function arraysOf<Fields>(columns: Columns<Fields>, rows: readonly Fields[]): Buffer[] {
  return fieldsOf(columns).map((field) => {
    const { type, encode = (value) => value }: Column<Fields[typeof field]> = columns[field]
    return ARRAY_OF[type]!(rows.map((row) => encode(row[field]) as never))
  })
}

/** The fields of a row that has these columns from `first` on. */
export function read<Fields>(columns: Columns<Fields>, row: readonly unknown[], first: number): Fields {
  const fields: Record<string, unknown> = {}
  let at = first
  for (const field of fieldsOf(columns)) {
    const { decode }: Column<Fields[typeof field]> = columns[field]
    const value = row[at++]
    fields[field] = decode === undefined ? value : decode(value)
  }
  return fields as Fields
}

/** Whether both have the same values in these columns. */
export function isSame<Fields>(columns: Columns<Fields>, one: Fields, other: Fields): boolean {
  return fieldsOf(columns).every((field) => isDeepStrictEqual(one[field], other[field]))
}

/** These fields, without anything else that `source` has. */
export function pick<Fields>(columns: Columns<Fields>, source: Fields): Fields {
  return Object.fromEntries(fieldsOf(columns).map((field) => [field, source[field]])) as Fields
}
