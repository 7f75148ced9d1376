/** Reads the body of a response that others send: however they cut it up, no more is kept than its bytes. */

import type { Readable } from 'node:stream'
import { isCutOff } from './short-chunks.ts'

const FIRST_BYTES = 1_024

export interface BodyLimits {
  /** Of a longer body the rest is not read. */
  readonly maxBytes: number
  /** What is kept. Default: all of it. */
  readonly keptBytes?: number
}

export interface BoundedBody {
  readonly bytes: Buffer
  /** `cut`: it is longer, or comes in too many short chunks (short-chunks.ts). */
  readonly end: 'whole' | 'cut' | Error
}

/**
 * Never rejects. A body that is cut is destroyed, and so is its connection. It is read by events, because an iterator
 * keeps the pieces that wait for it.
 */
export function readBounded(body: Readable, { maxBytes, keptBytes = maxBytes }: BodyLimits): Promise<BoundedBody> {
  return new Promise((resolve) => {
    let kept = Buffer.allocUnsafe(Math.min(FIRST_BYTES, keptBytes))
    let length = 0
    let bytes = 0
    const finish = (end: BoundedBody['end']) => resolve({ bytes: kept.subarray(0, length), end })
    body.on('data', (piece: Buffer) => {
      bytes += piece.length
      const fits = Math.min(piece.length, keptBytes - length)
      if (length + fits > kept.length) {
        const larger = Buffer.allocUnsafe(Math.min(keptBytes, Math.max(2 * kept.length, length + fits)))
        kept.copy(larger, 0, 0, length)
        kept = larger
      }
      length += piece.copy(kept, length, 0, fits)
      if (bytes <= maxBytes && !(isCutOff(body) && body.readableLength === 0)) return
      finish('cut')
      body.destroy()
    })
    body.on('end', () => finish('whole'))
    body.on('error', finish)
    body.on('close', () => finish(new Error('the response broke off')))
  })
}
