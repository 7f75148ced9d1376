import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatUuid, isUuid, writeTimeOrderedId } from '../../../src/domain/ids.ts'
import { NOON } from '../../support/builders.ts'

const idAt = (at: number, fill = 0xff) => formatUuid(writeTimeOrderedId(Buffer.alloc(16, fill), at))

it('an id is a version 7 UUID with its millisecond in front', () => {
  const id = idAt(NOON)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(NOON)
})

it('ids a microsecond apart are in order, whatever their random bits', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), fc.integer({ min: 1, max: 5_000 }), (us, later) => {
      expect(idAt(us / 1_000, 0xff) < idAt((us + later) / 1_000, 0x00)).toBe(true)
    }),
  )
})

it('a UUID is 36 characters of hexadecimal digits and dashes', () => {
  expect(isUuid('0B9F7C52-6f0c-4f6e-9d0e-0a4b4c3d2e1f')).toBe(true)
  for (const text of [
    '',
    '0b9f7c526f0c4f6e9d0e0a4b4c3d2e1f',
    '0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1g',
    '0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f\n',
  ])
    expect(isUuid(text)).toBe(false)
})
