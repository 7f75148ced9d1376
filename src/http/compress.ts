/** A compressor holds half a megabyte: few run, few wait, and the others send their text as it is. */

import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Context } from 'koa'
import { createLimiter } from '../runtime/limiter.ts'
import { COMPRESSIONS } from './limits.ts'

const compressBr = promisify(brotliCompress)
const compressGzip = promisify(gzip)
/** Of brotli, 0 to 11. At 4 it takes about a millisecond for a list. */
const PAGE_QUALITY = 4
/** For what is compressed once. */
const BEST_QUALITY = 9
/** Shorter texts would not become smaller. */
const LEAST_BYTES = 1_024

export type Encoding = 'br' | 'gzip' | 'identity'

export interface Encoded {
  readonly encoding: Encoding
  readonly bytes: Buffer
}

class TooMany extends Error {}

const inTurn = createLimiter({ ...COMPRESSIONS, createError: () => new TooMany() })

/** What the client prefers. */
export function encodingOf(ctx: Context): Encoding {
  // Clients that accept both list them in any order.
  if (ctx.acceptsEncodings('br')) return 'br'
  return ctx.acceptsEncodings('gzip') ? 'gzip' : 'identity'
}

/** Not compressed where it would not become smaller, or too many wait. */
export async function compressPage(content: Buffer, encoding: Encoding): Promise<Encoded> {
  if (encoding === 'identity' || content.length < LEAST_BYTES) return { encoding: 'identity', bytes: content }
  try {
    return { encoding, bytes: await inTurn(() => compress(content, encoding, PAGE_QUALITY)) }
  } catch (error) {
    if (error instanceof TooMany) return { encoding: 'identity', bytes: content }
    throw error
  }
}

export function compressOnce(content: Buffer): (encoding: Encoding) => Promise<Buffer> {
  const made = new Map<Encoding, Promise<Buffer>>()
  return (encoding) => {
    const known = made.get(encoding)
    if (known !== undefined) return known
    const bytes = compress(content, encoding, BEST_QUALITY)
    made.set(encoding, bytes)
    return bytes
  }
}

export function sendEncoded(ctx: Context, { encoding, bytes }: Encoded): void {
  ctx.vary('Accept-Encoding')
  if (encoding !== 'identity') ctx.set('Content-Encoding', encoding)
  ctx.body = bytes
}

async function compress(content: Buffer, encoding: Encoding, quality: number): Promise<Buffer> {
  if (encoding === 'gzip') return compressGzip(content)
  if (encoding === 'identity') return content
  return compressBr(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
  })
}
