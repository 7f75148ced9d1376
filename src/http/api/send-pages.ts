/**
 * Sends lists of any size in bounded memory. A list is read page by page, each page by a statement of its own, and written as the client reads. A list
 * of up to 1 MB is gathered and sent whole; so are errors before that. A larger one needs one of a few places; a list that finds none
 * free is dropped, waits without holding memory, and is then read again from the start. An organization has a part of the places: its slow readers and
 * slow statements do not delay the lists of others.
 */

import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { z } from 'zod'
import { AppError } from '../../domain/errors.ts'
import { startTimer } from '../../runtime/clock.ts'
import { createPlaces, createSharedPlaces, type Leave, type SharedPlaces } from '../../runtime/places.ts'
import { ClientLeft, IDLE_MS, whenFirst, writeBytes } from '../write.ts'

/** Bytes of a response's text. */
export const LARGE_BYTES = 1_048_576
/** Larger responses that are sent at the same time. */
export const LARGE_AT_ONCE = 4
/** Lists that are read, or sent whole, at the same time. */
export const LISTS_AT_ONCE = 16
/** Of these, those of one organization. */
export const LISTS_PER_ORGANIZATION = 4
/** Pages that are read at the same time: the others of PostgreSQL's processors are for pings. */
const PAGES_AT_ONCE = 2
/** Of these, those of one organization. */
const PAGES_PER_ORGANIZATION = 1
/** The longest wait for a place. */
const WAIT_MS = 5_000
/** How long a client may take to read a large list: slow readers hold the places that others wait for. */
const LARGE_MS = 300_000
/** How long a client may take to read a list that is sent whole: it is in memory until then. */
const WHOLE_MS = 30_000
/** A text of at most so many bytes gives its place back before it is sent: it needs little more memory than any other response. */
export const SMALL_BYTES = 65_536
const CHUNK_CHARACTERS = 32_768
const RETRY_SECONDS = 5

/** Pages of a list, or of an object of many fields: each has the shape of the response. Items are joined; other fields are those of the last page. */
export type Pages = AsyncIterable<object>

export interface PageSenderOptions {
  /** Resolves when no ping is being stored, or after a short time: pings have priority. */
  readonly yieldToPings: () => Promise<void>
  /** Resolves when it is the turn of a page, or of the next part of it, to be written as text. */
  readonly pace: () => Promise<void>
  /** An error in the middle of a response. The client sees a broken connection. */
  readonly onBroken: (error: unknown) => void
  /** For tests. */
  readonly waitMs?: number
  readonly idleMs?: number
  readonly wholeMs?: number
  readonly largeMs?: number
}

export interface List {
  /** Whose places the list takes. */
  readonly organizationId: string
  readonly status: number
  /** Of each page. */
  readonly schema: Pick<z.ZodType, 'parse'>
  /** Called again for a list that had to wait. */
  readonly read: () => Pages
}

/** Throws what `read` throws before anything is sent, or `unavailable`. */
export type SendPages = (ctx: Context, list: List) => Promise<void>

export function createPageSender(options: PageSenderOptions): SendPages {
  const { onBroken, waitMs = WAIT_MS, idleMs = IDLE_MS, wholeMs = WHOLE_MS, largeMs = LARGE_MS } = options
  const lists = createSharedPlaces(LISTS_AT_ONCE, LISTS_PER_ORGANIZATION)
  const large = createPlaces(LARGE_AT_ONCE)
  const { yieldToPings, pace } = options
  const turns = { yieldToPings, pace, pagePlaces: createSharedPlaces(PAGES_AT_ONCE, PAGES_PER_ORGANIZATION) }

  return async (ctx, list) => {
    const { res } = ctx
    const { organizationId, status } = list
    const places: Leave[] = []
    // The client may close the connection; without a listener that error would end the process.
    res.on('error', () => {})
    try {
      await whenFirst(res)
      const giveUpAt = performance.now() + waitMs
      const place = await lists.take(organizationId, waitMs)
      if (place === null) throw busy()
      places.push(place)
      let chunks = encode(list, turns)
      const start = await gather(chunks, res)
      if (start.isWhole || ctx.method === 'HEAD') {
        await chunks.return(undefined)
        if (start.size <= SMALL_BYTES) place()
        return await withinMs(wholeMs, res, () => sendWhole(ctx, status, start, idleMs))
      }
      let largePlace = large.takeNow()
      if (largePlace === null) {
        await chunks.return(undefined)
        start.bytes.length = 0
        place()
        largePlace = await large.take(Math.max(0, giveUpAt - performance.now()))
        if (largePlace === null) throw busy()
        chunks = encode(list, turns)
      }
      places.push(largePlace)
      place()
      await withinMs(largeMs, res, () => sendLarge(ctx, status, [start.bytes, chunks], idleMs))
    } catch (error) {
      if (!(error instanceof ClientLeft)) {
        if (!res.headersSent) throw error
        onBroken(error)
      }
      ctx.respond = false
      res.destroy()
    } finally {
      for (const leave of places) leave()
    }
  }
}

