/** Reads the query parameters that an endpoint declares. */

import type { z } from 'zod'
import { invalidFields } from './faults.ts'

/**
 * Returns the declared parameters as text. Others are ignored: clients and proxies add parameters of their own. Throws AppError
 * `invalid` for a declared parameter that is given twice. Malformed percent encodings stay as they are.
 */
export function readQuery(schema: z.ZodObject, querystring: string): Record<string, string> {
  const given = new URLSearchParams(querystring)
  const known = Object.keys(schema.shape).filter((name) => given.has(name))
  const repeated = known.filter((name) => given.getAll(name).length > 1)
  if (repeated.length > 0)
    throw invalidFields(
      'query',
      repeated.map((path) => ({ path, message: 'is given more than once' })),
    )
  return Object.fromEntries(known.map((name) => [name, given.get(name)!]))
}
