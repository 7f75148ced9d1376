/**
 * Sealing without SECRET_KEY: a process with the public key can seal the settings of a channel, and only a process with
 * SECRET_KEY can open them. The key pair of X25519 (RFC 7748) is derived from SECRET_KEY. Each seal has a key pair of
 * its own, whose public half is stored before ciphertext and tag; from the two comes one key with its nonce, by HKDF
 * (RFC 5869) for AES-256-GCM. The channel's id is authenticated too.
 */

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const POINT_BYTES = 32
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_ID_BYTES = 8
const PRIVATE_INFO = 'heartbeat-operator channel box v1'
const MESSAGE_INFO = 'heartbeat-operator channel box message v1'
/** Before the 32 bytes of a key (RFC 8410, section 7): DER of PKCS #8, and of SubjectPublicKeyInfo. */
const PRIVATE_DER = Buffer.from('302e020100300506032b656e04220420', 'hex')
const PUBLIC_DER = Buffer.from('302a300506032b656e032100', 'hex')

/** The private half of a key pair. */
export interface Box {
  /** 32 bytes. */
  readonly publicKey: Buffer
  readonly id: Buffer
  /** Throws an Error for bytes that were changed, or sealed for another key or another channel. */
  open(channelId: string, sealed: Buffer): Buffer
}

/** @param secretKey the 32 bytes of SECRET_KEY */
export function createBox(secretKey: Buffer): Box {
  const seed = Buffer.from(hkdfSync('sha256', secretKey, '', PRIVATE_INFO, KEY_BYTES))
  const privateKey = createPrivateKey({ key: Buffer.concat([PRIVATE_DER, seed]), format: 'der', type: 'pkcs8' })
  const publicKey = toBytes(createPublicKey(privateKey))
  return {
    publicKey,
    id: boxIdOf(publicKey),
    open(channelId, sealed) {
      const point = sealed.subarray(0, POINT_BYTES)
      const end = sealed.length - TAG_BYTES
      const { key, nonce } = agree(privateKey, toKey(point), point, publicKey)
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(channelId.toLowerCase()))
      decipher.setAuthTag(sealed.subarray(end))
      return Buffer.concat([decipher.update(sealed.subarray(POINT_BYTES, end)), decipher.final()])
    },
  }
}

/** The id of the key that opens what is sealed for this public key. */
export function boxIdOf(publicKey: Buffer): Buffer {
  return createHash('sha256').update(publicKey).digest().subarray(0, KEY_ID_BYTES)
}

export function sealFor(publicKey: Buffer, channelId: string, text: string): Buffer {
  const own = generateKeyPairSync('x25519')
  const point = toBytes(own.publicKey)
  const { key, nonce } = agree(own.privateKey, toKey(publicKey), point, publicKey)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(channelId.toLowerCase()))
  return Buffer.concat([point, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** The nonce is not random, for each seal has another key. */
function agree(privateKey: KeyObject, publicKey: KeyObject, point: Buffer, recipient: Buffer) {
  const shared = diffieHellman({ privateKey, publicKey })
  const salt = Buffer.concat([point, recipient])
  const bytes = Buffer.from(hkdfSync('sha256', shared, salt, MESSAGE_INFO, KEY_BYTES + NONCE_BYTES))
  return { key: bytes.subarray(0, KEY_BYTES), nonce: bytes.subarray(KEY_BYTES) }
}

const toKey = (point: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_DER, point]), format: 'der', type: 'spki' })

const toBytes = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(PUBLIC_DER.length)
