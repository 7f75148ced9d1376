/**
 * Which addresses a channel may reach. A user who creates a channel chooses where this process connects to, which could be inside the cluster:
 * services, nodes, the cloud's metadata service. The rule checks addresses, never names: a name may resolve to another address when it is used.
 */

import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { type Address, isWithin, parseAddress, parseBlock } from '../runtime/addresses.ts'

export interface TargetRule {
  /** Why the address is not allowed, as a sentence about it; null when it is allowed. */
  findObjection(address: string): string | null
}

/** The rule forbids a target. `message` names the address and the setting that can allow it. */
export class TargetRejected extends Error {
  override readonly name = 'TargetRejected'

  /** @param host the host of the URL, a name or an address; `why`: the objection of the rule */
  constructor(host: string, why: string) {
    const about = isIP(host) === 0 ? `${host}: ${why}` : why
    super(`${about}, and channels reach public addresses only; ALLOWED_TARGETS may allow it`)
  }
}

/** Public for the registries. On Azure it is a service of the host that gives credentials to every virtual machine. */
const AZURE_WIRE_SERVER = '168.63.129.16'

const OBJECTIONS: Readonly<Record<string, string>> = {
  private: 'is a private address',
  uniqueLocal: 'is a private address',
  deprecatedSiteLocal: 'is a private address',
  carrierGradeNat: 'is a private address of a provider or a cloud',
  loopback: 'is a loopback address',
  linkLocal: 'is a link-local address, where clouds keep their metadata',
  multicast: 'is a multicast address',
  broadcast: 'is the broadcast address',
  unspecified: 'is not an address of another machine',
  // They contain an IPv4 address that a gateway unpacks.
  rfc6145: 'is a translated IPv4 address',
  rfc6052: 'is a NAT64 address',
  '6to4': 'is a 6to4 address',
  teredo: 'is a Teredo address',
}

/**
 * @param allowed addresses and CIDRs that channels may reach although they are not public. An IPv4-mapped IPv6 address counts as
 *   its IPv4 address, here and in the check. Throws an Error for any other text.
 */
export function createTargetRule(allowed: readonly string[]): TargetRule {
  const blocks = allowed.map(parseBlock)
  return {
    findObjection(text) {
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
  if (range !== 'unicast') return OBJECTIONS[range] ?? 'is not a public address'
  // Only 2000::/3 is assigned (RFC 4291, section 2.4). An address outside may mean anything, as ::127.0.0.1 once did.
  return address instanceof ipaddr.IPv6 && address.parts[0]! >> 13 !== 1 ? 'is not a public address' : null
}
