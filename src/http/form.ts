/** Reads the form that a page posts. */

import type { Context } from 'koa'
import { AppError } from '../domain/errors.ts'
import { LIMITS } from '../domain/limits.ts'
import { readBody } from './body.ts'
import { readParameters } from './parameters.ts'

/** Empty without a body. Throws AppError `unsupported_media_type`, and as `readBody` and `readParameters` do. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  const bytes = await readBody(ctx.req, LIMITS.apiBodyBytes)
  if (bytes.length > 0 && !ctx.is('application/x-www-form-urlencoded'))
    throw new AppError('unsupported_media_type', 'a form must be sent as application/x-www-form-urlencoded')
  return readParameters(bytes.toString(), 'fields')
}
