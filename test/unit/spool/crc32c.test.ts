import { expect, it } from 'vitest'
import { crc32c } from '../../../src/spool/crc32c.ts'

// RFC 3720, section B.4, and the check value of the catalogue of CRCs.
it.each([
  ['zeros', Buffer.alloc(32), 0x8a9136aa],
  ['ones', Buffer.alloc(32, 0xff), 0x62a8ab43],
  ['ascending', Buffer.from(Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e],
  ['descending', Buffer.from(Array.from({ length: 32 }, (_, index) => 31 - index)), 0x113fdb5c],
  ['123456789', Buffer.from('123456789'), 0xe3069283],
  ['nothing', Buffer.alloc(0), 0],
])('is that of the standard for %s, whole and in two parts', (_, bytes, sum) => {
  expect(crc32c(bytes)).toBe(sum)
  expect(crc32c(bytes.subarray(5), crc32c(bytes.subarray(0, 5)))).toBe(sum)
})
