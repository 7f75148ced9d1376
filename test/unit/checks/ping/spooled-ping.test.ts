/** The format of a ping on disk: a spool that one version wrote is read by the next one. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Ping } from '../../../../src/checks/ping/ping.ts'
import { decodePing, encodePing, type SpooledPing, UnknownFormat } from '../../../../src/checks/ping/spooled-ping.ts'
import { PING_TYPES } from '../../../../src/domain/check.ts'
import { LIMITS } from '../../../../src/domain/limits.ts'
import { NOON } from '../../../support/builders.ts'

const PUBLIC_ID = '0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f'
const RUN_ID = '4a3e8a2c-6c64-4b5d-9d8a-0d4c3b8f7e11'
const PING_ID = Buffer.from('0190b8a000007000800000000000000a', 'hex')
const PLAIN: Ping = {
  publicId: PUBLIC_ID,
  type: 'success',
  exitCode: null,
  durationMs: null,
  runId: null,
  body: null,
  isBodyTruncated: false,
  at: NOON + 0.25,
}
const FULL: Ping = {
  publicId: PUBLIC_ID,
  type: 'fail',
  exitCode: 3,
  durationMs: 93_512,
  runId: RUN_ID,
  body: Buffer.from('disk full'),
  isBodyTruncated: true,
  at: NOON,
}

it.each<[string, SpooledPing, string]>([
  ['a plain one', { ping: PLAIN, pingId: null }, '0100000b9f7c526f0c4f6e9d0e0a4b4c3d2e1f'],
  ['one with everything', { ping: FULL, pingId: PING_ID }, '013f020b9f7c526f0c4f6e9d0e0a4b4c3d2e1f'],
])('%s has the bytes of format 1', (_, spooled, head) => {
  const record = encodePing(spooled)
  expect(record.subarray(0, 19).toString('hex')).toBe(head)
  expect(record.readDoubleBE(19)).toBe(spooled.ping.at)
  const rest = record.subarray(27).toString('hex')
  const parts = [
    '03',
    '00016d48',
    RUN_ID.replaceAll('-', ''),
    PING_ID.toString('hex'),
    Buffer.from('disk full').toString('hex'),
  ]
  expect(rest).toBe(spooled.pingId === null ? '' : parts.join(''))
  expect(decodePing(record)).toEqual(spooled)
})

it('each ping is read as it was written', () => {
  const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one)
  const ping = fc.record<Ping>({
    publicId: fc.uuid(),
    type: fc.constantFrom(...PING_TYPES),
    exitCode: orNull(fc.integer({ min: 0, max: LIMITS.exitCode })),
    durationMs: orNull(fc.integer({ min: 0, max: LIMITS.durationMs })),
    runId: orNull(fc.uuid()),
    body: orNull(fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes))),
    isBodyTruncated: fc.boolean(),
    at: fc.double({ min: 0, max: 2 * NOON, noNaN: true }),
  })
  const pingId = orNull(fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes)))
  fc.assert(
    fc.property(ping, pingId, (given, id) => {
      expect(decodePing(encodePing({ ping: given, pingId: id }))).toEqual({ ping: given, pingId: id })
    }),
  )
})

it('a ping that does not say so is not truncated', () => {
  const { isBodyTruncated: _, ...ping } = PLAIN
  expect(decodePing(encodePing({ ping, pingId: null })).ping.isBodyTruncated).toBe(false)
})

it('a record of another format, of an unknown type, or cut off is not read', () => {
  const record = encodePing({ ping: PLAIN, pingId: null })
  const changed = (at: number, value: number) => Buffer.from(record).fill(value, at, at + 1)
  expect(() => decodePing(changed(0, 2))).toThrow(/pings in format 2,.*start the version that wrote them/)
  for (const one of [changed(2, PING_TYPES.length), record.subarray(0, -1), Buffer.alloc(0)])
    expect(() => decodePing(one)).toThrow(UnknownFormat)
})
