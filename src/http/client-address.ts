/** The network address of a client. Anyone can send X-Forwarded-For: what trusted proxies wrote counts. */

import type { IncomingMessage } from 'node:http'
import { type Address, addressGroup, isWithin, parseAddress, parseBlock } from '../runtime/addresses.ts'

/** An address without a port, an IPv4-mapped one as IPv4; `unknown` after the connection has closed. */
export type FindClientAddress = (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string

/**
 * A request from one of `trustedProxies` (addresses and CIDRs) has the rightmost address of X-Forwarded-For that is no
 * trusted proxy: each proxy appends what it has seen. Another request has the address of its socket.
 */
export function createFindClientAddress(trustedProxies: readonly string[]): FindClientAddress {
  const isTrusted = createTrust(trustedProxies)
  return ({ headers, socket }) => {
    const peer = parseAddress(socket.remoteAddress ?? '')
    if (peer === null) return 'unknown'
    // Node joins the lines of several headers in their order.
    const entries = isTrusted(peer) ? String(headers['x-forwarded-for'] ?? '').split(',') : []
    for (const entry of entries.reverse()) {
      const address = parseEntry(entry.trim())
      // What stands to the left of an entry that is no address was not written by a proxy that we know.
      if (address === null) break
      if (!isTrusted(address)) return address.toString()
    }
    return peer.toString()
  }
}

/** One client among the connections, by its address. Null: a trusted proxy, which brings many clients. */
export function createConnectionGroups(trustedProxies: readonly string[]): (address: string) => string | null {
  const isTrusted = createTrust(trustedProxies)
  return (text) => {
    const address = parseAddress(text)
    return address !== null && isTrusted(address) ? null : addressGroup(text)
  }
}

function createTrust(trustedProxies: readonly string[]): (address: Address) => boolean {
  const blocks = trustedProxies.map(parseBlock)
  return (address) => blocks.some((block) => isWithin(address, block))
}

/** `192.0.2.1`, `2001:db8::1`, `[2001:db8::1]`, and with a port `192.0.2.1:443`, `[2001:db8::1]:443`. */
function parseEntry(text: string): Address | null {
  const bracketed = /^\[([\da-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1]
  if (bracketed !== undefined) return bracketed.includes(':') ? parseAddress(bracketed) : null
  return parseAddress(/^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text)
}
