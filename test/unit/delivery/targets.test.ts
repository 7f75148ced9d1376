import { describe, expect, it } from 'vitest'
import { createTargetRule, TargetRejected } from '../../../src/delivery/targets.ts'

const rule = createTargetRule([])

/** Both sides of each limit. */
const REJECTED: readonly (readonly [address: string, why: string])[] = [
  ['0.0.0.0', 'not an address of another machine'],
  ['0.255.255.255', 'not an address of another machine'],
  ['10.0.0.0', 'private'],
  ['10.255.255.255', 'private'],
  ['100.64.0.0', 'private address of a provider'],
  ['100.100.100.200', 'private address of a provider'], // Alibaba's metadata
  ['100.127.255.255', 'private address of a provider'],
  ['127.0.0.0', 'loopback'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.255', 'loopback'],
  ['168.63.129.16', "Azure's own"],
  ['169.254.0.0', 'link-local'],
  ['169.254.169.254', 'link-local'],
  ['169.254.255.255', 'link-local'],
  ['172.16.0.0', 'private'],
  ['172.31.255.255', 'private'],
  ['192.0.0.192', 'not a public'], // Oracle's metadata
  ['192.0.2.1', 'not a public'],
  ['192.88.99.1', 'not a public'],
  ['192.168.0.0', 'private'],
  ['192.168.255.255', 'private'],
  ['198.18.0.0', 'not a public'],
  ['198.19.255.255', 'not a public'],
  ['198.51.100.1', 'not a public'],
  ['203.0.113.1', 'not a public'],
  ['224.0.0.0', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.0', 'not a public'],
  ['255.255.255.254', 'not a public'],
  ['255.255.255.255', 'broadcast'],
  ['::', 'not an address of another machine'],
  ['::1', 'loopback'],
  ['::127.0.0.1', 'not a public'],
  ['::8.8.8.8', 'not a public'],
  ['::ffff:0.0.0.0', 'not an address of another machine'],
  ['::ffff:10.0.0.1', 'private'],
  ['::ffff:7f00:1', 'loopback'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', 'link-local'],
  ['::ffff:168.63.129.16', "Azure's own"],
  ['::ffff:0:10.0.0.1', 'translated'],
  ['64:ff9b::10.0.0.1', 'NAT64'],
  ['64:ff9b::8.8.8.8', 'NAT64'],
  ['64:ff9b:1::1', 'NAT64'],
  ['100::1', 'not a public'],
  ['1fff:ffff::1', 'not a public'],
  ['2001::1', 'Teredo'],
  ['2001:2::1', 'not a public'],
  ['2001:10::1', 'not a public'],
  ['2001:db8::1', 'not a public'],
  ['2002:a00:1::1', '6to4'],
  ['3fff::1', 'not a public'],
  ['4000::1', 'not a public'],
  ['5f00::1', 'not a public'],
  ['fc00::', 'private'],
  ['fd00:ec2::254', 'private'], // Amazon's metadata
  ['fd20:ce::254', 'private'], // Google's metadata
  ['fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'private'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['fe80::1%br-lan.1', 'link-local'],
  ['febf::1', 'link-local'],
  ['fec0::1', 'private'],
  ['ff02::1', 'multicast'],
]

const ALLOWED = [
  '1.0.0.0',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.15',
  '168.63.129.17',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '::ffff:8.8.8.8',
  '2001:4860:4860::8888',
  '2003::1',
  '2606:4700::1111',
  '2a00:1450:4001:80b::200e',
  '3ffe::1',
]

describe('without ALLOWED_TARGETS', () => {
  it.each(REJECTED)('%s is rejected: %s', (address, why) => {
    expect(rule.findObjection(address)).toContain(why)
    expect(rule.findObjection(address)).toContain(address)
  })

  it.each(ALLOWED)('%s is allowed', (address) => {
    expect(rule.findObjection(address)).toBeNull()
  })

  it.each(['', 'localhost', '10', '0x7f.1', '8.8.8.010', '8.8.8', '8.8.8.8:80', '[2606:4700::1111]', '8.8.8.8 '])(
    '%j is rejected: it is not an address',
    (text) => {
      expect(rule.findObjection(text)).toBe(`${text} is not an IP address`)
    },
  )
})

describe('spellings in URLs', () => {
  it.each([
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f.1/', '127.0.0.1'],
    ['http://0x7f000001/', '127.0.0.1'],
    ['http://017700000001/', '127.0.0.1'],
    ['http://127.1/', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://①②⑦.0.0.1/', '127.0.0.1'],
    ['http://%31%32%37.0.0.1/', '127.0.0.1'],
    ['http://0/', '0.0.0.0'],
    ['http://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['http://[0:0:0:0:0:ffff:7f00:0001]/', '::ffff:7f00:1'],
    ['http://[::127.0.0.1]/', '::7f00:1'],
  ])('%s is %s and rejected', (url, address) => {
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
    expect(host).toBe(address)
    expect(rule.findObjection(host)).toContain('127.0.0.1' === address ? 'loopback' : address)
  })
})

describe('ALLOWED_TARGETS', () => {
  it.each([
    ['10.1.0.0/16', ['10.1.0.0', '10.1.255.255', '::ffff:10.1.2.3'], ['10.0.255.255', '10.2.0.0']],
    ['10.1.2.3/16', ['10.1.0.0'], ['10.2.0.0']],
    ['192.168.1.7', ['192.168.1.7', '::ffff:192.168.1.7'], ['192.168.1.6', '192.168.1.8']],
    ['192.168.1.7/32', ['192.168.1.7'], ['192.168.1.8']],
    ['::ffff:192.168.1.7', ['192.168.1.7', '::ffff:192.168.1.7'], ['192.168.1.8']],
    ['::ffff:10.0.0.0/104', ['10.255.0.1', '::ffff:10.0.0.1'], ['192.168.0.1', '::1']],
    ['fd00::/8', ['fd00::1', 'fd00:ec2::254'], ['fc00::1', '10.0.0.1']],
    ['fd00::7', ['fd00::7'], ['fd00::8']],
    ['168.63.129.16', ['168.63.129.16'], ['169.254.169.254']],
    ['0.0.0.0/0', ['10.0.0.1', '169.254.169.254', '::ffff:127.0.0.1'], ['::1', 'fd00::1', 'localhost']],
    ['::/0', ['::1', 'fd00::1'], ['10.0.0.1', '::ffff:10.0.0.1']],
    ['::ffff:0:0/90', ['::fffe:10.0.0.1'], ['10.0.0.1', '::ffff:10.0.0.1', '::1']],
    ['::ffff:0:0/96', ['10.0.0.1', '::ffff:10.0.0.1'], ['::1', '::fffe:10.0.0.1']],
    ['10.0.0.1', ['10.0.0.1'], ['::10.0.0.1', '::a00:1']],
    ['64:ff9b::/96', ['64:ff9b::8.8.8.8'], ['64:ff9b:1::1']],
  ])('%s allows what is in it, and nothing else', (block, within, beyond) => {
    const { findObjection } = createTargetRule([block])
    expect(within.map((address) => findObjection(address))).toEqual(within.map(() => null))
    expect(beyond.filter((address) => findObjection(address) === null)).toEqual([])
  })

  it('takes several, and public addresses stay allowed', () => {
    const { findObjection } = createTargetRule(['10.0.0.1', 'fd00::/8', '127.0.0.0/8'])
    expect(['10.0.0.1', 'fd00::1', '127.0.0.1', '8.8.8.8', '2606:4700::1111'].map(findObjection)).toEqual(
      Array(5).fill(null),
    )
    expect(['10.0.0.2', '::1'].map((address) => findObjection(address) === null)).toEqual([false, false])
  })

  it.each(['', '10', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/', '10.0.0.0/8/8', '/8', 'cluster.local', '010.0.0.1'])(
    '%j is neither an address nor a CIDR',
    (text) => {
      expect(() => createTargetRule([text])).toThrow(`${JSON.stringify(text)} is neither an IP address nor a CIDR`)
    },
  )
})

it('a rejection names the host, the address, and the setting that can allow it', () => {
  expect(new TargetRejected('db.shop.svc', rule.findObjection('10.0.0.1')!).message).toBe(
    'db.shop.svc: 10.0.0.1 is a private address, and channels reach public addresses only; ALLOWED_TARGETS may allow it',
  )
  expect(new TargetRejected('10.0.0.1', rule.findObjection('10.0.0.1')!).message).toMatch(
    /^10\.0\.0\.1 is a private address,/,
  )
})
