/** H1: lists of any size are sent in bounded memory, a few large ones at a time. */

import { type IncomingMessage, request } from 'node:http'
import Koa from 'koa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { unavailable } from '../../../src/domain/errors.ts'
import {
  createPageSender,
  LARGE_AT_ONCE,
  LARGE_BYTES,
  LISTS_AT_ONCE,
  LISTS_PER_ORGANIZATION,
  type PageSenderOptions,
  SMALL_BYTES,
} from '../../../src/http/api/send-pages.ts'
import { renderErrors } from '../../../src/http/middleware/errors.ts'
import { createHttpServer } from '../../../src/http/server.ts'
import { openConnection, writeHead } from '../../support/http.ts'
import { silentLog } from '../../support/silent-log.ts'
import { until } from '../../support/until.ts'

const Words = z.object({
  words: z.array(z.string()),
  next_cursor: z.string().optional(),
})
type Words = z.input<typeof Words>

/** The text around the items `["..."]` of one page. */
const FRAME = '{"words":[""]}'.length

async function* pagesOf(...pages: Words[]): AsyncGenerator<Words> {
  yield* pages
}

interface StartOptions extends Partial<PageSenderOptions> {
  /** By path: acts instead of the kernel, which takes some megabytes for a client that reads nothing. Calls `taken` when the client has read a piece. */
  readonly readers?: Record<string, (taken: () => void) => void>
}

/** `pages`: what a path has. `reads`: how many lists were begun. The query is the organization. */
async function start(
  pages: Record<string, () => AsyncIterable<Words>>,
  { readers = {}, ...options }: StartOptions = {},
) {
  const broken: unknown[] = []
  const send = createPageSender({
    yieldToPings: async () => {},
    pace: async () => {},
    onBroken: (error) => broken.push(error),
    ...options,
  })
  const counts = { reads: 0 }
  const app = new Koa({ env: 'production' })
  app.on('error', () => {})
  app.use(renderErrors(silentLog))
  app.use((ctx) => {
    const path = ctx.path.slice(1)
    const reader = readers[path]
    if (reader !== undefined)
      ctx.res.write = (_piece: unknown, taken: unknown) => {
        reader(taken as () => void)
        return true
      }
    const read = () => {
      counts.reads += 1
      return pages[path]!()
    }
    return send(ctx, { organizationId: ctx.querystring, status: 200, schema: Words, read })
  })
  const server = createHttpServer({
    name: 'api',
    handler: app.callback(),
    bindAddress: '127.0.0.1',
    port: 0,
    errorText: (text) => ({ type: 'text/plain', text }),
  })
  const { port } = await server.listen()
  onTestFinished(() => server.close(0))
  return { url: `http://127.0.0.1:${port}`, counts, broken }
}

/** A client that begins to read when the test says so. */
function open(url: string, method = 'GET'): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = request(url, { method, agent: false }, resolve)
  sent.on('error', reject)
  sent.end()
  return promise
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** Endless, in pages of about 100 KB; counts what was asked of it. */
function createFlood() {
  const flood = {
    pages: 0,
    async *read(): AsyncGenerator<Words> {
      for (;;) {
        flood.pages += 1
        yield { words: ['x'.repeat(100_000)] }
      }
    },
  }
  return flood
}

