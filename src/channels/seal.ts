/**
 * Encrypts the settings of channels for the database: AES-256-GCM under a key derived from SECRET_KEY. Stored are nonce, ciphertext, tag, and
 * the id of the key, so that SECRET_KEY can be replaced (channels/reseal.ts). The channel's id is authenticated too: settings that are copied
 * to the row of another channel do not open there. The controller has no SECRET_KEY: it seals for the public key of
 * seal-box.ts, which each sealer opens too.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { ChannelSettings } from '../domain/channel.ts'
import { SECRET_KEY_BYTES } from '../domain/limits.ts'
import { boxIdOf, createBox, sealFor } from './seal-box.ts'

export interface Sealed {
  readonly sealed: Buffer
  /** The id of the key. The key cannot be derived from it. */
  readonly sealedWith: Buffer
}

export interface Sealer {
  /** The id of the key that `seal` uses. */
  readonly keyId: Buffer
  seal<Settings extends ChannelSettings>(channelId: string, settings: Settings): Sealed
  /** Throws UnreadableSettings when no key matches, or when the stored bytes were changed. */
  open(channelId: string, sealed: Sealed): ChannelSettings
}

/** The message contains what to do, and no secret. */
export class UnreadableSettings extends Error {
  override readonly name = 'UnreadableSettings'
}

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const KEY_ID_BYTES = 8
/** NIST SP 800-38D, section 8.2.2: 96 random bits allow 2^32 seals under one key. */
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Two purposes, two keys (RFC 5869, section 3.2). A change of the sealed form needs another text, and so gets another key id. */
const KEY_INFO = 'heartbeat-operator channel settings v1'
const KEY_ID_INFO = 'heartbeat-operator channel settings key id v1'

interface Opener {
  readonly id: Buffer
  /** Throws an Error for bytes that were changed. */
  open(channelId: string, sealed: Buffer): Buffer
}

interface Key extends Opener {
  readonly key: Uint8Array
}

/** The sealer of a process with SECRET_KEY. */
export interface OpeningSealer extends Sealer {
  /** For processes that have no SECRET_KEY. */
  readonly publicKey: Buffer
}

/** `secretKey`: the 32 bytes of SECRET_KEY. `previous`: PREVIOUS_SECRET_KEYS, which only open. Throws an Error for a key of another length. */
export function createSealer(secretKey: Buffer, previous: readonly Buffer[] = []): OpeningSealer {
  const current = deriveKey(secretKey)
  const boxes = [secretKey, ...previous].map(createBox)
  const keys: readonly Opener[] = [current, ...previous.map(deriveKey), ...boxes]

  return {
    keyId: current.id,
    publicKey: boxes[0]!.publicKey,

    seal(channelId, settings) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, current.key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(toAssociated(channelId))
      const encrypted = [cipher.update(JSON.stringify(settings)), cipher.final()]
      return { sealed: Buffer.concat([nonce, ...encrypted, cipher.getAuthTag()]), sealedWith: current.id }
    },

    open(channelId, { sealed, sealedWith }) {
      const found = keys.find(({ id }) => id.equals(sealedWith))
      if (found === undefined)
        throw new UnreadableSettings(
          `the settings of channel ${channelId} are sealed under another SECRET_KEY: set it in PREVIOUS_SECRET_KEYS, or update the channel with its whole config`,
        )
      try {
        return JSON.parse(found.open(channelId, sealed).toString('utf8')) as ChannelSettings
      } catch (cause) {
        const message = `the stored settings of channel ${channelId} are damaged: update the channel with its whole config`
        throw new UnreadableSettings(message, { cause })
      }
    },
  }
}

function deriveKey(secretKey: Buffer): Key {
  if (secretKey.length !== SECRET_KEY_BYTES) {
    throw new Error(
      `a SECRET_KEY has ${secretKey.length} bytes, ${SECRET_KEY_BYTES} are needed: make one with "openssl rand -base64 32"`,
    )
  }
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', KEY_INFO, KEY_BYTES))
  return {
    key,
    id: Buffer.from(hkdfSync('sha256', secretKey, '', KEY_ID_INFO, KEY_ID_BYTES)),
    open(channelId, sealed) {
      const end = sealed.length - TAG_BYTES
      const nonce = sealed.subarray(0, NONCE_BYTES)
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(toAssociated(channelId))
      decipher.setAuthTag(sealed.subarray(end))
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()])
    },
  }
}

/** The sealer of a process without SECRET_KEY: what it seals, it cannot open. */
export function createPublicSealer(publicKey: Buffer): Sealer {
  const keyId = boxIdOf(publicKey)
  return {
    keyId,
    seal: (channelId, settings) => ({
      sealed: sealFor(publicKey, channelId, JSON.stringify(settings)),
      sealedWith: keyId,
    }),
    open(channelId) {
      throw new UnreadableSettings(`the settings of channel ${channelId} cannot be read without SECRET_KEY`)
    },
  }
}

function toAssociated(channelId: string): Buffer {
  return Buffer.from(channelId.toLowerCase())
}
