/** Responses that strangers can ask for in any number: what they cost, and what they write into the log. */

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { createTurns } from '../../../src/http/dashboard/turns.ts'
import type { Log } from '../../../src/runtime/log.ts'
import { getRaw as get } from '../../support/http.ts'
import { startTestApi, type TestApi } from '../../support/service.ts'
import { silentLog } from '../../support/silent-log.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { type Visitor, visit } from '../../support/visitor.ts'
import { createHeldTurns } from '../dashboard/held-turns.ts'

const many = (count: number, url: string, headers: Record<string, string>) =>
  Promise.all(Array.from({ length: count }, () => get(url, headers)))
const cookieOf = ({ cookies }: Visitor) => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
const siteOf = ({ url }: Pick<TestApi, 'url'>) => new URL(url).origin

/** Of the tests that need no parts of their own. */
const shared = use(startTestApi)

it.each(['/login', '/login?next=%2Fchannels', '/no-such-page'])(
  '%s is the same text for all, compressed',
  async (path) => {
    const plain = (await get(siteOf(shared) + path)).body
    for (const [encoding, decompress] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      // All in one moment: if each were compressed, most would find no place.
      for (const { headers, body } of await many(200, siteOf(shared) + path, { 'accept-encoding': encoding })) {
        expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'Accept-Encoding'])
        expect(decompress(body)).toEqual(plain)
      }
    }
  },
)

it('the log-in takes turns: one address waits for itself, and others pass', async () => {
  const { turns, held, hold, release } = createHeldTurns()
  await using api = await startTestApi({ turns, findClientAddress: ({ headers }) => String(headers['x-address']) })
  const open = (address: string) => get(`${siteOf(api)}/login`, { 'x-address': address })
  hold()
  const first = [open('192.0.2.1'), open('192.0.2.1'), open('192.0.2.1')]
  await eventually('one page is held', () => held() === 1)
  const other = open('192.0.2.2')
  await eventually('two pages are held', () => held() === 2)
  release()
  for (const { status } of await Promise.all([...first, other])) expect(status).toBe(200)
})

it('the document is compressed once, and who has it gets no second copy', async () => {
  const url = `${shared.url}/openapi.json`
  const plain = await get(url)
  for (const [encoding, decompress] of [
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
  ] as const) {
    const found = await many(20, url, { 'accept-encoding': encoding })
    for (const { headers, body } of found) {
      expect([headers['content-encoding'], headers.etag]).toEqual([encoding, plain.headers.etag])
      expect(decompress(body).equals(plain.body)).toBe(true)
      expect(body.length).toBeLessThan(40_000)
    }
  }
  const again = await get(url, { 'if-none-match': String(plain.headers.etag) })
  expect([again.status, again.body.length]).toEqual([304, 0])
  expect((await get(url, { 'if-none-match': '"other"' })).status).toBe(200)
})

it('a thousand fields of a form are read, and of one more nothing is: 400', async () => {
  const visitor = await visit(shared)
  const send = (count: number) =>
    fetch(`${siteOf(shared)}/checks/new`, {
      method: 'POST',
      headers: {
        cookie: cookieOf(visitor),
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: Array.from({ length: count }, () => 'a').join('&'),
    })
  expect((await send(1_000)).status).toBe(422)
  const refused = await send(1_001)
  expect(refused.status).toBe(400)
  expect(await refused.text()).toContain('The request has more than 1000 fields')
  const query = (count: number) => Array.from({ length: count }, () => 'a').join('&')
  expect((await get(`${siteOf(shared)}/login?${query(1_001)}`)).status).toBe(400)
  expect((await get(`${siteOf(shared)}/login?${query(1_000)}`)).status).toBe(200)
})

it.each([
  { of: 'the API', many: '/api/v1/me', other: '/api/v1/channels' },
  { of: 'the dashboard', many: '/checks', other: '/channels' },
])('a limit of $of that refuses many writes a line a second for each route, without a stack', async (paths) => {
  const lines: { message: string; given: Record<string, unknown> }[] = []
  const log = {
    ...silentLog,
    warn: (given: Record<string, unknown>, message: string) => lines.push({ message, given }),
  } as unknown as Log
  const refuse = async () => {
    throw new AppError('unavailable', 'too many at the moment', { retryAfterSeconds: 1 })
  }
  // Before each call of the API, and before each page.
  await using api = await startTestApi({ log, authenticate: refuse, turns: { ...createTurns(), read: refuse } })
  const headers = { authorization: 'Bearer hbk_x', cookie: cookieOf(await visit(api)) }
  const startedAt = performance.now()
  const statuses = await many(300, siteOf(api) + paths.many, headers)
  expect(statuses.every(({ status }) => status === 503)).toBe(true)
  await get(siteOf(api) + paths.other, headers)
  const counted = () => lines.filter(({ given }) => given.route === paths.many).map(({ given }) => Number(given.count))
  await eventually('300 responses are counted', () => counted().reduce((sum, count) => sum + count, 0) === 300)
  expect(counted().length).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 1_000)
  expect(lines.map(({ given }) => given.route)).toContain(paths.other)
  for (const { given, message } of lines) {
    expect(message).toBe('requests rejected: unavailable')
    expect(given).toMatchObject({ reason: 'too many at the moment' })
    expect(Object.keys(given).sort()).toEqual(['count', 'reason', 'route'])
  }
})
