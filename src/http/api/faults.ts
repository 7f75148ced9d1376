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
const UNKNOWN_FIELDS = new WeakMap<z.core.$ZodType, Readonly<Record<string, string>>>()

/** Gives fields that `schema` does not have a text of their own. It follows the field's name in the error. */
export function explainUnknown(schema: z.ZodType, texts: Readonly<Record<string, string>>): void {
  UNKNOWN_FIELDS.set(schema, texts)
}

/** Checks a part of a request. Throws AppError `invalid`: its message names the first bad field, its details name each. */
export function parsePart<Schema extends z.ZodType>(
  source: InputSource,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const result = safeParse(schema, value)
  if (result.success) return result.data
  throw invalidFields(source, toFaults(result.error.issues))
}

/** As zod does, but issues about unknown fields carry their texts, for `parsePart`. */
export function safeParse<Schema extends z.ZodType>(schema: Schema, value: unknown) {
  return schema.safeParse(value, { error: describeUnknownFields })
}

/** The paths of `faults` begin below `source`; an empty path means all of it. */
export function invalidFields(source: InputSource, faults: readonly FieldFault[]): AppError {
  const first = faults[0]!
  const message = `${first.path === '' ? `the ${source}` : first.path} ${first.message}`
  const details = faults
    .slice(0, MAX_FAULTS)
    .map(({ path, message }) => ({ path: path === '' ? source : `${source}.${path}`, message }))
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
    else {
      const texts = JSON.parse(issue.message) as string[]
      for (const [index, text] of texts.entries()) add([...issue.path, issue.keys[index]!], text)
    }
  }
  return Array.from(faults, ([path, message]) => ({ path, message }))
}

/** A JSON list with a text for each unknown field: an issue has one message, and only here is the schema known that lacks the fields. */
function describeUnknownFields(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined
  const { inst: schema } = issue
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const texts = (schema === undefined ? undefined : UNKNOWN_FIELDS.get(schema as z.core.$ZodType)) ?? {}
  const describe = (key: string) => (Object.hasOwn(texts, key) ? texts[key] : describeUnknown(key, known))
  return JSON.stringify(issue.keys.slice(0, MAX_FAULTS).map(describe))
}

function describeUnknown(name: string, known: readonly string[]): string {
  const nearest = findNearest(name, known)
  return nearest === null ? 'is not a known field' : `is not a known field; the nearest known one is ${nearest}`
}

export function shorten(name: string): string {
  return name.length <= MAX_NAME_LENGTH ? name : `${name.slice(0, MAX_NAME_LENGTH)}…`
}
