/** Reads the JSON object in a request's body. An error never quotes the body's text. */

import type { IncomingMessage } from 'node:http'
import { MIMEType } from 'node:util'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { hasBody, readBody } from '../body.ts'
import { invalidFields, shorten } from './faults.ts'

/** At most 65,536 bytes. `pace` resolves when they may be parsed. Throws AppError `unsupported_media_type` (other type or charset, or compressed), `too_large`, or `invalid`. */
export async function readJsonObject(request: IncomingMessage, pace: () => Promise<void>): Promise<object> {
  if (!hasBody(request)) throw emptyBody()
  assertPlainJson(request)
  const bytes = await readBody(request, LIMITS.apiBodyBytes)
  if (bytes.length === 0) throw emptyBody()
  await pace()
  return parseJsonObject(bytes)
}

/** Throws AppError `invalid`, also for a field that is given twice: RFC 8259, section 4, does not say which one counts. */
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
  if (repeated !== null) throw invalidFields('body', [{ path: shorten(repeated), message: 'is given more than once' }])
  return value
}

function emptyBody(): AppError {
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

/** The position from V8's message. The rest of the message is not used: it quotes the text, which can be a password. */
function describePosition(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const position = /\(line (\d+) column (\d+)\)/.exec(message)
  if (position !== null) return `: see line ${position[1]}, column ${position[2]}`
  return message.includes('end of JSON') ? ': it ends too early' : ''
}

const NO_NAMES: Set<string> = new Set()
/** Many times what any request needs. 64 KB of names that no schema knows would take 30 ms of the process. */
export const MAX_NAMES = 1_000
const COLON = /[\t\n\r ]*:/y

/**
 * The first name that an object in `json` (valid JSON) holds twice, or null. JSON.parse silently keeps the last one, before its reviver sees the
 * object: only a scan of the text finds it.
 */
function findRepeatedField(json: string): string | null {
  const open: Set<string>[] = []
  let count = 0
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at]
    if (char === '{') open.push(new Set())
    else if (char === '[') open.push(NO_NAMES)
    else if (char === '}' || char === ']') open.pop()
    else if (char === '"') {
      const end = findStringEnd(json, at)
      COLON.lastIndex = end + 1
      // A string before a colon is a name.
      if (COLON.test(json)) {
        const names = open.at(-1)!
        count += 1
        if (count > MAX_NAMES) throw new AppError('invalid', `the body has more than ${MAX_NAMES} fields`)
        // Parsed, because a name can be written with escapes.
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
