import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeCursor, encodeCursor, toPage } from '../../../src/domain/page.ts'
import { anyText, NOON } from '../../support/builders.ts'

const id = '0b9f7c52-6f0c-7f6e-9d0e-0a4b4c3d2e1f'

it('a cursor decodes to the row that it was made of, to the microsecond', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), (us) => {
      expect(decodeCursor(encodeCursor({ at: us / 1_000, id }))).toEqual({ at: us / 1_000, id })
    }),
  )
})

it('any other text is not a cursor', () => {
  for (const text of [
    '',
    'x',
    id,
    encodeCursor({ at: NOON, id }).slice(1),
    `${encodeCursor({ at: NOON, id })}=`,
    Buffer.from(`1.${id}'; --`).toString('base64url'),
  ]) {
    expect(decodeCursor(text)).toBeNull()
  }
  fc.assert(fc.property(anyText(10), (text) => decodeCursor(text) === null))
})

it('a page has a next cursor when rows are left', () => {
  const rows = [1, 2, 3].map((n) => ({ at: n, id }))
  expect(toPage(rows, 3).next).toBeNull()
  expect(toPage(rows, 2)).toEqual({ rows: rows.slice(0, 2), next: { at: 2, id } })
  const created = [1, 2].map((n) => ({ createdAt: n, id }))
  expect(toPage(created, 1)).toEqual({ rows: created.slice(0, 1), next: { at: 1, id } })
})
