/** Reads the query parameters that an endpoint declares. */

import { z } from 'zod'
import { invalidFields } from './faults.ts'

/**
 * Returns the declared parameters as text, lists as lists of texts. Others are ignored: clients and proxies add their own. Malformed percent
 * encodings stay as they are. Throws AppError `invalid` for a parameter that is given twice and is not a list.
 */
export function readQuery(schema: z.ZodObject, querystring: string): Record<string, string | string[]> {
  const given = new URLSearchParams(querystring)
  const known = Object.keys(schema.shape).filter((name) => given.has(name))
  const lists = new Set(known.filter((name) => isList(schema.shape[name] as z.ZodType)))
  const repeated = known.filter((name) => !lists.has(name) && given.getAll(name).length > 1)
  const faults = repeated.map((path) => ({ path, message: 'is given more than once' }))
  if (faults.length > 0) throw invalidFields('query', faults)
  return Object.fromEntries(known.map((name) => [name, lists.has(name) ? given.getAll(name) : given.get(name)!]))
}

function isList(schema: z.ZodType): boolean {
  return schema instanceof z.ZodOptional ? isList(schema.unwrap() as z.ZodType) : schema instanceof z.ZodArray
}
