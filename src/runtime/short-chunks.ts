/** Messages in many short chunks, from clients and from receivers: each chunk costs as much as a thousand bytes. */

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/**
 * A chunk costs some 2 microseconds, however short. A job that sends each of its lines at once may send a thousand:
 * about as much text as is kept of a ping.
 */
export const SHORT_CHUNK_BYTES = 16
export const MOST_SHORT_CHUNKS = 1_024

const cutOff = new WeakSet<object>()

/** Whether a message has come in too many short chunks. What it has brought until then is emitted. */
export const isCutOff = (message: object) => cutOff.has(message)

/**
 * Reads no further after too many short chunks of a body, also of a body that is dropped. Call in the event of the
 * message itself, before Node has read the body. `onCutOff`: nothing more comes on this connection. Node calls `push`
 * for each chunk while Node parses, and may emit `data` only when all that was read is parsed.
 */
export function limitChunks(message: IncomingMessage, onCutOff?: (socket: Socket) => void): void {
  // Content-Length: a body without chunks.
  if (message.headers['transfer-encoding'] === undefined) return
  const push = message.push
  let shortChunks = 0
  message.push = (chunk: Buffer | null) => {
    if (chunk !== null && chunk.length < SHORT_CHUNK_BYTES) shortChunks += 1
    if (shortChunks > MOST_SHORT_CHUNKS && !cutOff.has(message)) {
      // A message that flows would begin to read again.
      message._read = () => {}
      message.socket.pause()
      skipRead(message.socket)
      cutOff.add(message)
      onCutOff?.(message.socket)
    }
    return push.call(message, chunk)
  }
}

interface Parser {
  readonly constructor: { readonly kOnBody?: number }
  [event: number]: unknown
}

/**
 * Drops the bodies in the rest of what Node has read of the connection. Node parses this rest of up to 64 KB although
 * the socket is paused: 10,000 chunks take 16 ms, and less than 1 ms without a listener. Node has no public interface
 * for this: when a release renames `parser` or `kOnBody`, a test fails.
 */
function skipRead(socket: Socket): void {
  const { parser } = socket as { parser?: Parser | null }
  const event = parser?.constructor.kOnBody
  if (!parser || event === undefined) return
  const listener = parser[event]
  parser[event] = null
  // The read is over then, and Node has not given the parser to another connection yet.
  setImmediate(() => {
    parser[event] = listener
  })
}
