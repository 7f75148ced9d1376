import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { compressOnce, compressPage, type Encoding } from '../../../src/http/compress.ts'

const page = (index: number) => Buffer.from(`page ${index} `.repeat(300))

it.each([
  ['br', brotliDecompressSync],
  ['gzip', gunzipSync],
] as const)(
  'four pages at a time become %s, sixteen wait, and the others stay as they are',
  async (encoding, decompress) => {
    const pages = await Promise.all(Array.from({ length: 300 }, (_, index) => compressPage(page(index), encoding)))
    const found = pages.map((encoded) => encoded.encoding)
    expect(found).toEqual(Array.from({ length: 300 }, (_, index) => (index < 20 ? encoding : 'identity')))
    for (const [index, { bytes }] of pages.entries())
      expect(index < 20 ? decompress(bytes) : bytes).toEqual(page(index))
    // All places are free again.
    expect((await compressPage(page(0), encoding)).encoding).toBe(encoding)
  },
)

it('a page below a kilobyte stays as it is', async () => {
  expect((await compressPage(Buffer.alloc(1_023), 'br')).encoding).toBe('identity')
  expect((await compressPage(Buffer.alloc(1_024), 'br')).encoding).toBe('br')
})

it('what is compressed once has one result for each encoding', async () => {
  const encoded = compressOnce(page(1))
  for (const encoding of ['br', 'gzip', 'identity'] satisfies Encoding[])
    expect(await encoded(encoding)).toBe(await encoded(encoding))
})
