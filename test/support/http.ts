/**
 * HTTP as bytes on a socket: for requests that fetch refuses to send, and for answers of which it hides half. It reads
 * strictly, so an answer that is not HTTP, or not whole, fails the test that receives it.
 */

import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly status: number
  /** By lower-case name; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly text: string
}

export interface Connection {
  readonly socket: Socket
  /** Strings are written as Latin-1: a character, a byte. */
  send(...parts: readonly (string | Buffer)[]): void
  /** The next answer, interim ones (1xx) included; `method` is that of its request. Rejects when the connection ends before. */
  receive(method?: string): Promise<Answer>
  /** Resolves when the connection is gone, with the bytes that were not received and with the error if it was cut. */
  readonly ended: Promise<{ rest: string; error: Error | null }>
}

export interface ConnectionOptions {
  /** Stay when the server says that it will send no more. */
  readonly allowHalfOpen?: boolean
  /** The address from which it comes, of the loopback network. */
  readonly localAddress?: string
}

const PATIENCE_MS = 45_000

export function openConnection(
  url: string,
  { allowHalfOpen = false, localAddress }: ConnectionOptions = {},
): Connection {
  const { hostname, port } = new URL(url)
  const from = localAddress === undefined ? {} : { localAddress }
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen, noDelay: true, ...from })
  let received: Buffer = Buffer.alloc(0)
  let error: Error | null = null
  let isOver = false
  let wake = () => {}
  const { promise: ended, resolve } = Promise.withResolvers<{ rest: string; error: Error | null }>()
  const finish = () => {
    isOver = true
    wake()
  }
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  socket.on('end', finish)
  socket.on('error', (problem) => {
    error = problem
  })
  socket.on('close', () => {
    finish()
    resolve({ rest: received.toString('latin1'), error })
  })

  async function receive(method = 'GET'): Promise<Answer> {
    const giveUpAt = performance.now() + PATIENCE_MS
    for (;;) {
      const found = readAnswer(received, method, isOver)
      if (found !== null) {
        received = received.subarray(found.length)
        return found.answer
      }
      const soFar = JSON.stringify(received.toString('latin1'))
      if (isOver) throw new Error(`the connection ended before the answer did, after ${soFar}`, { cause: error })
      const leftMs = giveUpAt - performance.now()
      if (leftMs <= 0) throw new Error(`no answer within ${PATIENCE_MS} ms, only ${soFar}`)
      await new Promise<void>((next) => {
        const timer = setTimeout(next, leftMs)
        wake = () => {
          clearTimeout(timer)
          next()
        }
      })
    }
  }

  return {
    socket,
    ended,
    receive,
    send(...parts) {
      for (const part of parts) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
    },
  }
}

/** One request on a connection of its own; gives its final answer. */
export async function exchange(url: string, ...parts: readonly (string | Buffer)[]): Promise<Answer> {
  const connection = openConnection(url)
  try {
    connection.send(...parts)
    const method = /^[A-Z]+/.exec(parts[0]!.toString('latin1'))?.[0]
    for (;;) {
      const answer = await connection.receive(method)
      if (answer.status >= 200) return answer
    }
  } finally {
    connection.socket.destroy()
  }
}

/** A client that has the head of the response, and reads nothing more. */
export function openUnread(
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request(url, { method, headers, agent: false }, (response) => resolve(response.pause()))
    .on('error', reject)
    .end()
  return promise
}

/** The response as it came, nothing unpacked. */
export async function getRaw(
  ...given: Parameters<typeof openUnread>
): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }> {
  const response = await openUnread(...given)
  return {
    status: response.statusCode!,
    headers: response.headers,
    body: Buffer.concat((await response.toArray()) as Buffer[]),
  }
}

/** Host is always there; give `Connection: close` or framing yourself. */
export function writeHead(method: string, target: string, ...headers: readonly string[]): string {
  return [`${method} ${target} HTTP/1.1`, 'Host: test', ...headers, '', ''].join('\r\n')
}

/** A POST with its length. */
export function writePost(target: string, body: Buffer | string, ...headers: readonly string[]): Buffer {
  const bytes = Buffer.from(body)
  return Buffer.concat([
    Buffer.from(writeHead('POST', target, ...headers, `Content-Length: ${bytes.length}`), 'latin1'),
    bytes,
  ])
}

export function writeChunk(data: Buffer | string): Buffer {
  const bytes = Buffer.from(data)
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

export const LAST_CHUNK = '0\r\n\r\n'

/** The first answer in `bytes` and its length; null when it is not whole yet. Throws for what is not an answer. */
export function readAnswer(bytes: Buffer, method: string, isOver: boolean): { answer: Answer; length: number } | null {
  const headLength = bytes.indexOf('\r\n\r\n') + 4
  if (headLength < 4) return null
  const [statusLine, ...lines] = bytes.toString('latin1', 0, headLength - 4).split('\r\n')
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [^\r\n]*$/.exec(statusLine!)?.[1])
  if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(statusLine)}`)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([^\r\n]*)$/.exec(line) ?? []
    if (name === undefined) throw new Error(`no header: ${JSON.stringify(line)}`)
    const key = name.toLowerCase()
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value!
  }
  const bodyLength = readBodyLength(status, headers, method, isOver ? bytes.length - headLength : null)
  if (bodyLength === null || bytes.length < headLength + bodyLength) return null
  const length = headLength + bodyLength
  const body = bytes.subarray(headLength, length)
  return { answer: { status, headers, body, text: body.toString('utf8') }, length }
}

/** RFC 9112, section 6.3. Null: until the connection ends, which it has not yet. */
function readBodyLength(
  status: number,
  headers: Record<string, string>,
  method: string,
  untilTheEnd: number | null,
): number | null {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 0
  if (headers['transfer-encoding'] !== undefined) throw new Error('a chunked answer: this reader knows none')
  const length = headers['content-length']
  if (length === undefined) return untilTheEnd
  if (!/^\d+$/.test(length)) throw new Error(`no length: ${JSON.stringify(length)}`)
  return Number(length)
}
