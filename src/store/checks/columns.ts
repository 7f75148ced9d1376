/**
 * The row of a check, declared once. Each table below says how the fields of a type are stored; the compiler rejects a table that
 * lacks one. The lists of every select, insert and update are made from these tables when the process starts.
 *
 * A new field takes: its type (domain/check.ts), a migration, its line here, and what people see of it: http/api/checks.schema.ts,
 * operator/schema/spec.ts.
 */

import { isDeepStrictEqual } from 'node:util'
import type { CheckTexts } from '../../domain/check.ts'

/** The schedule and its limits as people give them: a period, or a cron expression with its zone. */
export interface StoredSpec {
  readonly periodSeconds: number | null
  readonly schedule: string | null
  readonly timeZone: string | null
  readonly graceSeconds: number
  readonly maxRuntimeSeconds: number | null
}

type SqlType = 'int4' | 'text' | 'text[]'

/** The column is called like its field, in snake_case. */
interface Column {
  readonly type: SqlType
}

export type Columns<Fields> = { readonly [Name in keyof Fields]-?: Column }

/** In `checks`. */
export const TEXTS = {
  name: { type: 'text' },
  description: { type: 'text' },
} as const satisfies Columns<CheckTexts>

/** In `check_states`. */
export const SPEC = {
  periodSeconds: { type: 'int4' },
  schedule: { type: 'text' },
  timeZone: { type: 'text' },
  graceSeconds: { type: 'int4' },
  maxRuntimeSeconds: { type: 'int4' },
} as const satisfies Columns<StoredSpec>

/** Whether the columns have the same values. */
export const isSameTexts = (one: CheckTexts, other: CheckTexts) => isSame<CheckTexts>(TEXTS, one, other)
export const isSameSpec = (one: StoredSpec, other: StoredSpec) => isSame<StoredSpec>(SPEC, one, other)

function isSame<Fields>(columns: Columns<Fields>, one: Fields, other: Fields): boolean {
  return fieldsOf(columns).every((field) => isDeepStrictEqual(one[field], other[field]))
}

/** The texts, without anything else that `source` has. */
export function textsOf(source: CheckTexts): CheckTexts {
  return Object.fromEntries(fieldsOf<CheckTexts>(TEXTS).map((field) => [field, source[field]])) as unknown as CheckTexts
}

function fieldsOf<Fields>(columns: Columns<Fields>): (keyof Fields)[] {
  return Object.keys(columns) as (keyof Fields)[]
}
