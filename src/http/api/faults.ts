/** Turns zod's issues into errors for the caller: which field, and what would be right. */

import type { z } from 'zod'
import { AppError, type FieldFault } from '../../domain/errors.ts'

export type InputSource = 'body' | 'query'

/** Longer names of unknown fields are shortened. */
const MAX_NAME_LENGTH = 100

/** Checks a part of a request. Throws AppError `invalid`: its message names the first bad field, its details name each. */
export function parsePart<Schema extends z.ZodType>(
  source: InputSource,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw invalidFields(source, toFaults(result.error.issues))
}

/** The paths of `faults` begin below `source`; an empty path means all of it. */
export function invalidFields(source: InputSource, faults: readonly FieldFault[]): AppError {
  const first = faults[0]!
  const message = `${first.path === '' ? `the ${source}` : first.path} ${first.message}`
  const details = faults.map(({ path, message }) => ({ path: path === '' ? source : `${source}.${path}`, message }))
  return new AppError('invalid', message, { details })
}

/** Keeps the first fault of each field: the rules after it see a value that is wrong already. */
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
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH)}…`
}
