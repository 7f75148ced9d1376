/** Turns zod's issues into errors for the caller: which field, and what would be right. */

import { z } from 'zod'
import { AppError, type FieldFault } from '../../domain/errors.ts'
import { findNearest } from './nearest.ts'

export type InputSource = 'body' | 'query'

/** Faults that an error lists: a body of 64 KB can have thousands. */
export const MAX_FAULTS = 100

/** Longer names of unknown fields are shortened. */
const MAX_NAME_LENGTH = 100

/** Of an object: what to do instead of sending a field that it does not have, by the name of the field. */
const UNKNOWN_FIELDS = new WeakMap<z.ZodType, Readonly<Record<string, string>>>()

/** Gives fields that `schema` does not have a text of their own. It follows the field's name in the error. */
export function explainUnknown(schema: z.ZodType, texts: Readonly<Record<string, string>>): void {
  UNKNOWN_FIELDS.set(schema, texts)
}

/** Throws AppError `invalid_request`: its message names the first bad field, its details name each. */
export function parsePart<Schema extends z.ZodType>(
  source: InputSource,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const owners: Owners = new Map()
  const result = schema.safeParse(value, { error: (issue) => void noteOwner(issue, owners) })
  if (result.success) return result.data
  throw invalidFields(source, toFaults(source, result.error.issues, owners))
}

/** The schemas that lack unknown fields, by the list of the fields: zod names a schema only while it parses. */
type Owners = Map<readonly string[], unknown>

function noteOwner(issue: z.core.$ZodRawIssue, owners: Owners): void {
  if (issue.code === 'unrecognized_keys') owners.set(issue.keys, issue.inst)
}

/** The paths of `faults` begin below `source`; an empty path means all of it. */
export function invalidFields(source: InputSource, faults: readonly FieldFault[]): AppError {
  const first = faults[0]!
  const message = `${first.path === '' ? `the ${source}` : first.path} ${first.message}`
  const details = faults
    .slice(0, MAX_FAULTS)
    .map(({ path, message }) => ({ path: path === '' ? source : `${source}.${path}`, message }))
  return new AppError('invalid_request', message, { details })
}

/**
 * Keeps the first fault of each field: the rules after it see a value that is wrong already. A parameter that is
 * repeated is named without a number.
 */
function toFaults(source: InputSource, issues: readonly z.core.$ZodIssue[], owners: Owners): FieldFault[] {
  const faults = new Map<string, string>()
  const add = (path: readonly PropertyKey[], message: string) => {
    const parts = source === 'query' ? path.slice(0, 1) : path
    const name = parts.map((part) => shorten(String(part))).join('.')
    if (!faults.has(name)) faults.set(name, message)
  }
  for (const issue of issues) {
    if (issue.code !== 'unrecognized_keys') add(issue.path, issue.message)
    else {
      const describe = describeUnknown(owners.get(issue.keys))
      for (const key of issue.keys.slice(0, MAX_FAULTS)) add([...issue.path, key], describe(key))
    }
  }
  return Array.from(faults, ([path, message]) => ({ path, message }))
}

function describeUnknown(schema: unknown): (name: string) => string {
  const [known, texts] =
    schema instanceof z.ZodObject ? [Object.keys(schema.shape), UNKNOWN_FIELDS.get(schema) ?? {}] : [[], {}]
  return (name) => {
    if (Object.hasOwn(texts, name)) return texts[name]!
    const nearest = findNearest(name, known)
    return nearest === null ? 'is not a known field' : `is not a known field; the nearest known one is ${nearest}`
  }
}

export function shorten(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH)}…`
}
