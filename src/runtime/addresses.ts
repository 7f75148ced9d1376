/** IP addresses and blocks of them. An IPv4-mapped IPv6 address counts as its IPv4 address everywhere. */

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type Address = ipaddr.IPv4 | ipaddr.IPv6
/** An address and how many of its first bits count. */
export type Block = readonly [Address, number]

/**
 * Null for a text that is not an address. Node decides that, not ipaddr.js: it reads `10` as 0.0.0.10, `010.0.0.1` as
 * 8.0.0.1 and `::8.8.8.8` as ::ffff:8.8.8.8. An address in the form of a URL means the same to ipaddr.js and to the
 * kernel. A zone (fe80::1%eth0) names an interface, not a target, and is dropped.
 */
export function parseAddress(text: string): Address | null {
  const version = isIP(text)
  if (version === 0) return null
  return ipaddr.process(version === 4 ? text : normalize(text))
}

function normalize(ipv6: string): string {
  return new URL(`http://[${ipv6.replace(/%.*$/, '')}]/`).hostname.slice(1, -1)
}

/** Reads an address or a CIDR. Throws an Error for any other text. */
export function parseBlock(text: string): Block {
  const [, host = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const width = isIP(host) === 4 ? 32 : 128
  const prefix = bits === undefined ? width : Number(bits)
  const address = parseAddress(host)
  if (address === null || prefix > width) throw new Error(`${JSON.stringify(text)} is neither an IP address nor a CIDR`)
  const isMapped = width === 128 && address instanceof ipaddr.IPv4
  if (!isMapped) return [address, prefix]
  // The first 96 bits mark a mapped address. A block with a shorter prefix contains other IPv6 addresses, too.
  return prefix >= 96 ? [address, prefix - 96] : [ipaddr.parse(normalize(host)), prefix]
}

export function isWithin(address: Address, [base, prefix]: Block): boolean {
  return address.kind() === base.kind() && address.match(base, prefix)
}

const LOOPBACK: readonly Block[] = [parseBlock('127.0.0.0/8'), parseBlock('::1')]

/** Whether only programs of this machine reach a server that listens there. */
export function isLoopbackHost(host: string): boolean {
  const address = parseAddress(host)
  return address === null ? host.toLowerCase() === 'localhost' : LOOPBACK.some((block) => isWithin(address, block))
}

/** A network of one holder: with IPv6 the 56 bits that a household gets; otherwise the address group. */
export const networkGroup = (text: string) => firstBits(text, 56)

/** What identifies a holder: with IPv6 the first 64 bits, because one host can use all the others. */
export const addressGroup = (text: string) => firstBits(text, 64)

function firstBits(text: string, bits: number): string {
  const address = parseAddress(text)
  if (!(address instanceof ipaddr.IPv6)) return address?.toString() ?? text
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`)}/${bits}`
}