function busy(): AppError {
  const message = `too many large lists are being read at the moment; try again in ${RETRY_SECONDS} s, or ask for less with limit or body`
  return new AppError('unavailable', message, { retryAfterSeconds: RETRY_SECONDS })
}

/** The text of the response, in chunks. */
async function* encode(list: List, turns: Turns): AsyncGenerator<Buffer, undefined> {
  const { pace } = turns
  let text = ''
  let rest: object | undefined
  let end = ']'
  let isFirst = true
  for await (const page of inTurns(list, turns)) {
    await pace()
    const { name, items, others } = splitPage(list.schema.parse(page) as object)
    const isList = Array.isArray(items)
    if (rest === undefined) text = `{${JSON.stringify(name)}:${isList ? '[' : '{'}`
    rest = others
    end = isList ? ']' : '}'
    for (const [key, item] of Object.entries(items)) {
      text += `${isFirst ? '' : ','}${isList ? '' : `${JSON.stringify(key)}:`}${JSON.stringify(item)}`
      isFirst = false
      if (text.length < CHUNK_CHARACTERS) continue
      yield Buffer.from(text)
      text = ''
      await pace()
    }
  }
  const fields = JSON.stringify(rest).slice(1)
  yield Buffer.from(`${text}${end}${fields === '}' ? '' : ','}${fields}`)
}

interface Turns extends Pick<PageSenderOptions, 'yieldToPings' | 'pace'> {
  readonly pagePlaces: SharedPlaces
}

/** Reads each page when pings leave room, and few at a time. */
async function* inTurns({ organizationId, read }: List, { yieldToPings, pagePlaces }: Turns): AsyncGenerator<object> {
  const iterator = read()[Symbol.asyncIterator]()
  for (;;) {
    const leave = await pagePlaces.take(organizationId, Number.POSITIVE_INFINITY)
    const next = await readNext(iterator, yieldToPings).finally(() => leave?.())
    if (next.done) return
    yield next.value
  }
}

async function readNext(iterator: AsyncIterator<object>, yieldToPings: () => Promise<void>) {
  await yieldToPings()
  return iterator.next()
}

/** A page has one field that is a list, or else an object. */
function splitPage(page: object): { name: string; items: object; others: object } {
  const fields = Object.entries(page)
  const found = fields.find(([, value]) => Array.isArray(value)) ?? fields.find(([, value]) => value instanceof Object)
  const [name, items] = found as [string, object]
  return { name, items, others: Object.fromEntries(fields.filter(([field]) => field !== name)) }
}

interface Start {
  /** Emptied as it is sent. */
  readonly bytes: Buffer[]
  readonly size: number
  readonly isWhole: boolean
}

async function gather(chunks: AsyncGenerator<Buffer, undefined>, response: ServerResponse): Promise<Start> {
  const bytes: Buffer[] = []
  let size = 0
  for (;;) {
    const next = await chunks.next()
    if (response.destroyed) throw new ClientLeft()
    if (next.done) return { bytes, size, isWhole: true }
    bytes.push(next.value)
    size += next.value.length
    if (size > LARGE_BYTES) return { bytes, size, isWhole: false }
  }
}

/** Leaves Content-Length out for a HEAD of a large list: its length is not known. */
async function sendWhole(ctx: Context, status: number, { bytes, size, isWhole }: Start, idleMs: number): Promise<void> {
  begin(ctx, status)
  if (isWhole) ctx.length = size
  if (ctx.method !== 'HEAD') await writeAll(ctx.res, bytes, idleMs)
  ctx.res.end()
}

async function sendLarge(
  ctx: Context,
  status: number,
  [start, chunks]: readonly [Buffer[], AsyncGenerator<Buffer, undefined>],
  idleMs: number,
): Promise<void> {
  const { res } = ctx
  begin(ctx, status)
  await writeAll(res, start, idleMs)
  for await (const chunk of chunks) await writeBytes(res, chunk, idleMs)
  res.end()
}

/** Disconnects a client that takes longer to read. */
async function withinMs(ms: number, response: ServerResponse, send: () => Promise<void>): Promise<void> {
  const stopTimer = startTimer(ms, () => response.destroy())
  try {
    await send()
  } finally {
    stopTimer()
  }
}

function begin(ctx: Context, status: number): void {
  if (ctx.res.destroyed) throw new ClientLeft()
  ctx.respond = false
  ctx.status = status
  ctx.type = 'json'
}

async function writeAll(response: ServerResponse, bytes: Buffer[], idleMs: number): Promise<void> {
  for (let chunk = bytes.shift(); chunk !== undefined; chunk = bytes.shift()) await writeBytes(response, chunk, idleMs)
}
