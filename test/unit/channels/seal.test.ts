import { hkdfSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { SlackSettings } from '../../../src/channels/kinds/slack/config.ts'
import type { WebhookSettings } from '../../../src/channels/kinds/webhook/config.ts'
import { createPublicSealer, createSealer, UnreadableSettings } from '../../../src/channels/seal.ts'

const OLD = Buffer.alloc(32, 1)
const NEW = Buffer.alloc(32, 2)
const CHANNEL = '0199aaaa-0000-7000-8000-00000000000a'
const OTHER = '0199aaaa-0000-7000-8000-00000000000b'
const settings: WebhookSettings = {
  kind: 'webhook',
  url: 'https://user:geheim@example.com/hook?token=ünï',
  secrets: [{ secret: 'whsec_c2VjcmV0', expiresAt: null }],
}

describe('sealed settings', () => {
  it('open again, under the same key, for the same channel', () => {
    const sealed = createSealer(OLD).seal(CHANNEL, settings)
    expect(createSealer(OLD).open(CHANNEL, sealed)).toEqual(settings)
    expect(createSealer(OLD).open(CHANNEL.toUpperCase(), sealed)).toEqual(settings)
  })

  it('hide their content, and whether two are equal', () => {
    const sealer = createSealer(OLD)
    const sealed = Array.from({ length: 100 }, () => sealer.seal(CHANNEL, settings).sealed)
    for (const bytes of sealed) expect(bytes.toString('latin1')).not.toMatch(/whsec|example|geheim|webhook/)
    const nonces = new Set(sealed.map((bytes) => bytes.toString('hex', 0, 12)))
    expect(nonces.size).toBe(100)
    expect(sealed[0]!.length).toBe(12 + Buffer.byteLength(JSON.stringify(settings)) + 16)
  })

  it('open under a previous key', () => {
    const sealed = createSealer(OLD).seal(CHANNEL, settings)
    expect(createSealer(NEW, [Buffer.alloc(32, 9), OLD]).open(CHANNEL, sealed)).toEqual(settings)
  })

  it('explain what to do when no key matches', () => {
    const sealed = createSealer(OLD).seal(CHANNEL, settings)
    const open = () => createSealer(NEW).open(CHANNEL, sealed)
    expect(open).toThrow(/sealed under another SECRET_KEY/)
    expect(open).toThrow(UnreadableSettings)
    expect(open).toThrow(
      `the settings of channel ${CHANNEL} are sealed under another SECRET_KEY: set it in PREVIOUS_SECRET_KEYS, or update the channel with its whole config`,
    )
  })

  it('do not open for another channel', () => {
    const sealed = createSealer(OLD).seal(CHANNEL, settings)
    expect(() => createSealer(OLD).open(OTHER, sealed)).toThrow(/are damaged/)
  })

  it('do not open when any byte of them was changed, or some are missing', () => {
    const sealer = createSealer(OLD)
    const { sealed, sealedWith } = sealer.seal(CHANNEL, { kind: 'slack', url: 'https://a/b' } as SlackSettings)
    for (let place = 0; place < sealed.length; place += 1) {
      const changed = Buffer.from(sealed)
      changed[place]! ^= 1
      expect(() => sealer.open(CHANNEL, { sealed: changed, sealedWith }), `byte ${place}`).toThrow(/are damaged/)
      const cut = sealed.subarray(0, place)
      expect(() => sealer.open(CHANNEL, { sealed: cut, sealedWith }), `${place} bytes`).toThrow(/are damaged/)
    }
  })

  it('do not open under another key that claims to be the right one', () => {
    const { sealed } = createSealer(OLD).seal(CHANNEL, settings)
    const other = createSealer(NEW)
    expect(() => other.open(CHANNEL, { sealed, sealedWith: other.keyId })).toThrow(/are damaged/)
  })

  it('have no content in an error', () => {
    const sealer = createSealer(OLD)
    const { sealed, sealedWith } = sealer.seal(CHANNEL, settings)
    sealed[20]! ^= 1
    try {
      sealer.open(CHANNEL, { sealed, sealedWith })
      expect.unreachable()
    } catch (error) {
      expect(`${error} ${(error as Error).cause}`).not.toMatch(/geheim|whsec|example/)
    }
  })
})

describe('the id of a key', () => {
  it('is eight bytes, the same for the same key and another for another', () => {
    const ids = [createSealer(OLD), createSealer(OLD, [NEW]), createSealer(NEW)].map(({ keyId }) =>
      keyId.toString('hex'),
    )
    expect(ids[0]).toMatch(/^[0-9a-f]{16}$/)
    expect(ids[1]).toBe(ids[0])
    expect(ids[2]).not.toBe(ids[0])
    expect(createSealer(OLD).seal(CHANNEL, settings).sealedWith.toString('hex')).toBe(ids[0])
  })

  it('is not part of any key', () => {
    const { keyId } = createSealer(OLD)
    const encryption = Buffer.from(hkdfSync('sha256', OLD, '', 'heartbeat-operator channel settings v1', 32))
    expect(encryption.includes(keyId)).toBe(false)
    expect(OLD.includes(keyId)).toBe(false)
  })

  it('needs a key of 32 bytes', () => {
    for (const length of [0, 31, 33]) {
      expect(() => createSealer(Buffer.alloc(length))).toThrow(`a SECRET_KEY has ${length} bytes, 32 are needed`)
      expect(() => createSealer(OLD, [Buffer.alloc(length)])).toThrow('32 are needed')
    }
  })
})

describe('settings that were sealed without SECRET_KEY', () => {
  const sealAs = (secretKey: Buffer) => createPublicSealer(createSealer(secretKey).publicKey).seal(CHANNEL, settings)

  it('open with SECRET_KEY, for the same channel', () => {
    expect(createSealer(OLD).open(CHANNEL, sealAs(OLD))).toEqual(settings)
    expect(createSealer(OLD).open(CHANNEL.toUpperCase(), sealAs(OLD))).toEqual(settings)
    expect(() => createSealer(OLD).open(OTHER, sealAs(OLD))).toThrow(/are damaged/)
  })

  it('do not open with what sealed them', () => {
    const sealer = createPublicSealer(createSealer(OLD).publicKey)
    expect(() => sealer.open(CHANNEL, sealer.seal(CHANNEL, settings))).toThrow(UnreadableSettings)
  })

  it('hide their content, and whether two are equal', () => {
    const sealed = Array.from({ length: 20 }, () => sealAs(OLD).sealed)
    for (const bytes of sealed) expect(bytes.toString('latin1')).not.toMatch(/whsec|example|geheim|webhook/)
    expect(new Set(sealed.map((bytes) => bytes.toString('hex', 0, 32))).size).toBe(20)
    expect(new Set(sealed.map((bytes) => bytes.toString('hex', 32, 64))).size).toBe(20)
  })

  it('open under a previous key, and under no other one', () => {
    expect(createSealer(NEW, [Buffer.alloc(32, 9), OLD]).open(CHANNEL, sealAs(OLD))).toEqual(settings)
    expect(() => createSealer(NEW).open(CHANNEL, sealAs(OLD))).toThrow(/sealed under another SECRET_KEY/)
    const claimed = { sealed: sealAs(OLD).sealed, sealedWith: sealAs(NEW).sealedWith }
    expect(() => createSealer(NEW).open(CHANNEL, claimed)).toThrow(/are damaged/)
  })

  it('do not open when any byte of them was changed, or some are missing', () => {
    const sealer = createSealer(OLD)
    const { sealed, sealedWith } = sealAs(OLD)
    for (let place = 0; place < sealed.length; place += 1) {
      const changed = Buffer.from(sealed)
      changed[place]! ^= 1
      expect(() => sealer.open(CHANNEL, { sealed: changed, sealedWith }), `byte ${place}`).toThrow(/are damaged/)
      const cut = sealed.subarray(0, place)
      expect(() => sealer.open(CHANNEL, { sealed: cut, sealedWith }), `${place} bytes`).toThrow(/are damaged/)
    }
  })

  it('have the key of RFC 7748 of SECRET_KEY, whichever process derives it', () => {
    expect(createSealer(OLD).publicKey).toHaveLength(32)
    expect(createSealer(OLD).publicKey).toEqual(createSealer(Buffer.from(OLD)).publicKey)
    expect(createSealer(OLD).publicKey).not.toEqual(createSealer(NEW).publicKey)
  })
})
