import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { makeSecret, rotateSecrets } from '../../../src/channels/signing-secret.ts'
import { SECRET_OVERLAP_MS } from '../../../src/domain/channel.ts'
import { NOON } from '../../support/builders.ts'

describe('a signing secret', () => {
  it('is one of the standard, of 32 bytes, and never the same', () => {
    const secrets = Array.from({ length: 100 }, makeSecret)
    expect(new Set(secrets).size).toBe(100)
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      expect(() => new Webhook(secret)).not.toThrow()
    }
  })
})

describe('rotating secrets', () => {
  it('puts the new one first and lets the one before it go on for a day', () => {
    expect(rotateSecrets([{ secret: 'one', expiresAt: null }], 'two', NOON)).toEqual([
      { secret: 'two', expiresAt: null },
      { secret: 'one', expiresAt: NOON + SECRET_OVERLAP_MS },
    ])
  })

  it('leaves two at most, whatever was still valid', () => {
    const once = rotateSecrets([{ secret: 'one', expiresAt: null }], 'two', NOON)
    expect(rotateSecrets(once, 'three', NOON + 1)).toEqual([
      { secret: 'three', expiresAt: null },
      { secret: 'two', expiresAt: NOON + 1 + SECRET_OVERLAP_MS },
    ])
  })
})
