/** Reads the JSON object that a request carries. Every refusal says what was wrong; the body's own text is never repeated. */

import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { hasBody, readBody } from '../body.ts'
import { refuseFields, shorten } from './faults.ts'

/**
 * At most 65,536 bytes of UTF-8 JSON holding an object. Throws AppError `unsupported_media_type` (another media type, another
 * charset, compressed), `too_large`, or `invalid`.
 */
export async function readJsonObject(request: IncomingMessage): Promise<object> {
  if (!hasBody(request)) throw nothingSent()
  assertPlainJson(request)
  const bytes = await readBody(request, LIMITS.apiBodyBytes)
  if (bytes.length === 0) throw nothingSent()
  return parseJsonObject(bytes)
}

/** Throws AppError `invalid`. A field given twice is refused: which one was meant is anybody's guess (RFC 8259, section 4). */
export function parseJsonObject(bytes: Uint8Array): object {
  const text = decodeUtf8(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new AppError('invalid', `the body is not valid JSON${describePosition(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AppError('invalid', 'the body must be a JSON object')
  const repeated = findRepeatedField(text)
  if (repeated !== null) throw refuseFields('body', [{ path: shorten(repeated), message: 'is given more than once' }])
  return value
}

function nothingSent(): AppError {
  return new AppError('invalid', 'the body is empty; send a JSON object')
}

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
    throw new AppError('invalid', 'the body is not valid UTF-8')
  }
}

/** V8 says where for most faults, and repeats a part of the text, which may be a password, for all. */
function describePosition(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const place = /\(line (\d+) column (\d+)\)/.exec(message)
  if (place !== null) return `: see line ${place[1]}, column ${place[2]}`
  return message.includes('end of JSON') ? ': it ends too early' : ''
}

const NO_NAMES: Set<string> = new Set()
const COLON = /[\t\n\r ]*:/y

/** The first name that some object of `json`, which must be valid, holds twice. JSON.parse keeps the last one and tells nobody. */
function findRepeatedField(json: string): string | null {
  const open: Set<string>[] = []
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at]
    if (char === '{') open.push(new Set())
    else if (char === '[') open.push(NO_NAMES)
    else if (char === '}' || char === ']') open.pop()
    else if (char === '"') {
      const end = findStringEnd(json, at)
      COLON.lastIndex = end + 1
      // Only a name stands before a colon.
      if (COLON.test(json)) {
        const names = open.at(-1)!
        // Read, for a name may be spelled with escapes.
        const name = JSON.parse(json.slice(at, end + 1)) as string
        if (names.has(name)) return name
        names.add(name)
      }
      at = end
    }
  }
  return null
}

function findStringEnd(json: string, start: number): number {
  let at = start + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at
}
