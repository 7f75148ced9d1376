/** Makes the bytes of a request from its method, target, headers and body, with valid or invalid framing. */

import { LAST_CHUNK, writeChunk, writeHead } from '../../support/http.ts'
import type { Random } from '../../support/random.ts'
import { mutateBytes } from './mutations.ts'
import type { MadeRequest } from './run.ts'

export interface Parts {
  readonly method: string
  /** No spaces and no control characters. */
  readonly target: string
  /** Lines without framing. */
  readonly headers: readonly string[]
  /** Null: none, and nothing about it in the head. */
  readonly body: Buffer | null
}

export const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'M-SEARCH',
  'PING',
]

/** Mostly as it is, sometimes broken. */
export function writeRequest(random: Random, parts: Parts): MadeRequest {
  const { method } = parts
  const roll = random.int(0, 99)
  if (roll < 75) return { bytes: writeWhole(random, parts), method, ending: 'answer' }
  const ending = random.pick(['end', 'end', 'end', 'leave'] as const)
  // After a HEAD the reader cannot know whether the bytes that follow are a body.
  const named = method === 'HEAD' ? { ...parts, method: 'GET' } : parts
  const make = () => {
    if (roll < 85) return writeBadFraming(random, named)
    if (roll < 93) return mutateBytes(random, writeWhole(random, named))
    if (roll < 97) {
      const whole = writeWhole(random, named)
      return whole.subarray(0, random.int(0, whole.length))
    }
    return writeGarbage(random)
  }
  return { bytes: make(), method: named.method, ending }
}

function writeWhole(random: Random, { method, target, headers, body }: Parts): Buffer {
  if (body === null) return Buffer.from(writeHead(method, target, ...headers), 'latin1')
  if (random.chance(0.7)) {
    const head = writeHead(method, target, ...headers, `Content-Length: ${body.length}`)
    return Buffer.concat([Buffer.from(head, 'latin1'), body])
  }
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const end = at + random.pick([1, 7, 100, 5_000, 100_000])
    chunks.push(writeChunk(body.subarray(at, end)))
    at = end
  }
  const head = writeHead(method, target, ...headers, 'Transfer-Encoding: chunked')
  const last = random.chance(0.1) ? '0;note=x\r\nX-Trailer: y\r\n\r\n' : LAST_CHUNK
  return Buffer.concat([Buffer.from(head, 'latin1'), ...chunks, Buffer.from(last)])
}

function writeBadFraming(random: Random, { method, target, headers, body }: Parts): Buffer {
  const bytes = body ?? Buffer.from('x')
  const framing = random.pick([
    `Content-Length: ${bytes.length + random.int(1, 100)}`,
    `Content-Length: ${Math.max(0, bytes.length - random.int(1, 100))}`,
    'Content-Length: -1',
    'Content-Length: 1e3',
    'Content-Length: ',
    'Content-Length: 99999999999999999999',
    `Content-Length: ${bytes.length}\r\nContent-Length: ${bytes.length + 1}`,
    `Content-Length: ${bytes.length}\r\nTransfer-Encoding: chunked`,
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: gzip',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: ',
  ])
  const sizes = ['zz', '-1', 'ffffffffffffffff', '5', '0x5', '', ' 5', '5;x="\r\n']
  const payload = random.chance(0.5)
    ? bytes
    : Buffer.concat([Buffer.from(`${random.pick(sizes)}\r\n`), bytes.subarray(0, 200), Buffer.from('\r\n0\r\n\r\n')])
  return Buffer.concat([Buffer.from(writeHead(method, target, ...headers, framing), 'latin1'), payload])
}

function writeGarbage(random: Random): Buffer {
  return random.pick([
    () => random.bytes(random.int(1, 2_000)),
    () => Buffer.from('\r\n'.repeat(random.int(1, 50))),
    () => Buffer.from('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'latin1'),
    () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    () => Buffer.from(`GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(random.int(1, 4_000))}\r\n`),
    () => Buffer.from(`GET /${'x'.repeat(random.int(10_000, 40_000))} HTTP/1.1\r\nHost: x\r\n\r\n`),
    () => Buffer.from('CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'),
    () => Buffer.from('GET / HTTP/0.9\r\n\r\n'),
    () =>
      Buffer.from(
        `GET ${random.pick(['http://[', 'http://', 'ftp://x/', 'http://x:y@z:w/', '//', '*', '#'])} HTTP/1.1\r\nHost: x\r\n\r\n`,
      ),
  ])()
}
