import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  byteaArray,
  instantArray,
  int2Array,
  int4Array,
  int8Array,
  jsonbArray,
  textArray,
  uuidArray,
} from '../../src/store/postgres/binary-arrays.ts'
import { createTestDatabase } from '../support/database.ts'
import { use } from '../support/use.ts'

const test = use(createTestDatabase)

/** The elements as PostgreSQL has received them. */
async function roundTrip(type: string, parameter: Buffer): Promise<unknown[]> {
  const rows = await test.database.queryColumns({
    name: `round trip ${type}`,
    text: `select unnest($1::${type}[])`,
    values: [parameter],
  })
  return rows.map(([value]) => value)
}

const MICROSECOND = 0.001
const nullable = <T>(values: fc.Arbitrary<T>) => fc.array(fc.option(values), { maxLength: 20 })
const uuid = fc.uuid()
const instant = fc.integer({ min: -62_000_000_000, max: 4_102_444_800_000_000 }).map((us) => us * MICROSECOND)
const wellFormed = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\u0000'))

it.each([
  ['int2', int2Array, fc.integer({ min: -32_768, max: 32_767 })],
  ['int4', int4Array, fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })],
  ['int8', int8Array, fc.maxSafeInteger()],
  ['uuid', uuidArray, uuid],
  ['text', textArray, wellFormed],
  ['bytea', byteaArray, fc.uint8Array().map((bytes) => Buffer.from(bytes))],
  ['jsonb', jsonbArray, fc.record({ id: fc.option(uuid), startedAt: fc.integer(), text: wellFormed })],
] as [string, (values: unknown[]) => Buffer, fc.Arbitrary<unknown>][])(
  '%s arrays arrive as they were, nulls included',
  async (type, encode, values) => {
    await fc.assert(
      fc.asyncProperty(nullable(values), async (given) => {
        expect(await roundTrip(type, encode(given))).toEqual(given)
      }),
      { numRuns: 50 },
    )
  },
)

it('instants arrive to the microsecond, before 2000 too', async () => {
  await fc.assert(
    fc.asyncProperty(nullable(instant), async (given) => {
      const got = await roundTrip('timestamptz', instantArray(given))
      expect(got.map((at) => (at === null ? null : Math.round((at as number) * 1_000)))).toEqual(
        given.map((at) => (at === null ? null : Math.round(at * 1_000))),
      )
    }),
    { numRuns: 50 },
  )
})

it('uuids may be given as bytes', async () => {
  const bytes = Buffer.from('0b9f7c526f0c4f6e9d0e0a4b4c3d2e1f', 'hex')
  expect(await roundTrip('uuid', uuidArray([bytes, null]))).toEqual(['0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f', null])
})

it.each([
  ['int2', int2Array, -32_768, 32_767],
  ['int4', int4Array, -(2 ** 31), 2 ** 31 - 1],
] as const)('%s: a number that does not fit is an error', (_, toArray, least, most) => {
  expect(toArray([least, most])).toBeInstanceOf(Buffer)
  for (const value of [least - 1, most + 1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => toArray([value])).toThrow(RangeError)
})

it('an instant or a key that is not a finite number is an error', () => {
  expect(() => instantArray([Number.NaN])).toThrow(RangeError)
  expect(() => int8Array([Number.POSITIVE_INFINITY])).toThrow(RangeError)
})