describe('a list', () => {
  it('is the items of all its pages, and the other fields of the last', async () => {
    const { url } = await start({
      empty: () => pagesOf({ words: [] }),
      three: () => pagesOf({ words: ['a', 'ü'], next_cursor: 'b' }, { words: [], next_cursor: 'c' }, { words: ['d'] }),
      more: () => pagesOf({ words: ['a'] }, { words: ['b'], next_cursor: 'c' }),
    })
    const text = async (path: string) => (await fetch(`${url}/${path}`)).text()
    expect(await text('empty')).toBe('{"words":[]}')
    expect(await text('three')).toBe('{"words":["a","ü","d"]}')
    expect(await text('more')).toBe('{"words":["a","b"],"next_cursor":"c"}')
  })

  it.each([
    [LARGE_BYTES, `${LARGE_BYTES}`],
    [LARGE_BYTES + 1, null],
  ])('of %d bytes has the Content-Length %s: it is sent as it is read above 1 MB', async (size, length) => {
    const { url } = await start({ list: () => pagesOf({ words: ['x'.repeat(size - FRAME)] }) })
    const response = await fetch(`${url}/list`)
    expect([response.status, response.headers.get('content-length')]).toEqual([200, length])
    expect((await response.text()).length).toBe(size)
    const head = await fetch(`${url}/list`, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, length, ''])
  })

  it('is measured as it is sent: a control character has six bytes', async () => {
    const { url } = await start({ list: () => pagesOf({ words: ['\u0001'.repeat(LARGE_BYTES / 5)] }) })
    const response = await fetch(`${url}/list`)
    expect(response.headers.get('content-length')).toBeNull()
    expect(((await response.json()) as Words).words[0]!.length).toBe(Math.floor(LARGE_BYTES / 5))
  })

  it('that fails before it is sent is an error; in the middle, a broken connection', async () => {
    async function* failing(bytes: number): AsyncGenerator<Words> {
      yield { words: ['x'.repeat(bytes)] }
      throw unavailable(new Error('the database left'))
    }
    const { url, broken } = await start({ small: () => failing(10), large: () => failing(2 * LARGE_BYTES) })
    const early = await fetch(`${url}/small`)
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '5'])
    expect(broken).toEqual([])
    await expect(open(`${url}/large`).then(readText)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(broken).toMatchObject([{ code: 'unavailable' }])
  })

  it('begins each page when pings leave room, two pages of all lists at a time, one of an organization', async () => {
    const calls: string[] = []
    const gate = Promise.withResolvers<void>()
    const yieldToPings = async () => {
      calls.push('yield')
      await gate.promise
    }
    const pace = async () => void calls.push('pace')
    const list = () => pagesOf({ words: ['a'] }, { words: ['b'] })
    const { url } = await start({ list }, { yieldToPings, pace })
    const lists = ['a', 'a', 'b', 'b', 'c', 'c'].map((organization) => fetch(`${url}/list?${organization}`))
    await until(() => calls.length === 2)
    expect(calls).toEqual(['yield', 'yield'])
    gate.resolve()
    for (const response of await Promise.all(lists)) expect(await response.text()).toBe('{"words":["a","b"]}')
    // The end of a list is found like a page.
    expect(calls.filter((call) => call === 'yield')).toHaveLength(6 * 3)
    expect(calls.filter((call) => call === 'pace')).toHaveLength(6 * 2)
  })

  it('H1: slow statements of one organization do not delay the lists of another', async () => {
    const gate = Promise.withResolvers<void>()
    async function* slow(): AsyncGenerator<Words> {
      await gate.promise
      yield { words: ['slow'] }
    }
    const { url, counts } = await start({ slow, list: () => pagesOf({ words: ['a'] }) })
    const sent = [fetch(`${url}/slow?a`), fetch(`${url}/slow?a`)]
    await until(() => counts.reads === 2)
    expect(await (await fetch(`${url}/list?b`)).json()).toEqual({ words: ['a'] })
    gate.resolve()
    for (const response of await Promise.all(sent)) expect(await response.json()).toEqual({ words: ['slow'] })
  })

  it(`H1: takes one of ${LISTS_PER_ORGANIZATION} places of its organization, and one of ${LISTS_AT_ONCE} in all, until it is read`, async () => {
    const { url, counts } = await start(
      { unread: () => pagesOf({ words: ['x'.repeat(900_000)] }), list: () => pagesOf({ words: ['a'] }) },
      { waitMs: 100, readers: { unread: () => {} } },
    )
    const openUnread = (organization: string, count: number) =>
      Array.from({ length: count }, () => open(`${url}/unread?${organization}`).catch(() => null))
    const rejected = Promise.any(
      openUnread('a', LISTS_AT_ONCE).map(async (sent) => expect((await sent)?.statusCode).toBe(503)),
    )
    await until(() => counts.reads === LISTS_PER_ORGANIZATION)
    expect((await fetch(`${url}/list?b`)).status).toBe(200)
    await rejected
    expect(counts.reads).toBe(LISTS_PER_ORGANIZATION + 1)
    for (const organization of ['b', 'c', 'd']) openUnread(organization, LISTS_PER_ORGANIZATION)
    await until(() => counts.reads === LISTS_AT_ONCE + 1)
    const late = await fetch(`${url}/list?e`)
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '5'])
  })

  it(`H1: of at most ${SMALL_BYTES} bytes gives its place back before it is read`, async () => {
    const list = (size: number) => () => pagesOf({ words: ['x'.repeat(size - FRAME)] })
    const readers = { list: () => {} }
    const openAll = (url: string, count: number) => {
      for (let sent = 0; sent < count; sent += 1) open(`${url}/list`).catch(() => null)
    }
    // One of them waits for a moment.
    const small = await start({ list: list(SMALL_BYTES) }, { readers })
    openAll(small.url, LISTS_PER_ORGANIZATION + 1)
    await until(() => small.counts.reads === LISTS_PER_ORGANIZATION + 1)
    const larger = await start({ list: list(SMALL_BYTES + 1) }, { waitMs: 100, readers })
    openAll(larger.url, LISTS_PER_ORGANIZATION)
    await until(() => larger.counts.reads === LISTS_PER_ORGANIZATION)
    expect((await fetch(`${larger.url}/list`)).status).toBe(503)
  })

  it('H1: that is sent whole is cut off when its client reads too slowly, and gives its place back', async () => {
    const { url, broken } = await start(
      { slow: () => pagesOf({ words: ['x'.repeat(900_000)] }), list: () => pagesOf({ words: ['a'] }) },
      { wholeMs: 200, readers: { slow: (taken) => setTimeout(taken, 40) } },
    )
    const sent = Array.from({ length: LISTS_PER_ORGANIZATION }, () => open(`${url}/slow`))
    for (const { status, reason } of (await Promise.allSettled(sent)) as PromiseRejectedResult[])
      expect([status, reason.code]).toEqual(['rejected', 'ECONNRESET'])
    expect((await fetch(`${url}/list`)).status).toBe(200)
    expect(broken).toEqual([])
  })
})

