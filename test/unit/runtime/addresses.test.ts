import { describe, expect, it } from 'vitest'
import { addressGroup, networkGroup } from '../../../src/runtime/addresses.ts'

describe('addressGroup', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8::/64'],
    ['::1', '::/64'],
    ['::', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b::/64'],
    ['1:2:3:4:5:6:192.0.2.7', '1:2:3:4::/64'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('%s belongs to %s', (address, group) => expect(addressGroup(address)).toBe(group))
})

describe('networkGroup', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2ff:3:4:5:6', '2001:db8:1:200::/56'],
    ['2001:db8:1:300::', '2001:db8:1:300::/56'],
    ['::1', '::/56'],
    ['unknown', 'unknown'],
  ])('%s belongs to %s', (address, group) => expect(networkGroup(address)).toBe(group))
})
