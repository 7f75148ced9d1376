/**
 * X.509 certificates for the test bed, made here so that nothing has to be installed: the API server's, also when it is
 * rotated, and those of users, as the kubeconfigs of kind, minikube and kubeadm hold them. Structures: RFC 5280.
 */

import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/** Both in PEM. */
export interface Certified {
  readonly certificate: string
  readonly key: string
}

/** Names are what `signServer` and `signClient` need to find the issuer again. */
export interface Authority extends Certified {
  readonly name: string
}

const HOUR_MS = 3_600_000
const TEN_YEARS_MS = 10 * 365 * 24 * HOUR_MS

/** A self-signed authority. */
export function createAuthority(name: string): Authority {
  const { publicKey, privateKey } = createKeyPair()
  const subject = encodeName({ name })
  const extensions = [
    extension('2.5.29.19', true, sequence(tagged(0x01, Buffer.from([0xff])))), // basicConstraints: an authority
    extension('2.5.29.15', true, bits(0x06, 1)), // keyUsage: signs certificates and revocation lists
  ]
  const certificate = encode({ subject, issuer: subject, publicKey, extensions, signer: privateKey })
  return { name, certificate, key: toPem(privateKey) }
}

/** A serving certificate for these host names and IP addresses. */
export function signServer(authority: Authority, hosts: readonly string[]): Certified {
  const names = hosts.map((host) =>
    isIP(host) === 4 ? tagged(0x87, Buffer.from(host.split('.').map(Number))) : tagged(0x82, Buffer.from(host)),
  )
  const subject = { name: hosts[0]! }
  return signLeaf(authority, subject, '1.3.6.1.5.5.7.3.1', [extension('2.5.29.17', false, sequence(...names))])
}

/** A user's certificate: Kubernetes takes the common name for the user and the organizations for the groups. */
export function signClient(authority: Authority, name: string, groups: readonly string[]): Certified {
  return signLeaf(authority, { name, groups }, '1.3.6.1.5.5.7.3.2', [])
}

function signLeaf(authority: Authority, subject: Subject, usage: string, more: Buffer[]): Certified {
  const { publicKey, privateKey } = createKeyPair()
  const certificate = encode({
    subject: encodeName(subject),
    issuer: encodeName(authority),
    publicKey,
    extensions: [
      extension('2.5.29.15', true, bits(0x80, 7)), // keyUsage: digital signature
      extension('2.5.29.37', false, sequence(objectId(usage))),
      ...more,
    ],
    signer: createPrivateKey(authority.key),
  })
  return { certificate, key: toPem(privateKey) }
}

const createKeyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const toPem = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString()

interface Parts {
  readonly subject: Buffer
  readonly issuer: Buffer
  readonly publicKey: KeyObject
  readonly extensions: readonly Buffer[]
  readonly signer: KeyObject
}

function encode({ subject, issuer, publicKey, extensions, signer }: Parts): string {
  const now = Date.now()
  const ecdsaWithSha256 = sequence(objectId('1.2.840.10045.4.3.2'))
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])), // a positive serial number
    ecdsaWithSha256,
    issuer,
    sequence(time(now - HOUR_MS), time(now + TEN_YEARS_MS)),
    subject,
    publicKey.export({ format: 'der', type: 'spki' }),
    tagged(0xa3, sequence(...extensions)),
  )
  const signature = tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, signer)]))
  const base64 = sequence(body, ecdsaWithSha256, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}

interface Subject {
  readonly name: string
  readonly groups?: readonly string[]
}

function encodeName({ name, groups = [] }: Subject): Buffer {
  const attribute = (type: string, text: string) =>
    tagged(0x31, sequence(objectId(type), tagged(0x0c, Buffer.from(text))))
  return sequence(...groups.map((group) => attribute('2.5.4.10', group)), attribute('2.5.4.3', name))
}

const extension = (id: string, isCritical: boolean, value: Buffer) =>
  sequence(objectId(id), ...(isCritical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value))

/** GeneralizedTime; RFC 5280 wants UTCTime, with two digits for the year, before 2050. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return Number(digits.slice(0, 4)) < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits))
}

const bits = (value: number, unused: number) => tagged(0x03, Buffer.from([unused, value]))
const sequence = (...parts: readonly Buffer[]) => tagged(0x30, ...parts)

/** Distinguished encoding: tag, length, content. */
function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content])
  const length = Buffer.from(content.length.toString(16).padStart(content.length > 0xff ? 4 : 2, '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, content])
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const groups = [arc & 0x7f]
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift(0x80 | (left & 0x7f))
    bytes.push(...groups)
  }
  return tagged(0x06, Buffer.from(bytes))
}