describe('a large list', () => {
  it('is read as fast as its client reads, and never far ahead', async () => {
    const flood = createFlood()
    const { url } = await start({ flood: flood.read })
    const response = await open(`${url}/flood`)
    response.pause()
    let before = -1
    await until(() => flood.pages > 10)
    // The kernel takes some megabytes.
    while (flood.pages > before) {
      before = flood.pages
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(before).toBeGreaterThan(10)
    expect(before).toBeLessThan(200)
    response.resume()
    await until(() => flood.pages > before + 100)
    response.destroy()
  })

  it(`is one of ${LARGE_AT_ONCE} at a time: the next waits without holding anything, and is sent when one ends`, async () => {
    const flood = createFlood()
    const { url, counts } = await start({ flood: flood.read, small: () => pagesOf({ words: ['a'] }) })
    const sent = await Promise.all(Array.from({ length: LARGE_AT_ONCE }, () => open(`${url}/flood`)))
    for (const response of sent) response.pause()
    const waiting = open(`${url}/flood`)
    await until(() => counts.reads === LARGE_AT_ONCE + 1)
    expect(await (await fetch(`${url}/small`)).json()).toEqual({ words: ['a'] })
    sent[0]!.destroy()
    const fifth = await waiting
    expect(fifth.statusCode).toBe(200)
    // It was dropped, and read again.
    expect(counts.reads).toBe(LARGE_AT_ONCE + 3)
    for (const response of [...sent, fifth]) response.destroy()
  })

  it('that waits too long is 503 with Retry-After', async () => {
    const flood = createFlood()
    const { url } = await start({ flood: flood.read }, { waitMs: 100 })
    const sent = await Promise.all(Array.from({ length: LARGE_AT_ONCE }, () => open(`${url}/flood`)))
    for (const response of sent) response.pause()
    const late = await fetch(`${url}/flood`)
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await late.json()).toEqual({ error: expect.stringMatching(/^too many large lists .* try again in 5 s/) })
    for (const response of sent) response.destroy()
  })

  it('gives its place back when its client leaves', async () => {
    const flood = createFlood()
    const { url } = await start({ flood: flood.read }, { waitMs: 2_000 })
    for (let round = 0; round < 3; round += 1) {
      const sent = await Promise.all(Array.from({ length: LARGE_AT_ONCE }, () => open(`${url}/flood`)))
      expect(sent.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200])
      for (const response of sent) response.destroy()
    }
  })

  it('whose client reads nothing is cut off; one that reads little is not', async () => {
    const flood = createFlood()
    const { url } = await start({ flood: flood.read }, { idleMs: 1_500 })
    const [idle, slow] = [await open(`${url}/flood`), await open(`${url}/flood`)]
    const isCut = { idle: false, slow: false }
    idle.on('error', () => {}).pause()
    slow.on('error', () => {}).pause()
    const { promise: untilCut, resolve } = Promise.withResolvers<void>()
    slow.socket.once('close', () => {
      isCut.slow = true
    })
    idle.once('close', () => {
      isCut.idle = true
      resolve()
    })
    // A little of the time it reads.
    for (const since = performance.now(); performance.now() - since < 2_500; ) {
      slow.resume()
      await new Promise((next) => slow.once('data', next))
      slow.pause()
      await new Promise((next) => setTimeout(next, 50))
    }
    idle.resume()
    await untilCut
    expect(isCut).toEqual({ idle: true, slow: false })
    slow.destroy()
  })

  it('is cut off when it takes minutes: others wait for its place', async () => {
    const flood = createFlood()
    const { url, broken } = await start({ flood: flood.read }, { largeMs: 200 })
    await expect(open(`${url}/flood`).then(readText)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect(broken).toEqual([])
  })

  it('of a pipelined request is read when the response before it is sent', async () => {
    const flood = createFlood()
    const { url, counts } = await start({ flood: flood.read, small: () => pagesOf({ words: ['a'] }) })
    const connection = openConnection(url)
    connection.socket.pause()
    connection.send(writeHead('GET', '/flood'), writeHead('GET', '/small'))
    await until(() => flood.pages > 20)
    expect(counts.reads).toBe(1)
    connection.socket.destroy()
    expect((await fetch(`${url}/small`)).status).toBe(200)
  })
})
