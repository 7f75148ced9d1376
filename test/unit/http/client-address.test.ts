import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createFindClientAddress } from '../../../src/http/client-address.ts'

const PROXIES = ['10.0.0.0/8', '2001:db8:1::/48']
const PROXY = '10.0.0.1'

function addressOf(peer: string | undefined, forwarded?: string, proxies = PROXIES) {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return createFindClientAddress(proxies)({ headers, socket: { remoteAddress: peer } } as IncomingMessage)
}

describe('the address of a client', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    [undefined, 'unknown'],
  ])('that connects from %s is %s, whatever it says', (peer, address) => {
    expect(addressOf(peer)).toBe(address)
    expect(addressOf(peer, '198.51.100.1')).toBe(address)
  })

  it.each([
    ['one proxy', '198.51.100.1', '198.51.100.1'],
    ['a claim of the client', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
    ['several proxies', '203.0.113.9, 198.51.100.1, 10.9.9.9,2001:db8:1::5', '198.51.100.1'],
    ['no space', '203.0.113.9,198.51.100.1', '198.51.100.1'],
    ['a port', '198.51.100.1:50000', '198.51.100.1'],
    ['IPv6', '2001:DB8::0:1', '2001:db8::1'],
    ['IPv6 with brackets', '[2001:db8::1]', '2001:db8::1'],
    ['IPv6 with a port', '[2001:db8::1]:50000', '2001:db8::1'],
    ['an IPv4-mapped address', '::ffff:198.51.100.1', '198.51.100.1'],
    ['an IPv4-mapped proxy', '198.51.100.1, ::ffff:10.0.0.7', '198.51.100.1'],
  ])('behind %s is the rightmost one that is no proxy: %s', (_, forwarded, address) => {
    expect(addressOf(PROXY, forwarded)).toBe(address)
    expect(addressOf(`::ffff:${PROXY}`, forwarded)).toBe(address)
  })

  it.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['proxies only', '10.0.0.2, 10.0.0.3'],
    ['no address', 'unknown'],
    ['no address at the right', '198.51.100.1, unknown'],
    ['no address behind a proxy', '198.51.100.1, unknown, 10.0.0.2'],
    ['nothing at the right', '198.51.100.1,'],
    ['an octal number', '0198.51.100.1'],
    ['a short form', '198.51'],
    ['an address in brackets that has none', '[198.51.100.1]'],
    ['a name', 'client.example.com'],
  ])('is that of the proxy when it names %s', (_, forwarded) => {
    expect(addressOf(PROXY, forwarded)).toBe(PROXY)
  })

  it('is found in the last of several headers', async () => {
    // Node joins them; so that this holds, a server sees it.
    const { createServer, request } = await import('node:http')
    const find = createFindClientAddress(['127.0.0.1'])
    const server = createServer((incoming, response) => response.end(find(incoming)))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const text = await new Promise<string>((resolve) => {
      const headers = { 'x-forwarded-for': ['203.0.113.9', '198.51.100.1'] }
      request({ port, host: '127.0.0.1', headers, agent: false }, (response) =>
        response.setEncoding('utf8').on('data', resolve),
      ).end()
    })
    server.close()
    expect(text).toBe('198.51.100.1')
  })
})
