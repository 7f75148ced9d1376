/** Orders of checks: what lists sort by, and where a page of them ended. */

import type { ShownStatus } from './check.ts'
import { isUuid } from './ids.ts'

const ORDERS = ['created', 'name', 'status', 'last_ping', 'due'] as const
export type CheckOrder = (typeof ORDERS)[number]
/** `-`: the other way round. */
export type CheckSort = CheckOrder | `-${CheckOrder}`
export const CHECK_SORTS = ORDERS.flatMap((order) => [order, `-${order}`]) as [CheckSort, ...CheckSort[]]

/** What needs attention comes first. */
export const STATUS_ORDER = ['down', 'late', 'new', 'up', 'paused'] as const satisfies readonly ShownStatus[]

/**
 * Where a page ended: what its last row is sorted by, and the id of its check. By name: the name in lower case. By
 * status: the place of the status in the order, and the name. By a time: the time, null for a check without one.
 */
export interface CheckPlace {
  readonly sort: CheckSort
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
const isRank = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < STATUS_ORDER.length
const isMoment = (value: unknown) => typeof value === 'number' && value >= 0 && value <= LAST_MOMENT
const isTime = (value: unknown) => value === null || isMoment(value)

/** What each order sorts by. */
const BY: Record<CheckOrder, readonly ((value: unknown) => boolean)[]> = {
  created: [isMoment],
  name: [isName],
  status: [isRank, isName],
  last_ping: [isTime],
  due: [isTime],
}

/** `-name` sorts by the name, in reverse. */
export function orderOf(sort: CheckSort): { readonly order: CheckOrder; readonly isReverse: boolean } {
  return { order: sort.replace('-', '') as CheckOrder, isReverse: sort.startsWith('-') }
}

/** Opaque to clients: base64url of JSON. */
export function encodePlace({ sort, by, id }: CheckPlace): string {
  return Buffer.from(JSON.stringify([sort, ...by, id])).toString('base64url')
}

/** Enough for a name whose every character takes six letters of JSON. */
const MAX_TEXT = 10_000

/** Null for a text that `encodePlace` did not make. */
export function decodePlace(text: string): CheckPlace | null {
  const [sort, ...by] = parseList(text)
  const id = by.pop()
  if (!CHECK_SORTS.includes(sort as CheckSort) || typeof id !== 'string' || !isUuid(id)) return null
  const place = { sort, by, id } as CheckPlace
  const judges = BY[orderOf(place.sort).order]
  const isFit = by.length === judges.length && judges.every((isValue, index) => isValue(by[index]))
  return isFit && encodePlace(place) === text ? place : null
}

function parseList(text: string): unknown[] {
  if (text.length > MAX_TEXT) return []
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}
