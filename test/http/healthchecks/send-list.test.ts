/** Lists of healthchecks' API have no pages: any size takes bounded memory. */

import Koa from 'koa'
import { expect, it, onTestFinished } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { createLists, type Lists } from '../../../src/http/api/lists.ts'
import { sendList, writeList } from '../../../src/http/healthchecks/send-list.ts'
import { LISTS } from '../../../src/http/limits.ts'
import { renderErrors } from '../../../src/http/middleware/errors.ts'
import { openUnread as open } from '../../support/http.ts'
import { serve } from '../../support/servers.ts'
import { silentLog } from '../../support/silent-log.ts'
import { eventually } from '../../support/until.ts'

/** By path: the pieces of a list. */
async function start(read: Record<string, () => AsyncIterable<string[]>>, lists: Lists = createLists()) {
  const broken: unknown[] = []
  const app = new Koa({ env: 'production' })
  app.on('error', () => {})
  app.use(renderErrors(silentLog))
  app.use((ctx) => {
    const list = writeList('words', read[ctx.path.slice(1)]!(), (word) => ({ word }))
    return sendList(ctx, list, { lists, organizationId: 'a', onBroken: (error) => broken.push(error) })
  })
  const { url, close } = await serve({ handler: app.callback() })
  onTestFinished(() => close(0))
  return { url, broken }
}

const wordsOf = async (url: string) =>
  ((await (await fetch(url)).json()) as { words: { word: string }[] }).words.map(({ word }) => word)

/** Endless, in pieces of about 100 KB; counts them. */
function createFlood() {
  const flood = {
    pieces: 0,
    async *read() {
      for (;;) {
        flood.pieces += 1
        yield ['x'.repeat(100_000)]
      }
    },
  }
  return flood
}

it('is one JSON of all pieces', async () => {
  const piecesOf = (...pieces: string[][]) =>
    async function* () {
      yield* pieces
    }
  const large = Array.from({ length: 40 }, (_, index) => `${index}`.repeat(5_000))
  const { url } = await start({
    none: piecesOf(),
    empty: piecesOf([]),
    three: piecesOf(['a', 'ü'], [], ['b']),
    large: piecesOf(large.slice(0, 20), large.slice(20)),
  })
  expect(await wordsOf(`${url}/none`)).toEqual([])
  expect(await wordsOf(`${url}/empty`)).toEqual([])
  expect(await wordsOf(`${url}/three`)).toEqual(['a', 'ü', 'b'])
  expect(await wordsOf(`${url}/large`)).toEqual(large)
})

it('has a Content-Length where it is one part', async () => {
  const wordOf = (length: number) =>
    async function* () {
      yield ['x'.repeat(length)]
    }
  const shell = '{"words":[{"word":""}'.length
  const { url } = await start({ one: wordOf(32_767 - shell), two: wordOf(32_768 - shell) })
  const lengthOf = async (path: string) => (await open(`${url}/${path}`)).headers['content-length']
  expect([await lengthOf('one'), await lengthOf('two')]).toEqual(['32769', undefined])
})

it('is an error when it fails before the second part, and a broken connection after that', async () => {
  const failing = (words: string[]) =>
    async function* () {
      yield words
      throw new AppError('not_found', 'check not found')
    }
  const [one, two] = [['x'.repeat(100_000)], ['x'.repeat(100_000), 'y'.repeat(100_000)]]
  const { url, broken } = await start({ none: failing(['a']), early: failing(one), late: failing(two) })
  for (const path of ['none', 'early']) expect((await fetch(`${url}/${path}`)).status).toBe(404)
  expect(broken).toEqual([])
  await expect(open(`${url}/late`).then((response) => response.toArray())).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(broken).toMatchObject([{ code: 'not_found' }])
})

it('is read as its client reads, and not far ahead', async () => {
  const flood = createFlood()
  const { url } = await start({ flood: flood.read })
  const response = await open(`${url}/flood`)
  let before = -1
  await eventually('more than ten pieces are written', () => flood.pieces > 10)
  // The kernel takes some megabytes.
  while (flood.pieces > before) {
    before = flood.pieces
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  expect(before).toBeLessThan(200)
  response.resume()
  await eventually('a hundred more pieces are written', () => flood.pieces > before + 100)
  response.destroy()
})

it('holds a place of its organization until it is read, not a turn', async () => {
  const flood = createFlood()
  const { url } = await start({ flood: flood.read }, createLists({ waitMs: 100 }))
  const sent = await Promise.all(Array.from({ length: LISTS.perKey }, () => open(`${url}/flood`)))
  const late = await fetch(`${url}/flood`)
  expect([late.status, late.headers.get('retry-after')]).toEqual([503, '5'])
  sent[0]!.destroy()
  await eventually('there is room for a list', async () => {
    const response = await open(`${url}/flood`)
    const { statusCode } = response
    response.destroy()
    return statusCode === 200
  })
  for (const response of sent) response.destroy()
})
