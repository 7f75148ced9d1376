/** Reads the query string as the endpoint's schema knows it. */

import type { z } from 'zod'
import { refuseFields } from './faults.ts'

/**
 * The known parameters, as text. What the schema does not know is left out: clients and proxies add parameters of their own.
 * A known one that comes twice is refused with AppError `invalid`; malformed percent encodings stay as they are.
 */
export function readQuery(schema: z.ZodObject, querystring: string): Record<string, string> {
  const given = new URLSearchParams(querystring)
  const known = Object.keys(schema.shape).filter((name) => given.has(name))
  const repeated = known.filter((name) => given.getAll(name).length > 1)
  if (repeated.length > 0)
    throw refuseFields(
      'query',
      repeated.map((path) => ({ path, message: 'is given more than once' })),
    )
  return Object.fromEntries(known.map((name) => [name, given.get(name)!]))
}
