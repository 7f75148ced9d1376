/** Reads the query parameters that an endpoint declares. */

import { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import { readParameters } from '../parameters.ts'
import { invalidFields, shorten } from './faults.ts'

const MAX_NAMED = 10

/**
 * Returns the parameters as text, lists as lists of texts. Throws AppError `invalid_request` for unknown parameters,
 * which are filters with a typo, and for a parameter that is given twice and is not a list.
 */
export function readQuery(schema: z.ZodObject, querystring: string): Record<string, string | string[]> {
  const given = readParameters(querystring, 'parameters')
  assertKnown(schema, [...new Set(given.keys())])
  const known = Object.keys(schema.shape).filter((name) => given.has(name))
  const many = new Set(known.filter((name) => takesMany(schema.shape[name] as z.ZodType)))
  const repeated = known.filter((name) => !many.has(name) && given.getAll(name).length > 1)
  const faults = repeated.map((path) => ({ path, message: 'is given more than once' }))
  if (faults.length > 0) throw invalidFields('query', faults)
  return Object.fromEntries(known.map((name) => [name, many.has(name) ? given.getAll(name) : given.get(name)!]))
}

/** Whether these are the parameters of a list. */
export const isList = (schema: z.ZodObject): boolean => 'limit' in schema.shape

function assertKnown(schema: z.ZodObject, given: readonly string[]): void {
  const known = Object.keys(schema.shape)
  const names = given.filter((name) => !known.includes(name)).map((name) => (name === '' ? '""' : shorten(name)))
  const unknown = [...new Set(names)]
  if (unknown.length === 0) return
  const named = unknown.slice(0, MAX_NAMED)
  const what = isList(schema) ? 'list' : 'call'
  const rule = `the parameters of this ${what} are ${known.join(', ')}`
  const details = named.map((name) => ({ path: `query.${name}`, message: `is not a known parameter: ${rule}` }))
  const more = unknown.length > MAX_NAMED ? ` and ${unknown.length - MAX_NAMED} more` : ''
  const fault = unknown.length === 1 ? 'is not a known parameter' : 'are not known parameters'
  throw new AppError('invalid_request', `${named.join(', ')}${more} ${fault}: ${rule}`, { details })
}

function takesMany(schema: z.ZodType): boolean {
  return schema instanceof z.ZodOptional ? takesMany(schema.unwrap() as z.ZodType) : schema instanceof z.ZodArray
}
