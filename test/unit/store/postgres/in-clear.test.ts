import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect, it } from 'vitest'
import { isInClear } from '../../../../src/store/postgres/database.ts'

it.each([
  ['192.0.2.1', true],
  ['2001:db8::1', true],
  ['::ffff:192.0.2.1', true],
  ['127.0.0.1', false],
  ['::ffff:127.0.0.1', false],
  ['::1', false],
  // A Unix socket.
  [undefined, false],
])('a connection to %s without TLS is in clear: %s', (remoteAddress, expected) => {
  expect(isInClear({ remoteAddress })).toBe(expected)
})

it('a connection with TLS is not in clear', () => {
  const socket = Object.defineProperty(new TLSSocket(new Socket()), 'remoteAddress', { value: '192.0.2.1' })
  expect(isInClear(socket)).toBe(false)
})
