/** Reads the JSON object in a request's body. An error never quotes the body's text. */

import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { hasBody, readBody } from '../body.ts'
import { invalidFields } from './faults.ts'

/**
 * At most 65,536 bytes. `pace` resolves when they may be parsed. Throws AppError `unsupported_media_type` (other type
 * or charset, or compressed), `too_large`, or `invalid_request`. `whenEmpty`: what an empty body stands for; undefined:
 * it is rejected.
 */
export async function readJsonObject(
  request: IncomingMessage,
  pace: () => Promise<void>,
  whenEmpty?: object,
): Promise<object> {
  if (!hasBody(request)) return whenEmpty ?? rejectEmpty()
  assertPlainJson(request)
  const bytes = await readBody(request, LIMITS.apiBodyBytes)
  if (bytes.length === 0) return whenEmpty ?? rejectEmpty()
  await pace()
  return parseJsonObject(bytes)
}

/** Of a field that is given twice the last one counts. Throws AppError `invalid_request`. */
export function parseJsonObject(bytes: Uint8Array): object {
  const text = decodeUtf8(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalidBody(`is not valid JSON${describePosition(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidBody('must be a JSON object')
  return value
}

function rejectEmpty(): never {
  throw invalidBody('is empty; send a JSON object')
}
const invalidBody = (message: string) => invalidFields('body', [{ path: '', message }])

function assertPlainJson({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding !== 'identity' && encoding !== '') {
    throw new AppError(
      'unsupported_media_type',
      'compressed bodies are not accepted; send the body without Content-Encoding',
    )
  }
  const type = parseMediaType(headers['content-type'])
  if (type?.essence !== 'application/json') {
    throw new AppError('unsupported_media_type', 'the body must be JSON; send Content-Type: application/json')
  }
  const charset = type.params.get('charset')?.toLowerCase() ?? 'utf-8'
  if (charset !== 'utf-8' && charset !== 'utf8') {
    throw new AppError('unsupported_media_type', 'the body must be UTF-8; send Content-Type: application/json')
  }
}

function parseMediaType(header: string | undefined): MIMEType | null {
  try {
    return header === undefined ? null : new MIMEType(header)
  } catch {
    return null
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes)
  } catch {
    throw invalidBody('is not valid UTF-8')
  }
}

/** The position from V8's message. The rest of the message is not used: it quotes the text, which can be a password. */
function describePosition(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const position = /\(line (\d+) column (\d+)\)/.exec(message)
  if (position !== null) return `: see line ${position[1]}, column ${position[2]}`
  return message.includes('end of JSON') ? ': it ends too early' : ''
}
