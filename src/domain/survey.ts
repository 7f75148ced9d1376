/** The list of all checks of an organization, as the dashboard shows it: its orders, its cursors, and the runs in its strips. */

import type { ShownStatus } from './check.ts'
import { AppError } from './errors.ts'
import { isUuid } from './ids.ts'

/** The first is the default. `-`: the other way round. */
export const SURVEY_SORTS = ['status', '-status', 'name', '-name', 'last_ping', '-last_ping', 'due', '-due'] as const
export type SurveySort = (typeof SURVEY_SORTS)[number]

/** What needs attention comes first. */
export const STATUS_ORDER = ['down', 'late', 'new', 'up', 'paused'] as const satisfies readonly ShownStatus[]

/** How a run ended: its completion, the deadline that it missed, or a gap of ours that hid it. */
export const BAR_OUTCOMES = ['success', 'fail', 'missed', 'overran', 'outage'] as const
export type BarOutcome = (typeof BAR_OUTCOMES)[number]

export interface RunBar {
  readonly outcome: BarOutcome
  /** Null: unknown, or it never ended. */
  readonly durationMs: number | null
}

/** Runs in the strip of a check. */
export const STRIP_RUNS = 30

/**
 * Where a page ended: what its last row is sorted by, and the id of its check. By name: the name in lower case. By status: the place of the
 * status in the order, and the name. By a time: the time, null for a check without one.
 */
export interface SurveyCursor {
  readonly sort: SurveySort
  readonly by: readonly (string | number | null)[]
  readonly id: string
}

const CONTROL = /\p{Cc}/u
/** A lower-case form can be longer than the name of at most 100 characters. */
const NAME_UNITS = 1_000
/** 9999-12-31, in milliseconds. */
const LAST_MOMENT = 253_402_300_799_999

const isName = (value: unknown) =>
  typeof value === 'string' && value.length <= NAME_UNITS && value.isWellFormed() && !CONTROL.test(value)
const isPlace = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < STATUS_ORDER.length
const isTime = (value: unknown) => value === null || (typeof value === 'number' && value >= 0 && value <= LAST_MOMENT)

/** What each order sorts by. */
const BY: Record<'name' | 'status' | 'last_ping' | 'due', readonly ((value: unknown) => boolean)[]> = {
  name: [isName],
  status: [isPlace, isName],
  last_ping: [isTime],
  due: [isTime],
}

export type SurveyOrder = keyof typeof BY

/** `-name` sorts by the name, in reverse. */
export function orderOf(sort: SurveySort): { readonly order: SurveyOrder; readonly isReverse: boolean } {
  return { order: sort.replace('-', '') as SurveyOrder, isReverse: sort.startsWith('-') }
}

/** Opaque to browsers: base64url of JSON. */
export function encodeSurveyCursor({ sort, by, id }: SurveyCursor): string {
  return Buffer.from(JSON.stringify([sort, ...by, id])).toString('base64url')
}

/** Throws AppError `invalid_request` for a text that `encodeSurveyCursor` did not make, and for a cursor of another order. */
export function decodeSurveyCursor(text: string, sort: SurveySort): SurveyCursor {
  const [given, ...rest] = parseList(text)
  const id = rest.pop()
  const { order } = orderOf(sort)
  const isOurs =
    SURVEY_SORTS.includes(given as SurveySort) &&
    typeof id === 'string' &&
    isUuid(id) &&
    rest.length === BY[orderOf(given as SurveySort).order].length
  if (!isOurs)
    throw new AppError(
      'invalid_request',
      'the address of this page is incomplete or changed: open the list from its start',
    )
  if (given !== sort)
    throw new AppError(
      'invalid_request',
      'this page belongs to another order of the list: open the list from its start',
    )
  const cursor = { sort, by: rest as SurveyCursor['by'], id }
  const isFit = BY[order].every((isValue, index) => isValue(rest[index])) && encodeSurveyCursor(cursor) === text
  if (!isFit)
    throw new AppError(
      'invalid_request',
      'the address of this page is incomplete or changed: open the list from its start',
    )
  return cursor
}

/** Of a cursor: enough for a name whose every character takes six letters of JSON. */
const MAX_TEXT = 10_000

function parseList(text: string): unknown[] {
  if (text.length > MAX_TEXT) return []
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
