import { expect, it } from 'vitest'
import { z } from 'zod'
import { decodeCursor, type PageRequest, toPage } from '../../../../src/domain/page.ts'
import { PAGE_BYTES, readList } from '../../../../src/http/api/list-page.ts'
import { isList } from '../../../../src/http/api/query.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'
import { NOON } from '../../../support/builders.ts'

const LISTS = ROUTES.filter(({ endpoint: { query } }) => query !== undefined && isList(query))

it('every read with query parameters is a list, and every list has a cursor', () => {
  const reads = ROUTES.filter(({ method, endpoint: { query } }) => method === 'GET' && query !== undefined)
  expect(LISTS).toEqual(reads)
  expect(LISTS.length).toBeGreaterThan(8)
  for (const { path, endpoint } of LISTS) {
    expect([path, Object.keys(endpoint.query!.shape)]).toEqual([path, expect.arrayContaining(['limit', 'cursor'])])
    const { shape } = endpoint.response as z.ZodObject
    const accepts = (cursor: unknown) => (shape.next_cursor as z.ZodType).safeParse(cursor).success
    expect([path, ['', null, undefined].map(accepts)]).toEqual([path, [true, true, false]])
    expect(Object.keys(shape)).toEqual([expect.any(String), 'next_cursor'])
  }
})

const Entry = z.object({ id: z.string(), text: z.string() })
const idOf = (number: number) => `00000000-0000-7000-8000-${`${number}`.padStart(12, '0')}`

/** A list of rows whose JSON has `sizes` bytes each. */
async function readSizes(sizes: readonly number[], { limit = 1_000, after = 0 } = {}) {
  const frame = JSON.stringify({ id: idOf(0), text: '' }).length
  const all = sizes.map((size, index) => ({ id: idOf(index + 1), at: NOON + index, text: 'x'.repeat(size - frame) }))
  const asked: number[] = []
  const read = async ({ limit, after }: PageRequest) => {
    asked.push(limit)
    const from = all.findIndex(({ id }) => id === after?.id) + 1
    return toPage(all.slice(from, from + limit + 1), limit)
  }
  const query = { limit, cursor: after === 0 ? null : { at: 0, id: idOf(after) } }
  const page = await readList('pings', Entry, query, read)
  const { pings, next_cursor } = JSON.parse(String(page))
  const [list, text] = next_cursor?.split('.') ?? []
  return { count: pings.length, next: next_cursor === null ? null : [list, decodeCursor(text!)?.id], asked }
}

it.each([
  { of: 'exactly the limit', sizes: [PAGE_BYTES / 2 - 1, PAGE_BYTES / 2 - 1], count: 2, next: null },
  { of: 'a byte more', sizes: [PAGE_BYTES / 2 - 1, PAGE_BYTES / 2], count: 1, next: ['pings', idOf(1)] },
  {
    of: 'the limit, and one more',
    sizes: [PAGE_BYTES / 2 - 1, PAGE_BYTES / 2 - 1, 60],
    count: 2,
    next: ['pings', idOf(2)],
  },
  { of: 'one that is larger', sizes: [PAGE_BYTES + 1, 60], count: 1, next: ['pings', idOf(1)] },
  { of: 'one that is larger, and the last', sizes: [PAGE_BYTES + 1], count: 1, next: null },
])('entries of $of: $count on the page', async ({ sizes, count, next }) => {
  expect(await readSizes(sizes)).toMatchObject({ count, next })
})

it('a page is measured as it is sent: a control character has six bytes, a letter beyond ASCII two', async () => {
  for (const [text, bytes] of [
    ['\u0001', 6],
    ['ü', 2],
  ] as const) {
    const row = { id: idOf(1), at: NOON, text: text.repeat(100_000) }
    const rows = Array.from({ length: 20 }, (_, index) => ({ ...row, id: idOf(index) }))
    const page = await readList('pings', Entry, { limit: 20 }, async () => toPage(rows, 20))
    expect(JSON.parse(String(page)).pings).toHaveLength(Math.min(20, Math.floor(PAGE_BYTES / (bytes * 100_000))))
  }
})

it('a page ends at the limit of entries, too, and goes on in pieces where the page before it ended', async () => {
  const sizes = Array.from({ length: 250 }, () => 60)
  expect(await readSizes(sizes, { limit: 249 })).toEqual({
    count: 249,
    next: ['pings', idOf(249)],
    asked: [100, 100, 49],
  })
  expect(await readSizes(sizes, { limit: 250 })).toMatchObject({ count: 250, next: null })
  expect(await readSizes(sizes, { after: 249 })).toEqual({ count: 1, next: null, asked: [100] })
  // The cut lies within a piece: the pieces after it are not read.
  const large = Array.from({ length: 250 }, () => PAGE_BYTES / 64)
  expect(await readSizes(large)).toMatchObject({ count: 63, next: ['pings', idOf(63)], asked: [100] })
})
