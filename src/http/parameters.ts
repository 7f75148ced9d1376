/** Reads `a=1&b=2`, of a query or of a form. */

import { AppError } from '../domain/errors.ts'
import { PARAMETERS } from './limits.ts'

/** Malformed percent encodings stay. Throws AppError `invalid_request` for too many, with the word `what`. */
export function readParameters(text: string, what: 'parameters' | 'fields'): URLSearchParams {
  if (!cutParameters(text, PARAMETERS).isCut) return new URLSearchParams(text)
  const message = `the request has more than ${PARAMETERS} ${what}`
  const path = what === 'parameters' ? 'query' : 'body'
  throw new AppError('invalid_request', message, { details: [{ path, message }] })
}

export function cutParameters(text: string, most: number): { readonly first: string; readonly isCut: boolean } {
  let end = -1
  for (let count = 0; count < most; count += 1) {
    end = text.indexOf('&', end + 1)
    if (end === -1) return { first: text, isCut: false }
  }
  return { first: text.slice(0, end), isCut: true }
}
