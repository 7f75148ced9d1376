import { TransportError } from './errors.ts'

/** One line of a watch. The object of a BOOKMARK has only a resource version, that of an ERROR is a metav1.Status. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: T
}

const NEWLINE = 0x0a
/**
 * An object has at most 1.5 MB in etcd, and some times that as JSON. The limit only ends a response that is not a
 * watch.
 */
const MAX_LINE_BYTES = 32 * 1024 * 1024

/**
 * Yields the events of a watch as their bytes arrive. Lines are split as bytes and decoded whole: the byte of a newline
 * is never part of another character, so no character is torn between two chunks.
 *
 * Throws TransportError for a line that is not an event, and for an end in the middle of a line; its text never holds
 * the line.
 */
export async function* readWatchEvents<T>(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent<T>> {
  let started: Uint8Array[] = []
  let startedBytes = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const rest = chunk.subarray(from, end)
      const line = startedBytes === 0 ? rest : Buffer.concat([...started, rest])
      started = []
      startedBytes = 0
      from = end + 1
      if (line.length > 0) yield parseEvent<T>(line)
    }
    if (from < chunk.length) {
      started.push(chunk.subarray(from))
      startedBytes += chunk.length - from
      if (startedBytes > MAX_LINE_BYTES)
        throw new TransportError(`the watch sent a line of more than ${MAX_LINE_BYTES} bytes`)
    }
  }
  if (startedBytes > 0) throw new TransportError(`the watch ended after ${startedBytes} bytes of a line`)
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'])

function parseEvent<T>(line: Uint8Array): WatchEvent<T> {
  const broken = () => new TransportError(`the watch sent a line of ${line.length} bytes that is not an event`)
  let event: Partial<WatchEvent<T>> | null
  try {
    event = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line))
  } catch {
    // Without a cause: JSON.parse quotes its input, which may be a Secret.
    throw broken()
  }
  if (!TYPES.has(event?.type) || typeof event?.object !== 'object' || event.object === null) throw broken()
  return event as WatchEvent<T>
}
