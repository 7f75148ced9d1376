/** Reads the query parameters that an endpoint declares. */

import { z } from 'zod'
import { invalidFields } from './faults.ts'

/**
 * Returns the declared parameters as text, those that are lists as a list of texts. Others are ignored: clients and proxies add
 * parameters of their own. Throws AppError `invalid` for a parameter that is given twice and is not a list. Malformed percent
 * encodings stay as they are.
 */
export function readQuery(schema: z.ZodObject, querystring: string): Record<string, string | string[]> {
  const given = new URLSearchParams(querystring)
  const known = Object.keys(schema.shape).filter((name) => given.has(name))
  const lists = new Set(known.filter((name) => isList(schema.shape[name] as z.ZodType)))
  const repeated = known.filter((name) => !lists.has(name) && given.getAll(name).length > 1)
  if (repeated.length > 0)
    throw invalidFields(
      'query',
      repeated.map((path) => ({ path, message: 'is given more than once' })),
    )
  return Object.fromEntries(known.map((name) => [name, lists.has(name) ? given.getAll(name) : given.get(name)!]))
}

function isList(schema: z.ZodType): boolean {
  return schema instanceof z.ZodOptional ? isList(schema.unwrap() as z.ZodType) : schema instanceof z.ZodArray
}
