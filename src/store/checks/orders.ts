/** The orders of lists of checks in SQL, over a check `c` and its state `s`. */

import type { Instant, ShownStatus } from '../../domain/check.ts'
import { type CheckOrder, type CheckPlace, type CheckSort, orderOf, STATUS_ORDER } from '../../domain/check-order.ts'
import { timestamp } from '../postgres/instants.ts'
import { shownStatusSql, statusCode } from './columns.ts'

export const rankOf = (status: ShownStatus): number => STATUS_ORDER.indexOf(status)
/** The rank of the shown status at `now`, a time in SQL. Numbers are compared faster than names. */
export const rankSql = (now: string): string => shownStatusSql(now, (status) => `${rankOf(status)}`)

/** The deadline, as `deadlineOf` (domain/transition.ts). */
export const DEADLINE = `case when s.status = ${statusCode('down')} then null when s.runs is null then s.due_at
  else least(s.due_at, (select min(to_timestamp((r ->> 'deadlineAt')::float8 / 1000)) from jsonb_array_elements(s.runs) r)) end`

/** Nothing was pinged the longest ago; nothing is due last. */
const TERMS: Record<CheckOrder, (now: string, due: string) => readonly string[]> = {
  created: () => ['c.created_at'],
  name: () => ['lower(c.name)'],
  status: (now) => [rankSql(now), 'lower(c.name)'],
  last_ping: () => [`coalesce(s.last_ping_at, '-infinity'::timestamptz)`],
  due: (_, due) => [`coalesce(${due}, 'infinity'::timestamptz)`],
}

/** Of the terms, in the same order. */
const TYPES: Record<CheckOrder, readonly ('text' | 'int4' | 'timestamptz')[]> = {
  created: ['timestamptz'],
  name: ['text'],
  status: ['int4', 'text'],
  last_ping: ['timestamptz'],
  due: ['timestamptz'],
}
/** The time that stands for none. */
const NONE: Partial<Record<CheckOrder, string>> = { last_ping: '-infinity', due: 'infinity' }

export interface OrderSql {
  /** What rows are sorted by, before their ids. */
  readonly terms: readonly string[]
  /** What follows `order by` for these columns, which have the values of the terms, and of the ids. */
  sorted(columns: readonly string[]): string
  /** The condition that a row comes behind `place`, and its parameters, counted from `$first`. Empty for null. */
  behind(place: CheckPlace | null, columns: readonly string[], first: number): { sql: string; values: unknown[] }
  /** Of a row, from the values of its terms. */
  placeOf(values: readonly unknown[], id: string): CheckPlace
}

/** `now`: a time in SQL. `due`: what stands for the deadline in the order of deadlines. */
export function toOrderSql(sort: CheckSort, now: string, due = DEADLINE): OrderSql {
  const { order, isReverse } = orderOf(sort)
  const types = TYPES[order]
  const encode = (value: string | number | null, index: number) =>
    types[index] !== 'timestamptz' ? value : value === null ? NONE[order] : timestamp(value as Instant)
  return {
    terms: TERMS[order](now, due),
    sorted: (columns) => columns.map((column) => `${column} ${isReverse ? 'desc' : 'asc'}`).join(', '),
    behind(place, columns, first) {
      if (place === null) return { sql: '', values: [] }
      const parameters = [...types, 'uuid'].map((type, index) => `$${first + index}::${type}`)
      const sql = `and (${columns.join(', ')}) ${isReverse ? '<' : '>'} (${parameters.join(', ')})`
      return { sql, values: [...place.by.map(encode), place.id] }
    },
    placeOf: (values, id) => ({ sort, by: values.map(decode), id }),
  }
}

/** PostgreSQL's infinity is read as NaN. */
function decode(value: unknown): string | number | null {
  return Number.isNaN(value) ? null : (value as string | number)
}
