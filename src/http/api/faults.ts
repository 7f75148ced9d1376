/** From what zod found to what a caller is told: which field, and what would be right. */

import type { z } from 'zod'
import { AppError, type FieldFault } from '../../domain/errors.ts'

export type Place = 'body' | 'query'

/** Names that callers make up are shown up to here. */
const LONGEST_NAME = 100

/** Checks a part of a request. Throws AppError `invalid`: its message names the first bad field, its details name each. */
export function parsePart<Schema extends z.ZodType>(place: Place, schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw refuseFields(place, toFaults(result.error.issues))
}

/** `faults` with paths from the place on; an empty path is the place as a whole. */
export function refuseFields(place: Place, faults: readonly FieldFault[]): AppError {
  const first = faults[0]!
  const message = `${first.path === '' ? `the ${place}` : first.path} ${first.message}`
  const details = faults.map(({ path, message }) => ({ path: path === '' ? place : `${place}.${path}`, message }))
  return new AppError('invalid', message, { details })
}

/** One fault for a field: the first, since the rules that follow it judge a value that is wrong already. */
function toFaults(issues: readonly z.core.$ZodIssue[]): FieldFault[] {
  const faults = new Map<string, string>()
  const add = (path: readonly PropertyKey[], message: string) => {
    const name = path.map((part) => shorten(String(part))).join('.')
    if (!faults.has(name)) faults.set(name, message)
  }
  for (const issue of issues) {
    if (issue.code !== 'unrecognized_keys') add(issue.path, issue.message)
    else for (const key of issue.keys) add([...issue.path, key], 'is not a known field')
  }
  return Array.from(faults, ([path, message]) => ({ path, message }))
}

export function shorten(name: string): string {
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME)}…`
}
