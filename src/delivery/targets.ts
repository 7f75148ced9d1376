/**
 * Which addresses a channel may reach. Whoever may create a channel chooses where this process connects to; without a rule they
 * could reach what only the cluster can: its services, its nodes, the cloud's metadata service. The rule judges addresses, never
 * names: a name may lead somewhere else by the time it is used.
 */

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface TargetRule {
  /** Why this address is out of bounds, as a sentence about it for people; null: it is not. */
  refuses(address: string): string | null
}

/** The rule forbids a target. `message` names the address, and what would allow it. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused'

  /** @param host as the URL has it, a name or an address; `why` as TargetRule gives it */
  constructor(host: string, why: string) {
    const about = isIP(host) === 0 ? `${host}: ${why}` : why
    super(`${about}, and channels reach public addresses only; ALLOWED_TARGETS may allow it`)
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Block = readonly [Address, number]

/** Public as far as the registries know; Azure answers there from every virtual machine, credentials included. */
const AZURE_WIRE_SERVER = '168.63.129.16'

const WORDS: Readonly<Record<string, string>> = {
  private: 'is a private address',
  uniqueLocal: 'is a private address',
  deprecatedSiteLocal: 'is a private address',
  carrierGradeNat: 'is a private address of a provider or a cloud',
  loopback: 'is a loopback address',
  linkLocal: 'is a link-local address, where clouds keep their metadata',
  multicast: 'is a multicast address',
  broadcast: 'is the broadcast address',
  unspecified: 'is no address of another machine',
  // An IPv4 address in disguise, which some gateway unpacks.
  rfc6145: 'is a translated IPv4 address',
  rfc6052: 'is a NAT64 address',
  '6to4': 'is a 6to4 address',
  teredo: 'is a Teredo address',
}

/**
 * @param allowed addresses and CIDRs that channels may reach although they are not public. An IPv4-mapped IPv6 address counts as
 *   its IPv4 address, here and where it is judged. Throws an Error for what is neither.
 */
export function createTargetRule(allowed: readonly string[]): TargetRule {
  const blocks = allowed.map(parseBlock)
  return {
    refuses(text) {
      const address = parseAddress(text)
      if (address === null) return `${text} is not an IP address`
      if (blocks.some((block) => isWithin(address, block))) return null
      const why = explain(address)
      return why === null ? null : `${text} ${why}`
    },
  }
}

function explain(address: Address): string | null {
  if (address.toString() === AZURE_WIRE_SERVER) return "is the address of Azure's own service"
  const range: string = address.range()
  if (range !== 'unicast') return WORDS[range] ?? 'is not a public address'
  // Only 2000::/3 is given out (RFC 4291, section 2.4). What lies outside may mean anything, as ::127.0.0.1 once did.
  return address instanceof ipaddr.IPv6 && address.parts[0]! >> 13 !== 1 ? 'is not a public address' : null
}

/**
 * Null for what is no address. Node decides what is one, not ipaddr.js, which reads `10` as 0.0.0.10, `010.0.0.1` as 8.0.0.1, and
 * `::8.8.8.8` as ::ffff:8.8.8.8; in the form that a URL gives an address it reads what the kernel does. A zone (fe80::1%eth0)
 * says which way, not where.
 */
function parseAddress(text: string): Address | null {
  const version = isIP(text)
  if (version === 0) return null
  return ipaddr.process(version === 4 ? text : normalize(text))
}

function normalize(ipv6: string): string {
  return new URL(`http://[${ipv6.replace(/%.*$/, '')}]/`).hostname.slice(1, -1)
}

function parseBlock(text: string): Block {
  const [, host = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const width = isIP(host) === 4 ? 32 : 128
  const prefix = bits === undefined ? width : Number(bits)
  const address = parseAddress(host)
  if (address === null || prefix > width) throw new Error(`${JSON.stringify(text)} is neither an IP address nor a CIDR`)
  const isMapped = width === 128 && address instanceof ipaddr.IPv4
  if (!isMapped) return [address, prefix]
  // 96 bits say that it is a mapped one. With fewer of them the block holds other addresses, too, and is one of IPv6.
  return prefix >= 96 ? [address, prefix - 96] : [ipaddr.parse(normalize(host)), prefix]
}

function isWithin(address: Address, [base, prefix]: Block): boolean {
  return address.kind() === base.kind() && address.match(base, prefix)
}
