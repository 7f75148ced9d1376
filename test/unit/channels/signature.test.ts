import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { makeSecret, rotateSecrets, SECRET_OVERLAP_MS, sign } from '../../../src/channels/kinds/webhook/signature.ts'
import { NOON } from '../../support/builders.ts'

const atSeconds = Math.floor(Date.now() / 1_000)
const id = '0197a1b2-0000-7000-8000-000000000001'
const body = '{"version":1,"text":"Übung 😀"}'

function verify(secret: string, signature: string, changes: { id?: string; atSeconds?: number; body?: string } = {}) {
  const sent = { id, atSeconds, body, ...changes }
  return new Webhook(secret).verify(sent.body, {
    'webhook-id': sent.id,
    'webhook-timestamp': String(sent.atSeconds),
    'webhook-signature': signature,
  })
}

describe('a signature', () => {
  it('is the one of the example in the specification', () => {
    expect(
      sign({
        id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        atSeconds: 1_614_265_330,
        body: '{"test": 2432232314}',
        secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      }),
    ).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  it.each([24, 25, 26, 32, 64])('with a key of %i bytes is accepted by a library of the standard', (bytes) => {
    const secret = `whsec_${randomBytes(bytes).toString('base64')}`
    expect(verify(secret, sign({ id, atSeconds, body, secrets: [secret] }))).toEqual(JSON.parse(body))
  })

  it.each([{ id: 'other' }, { atSeconds: atSeconds + 1 }, { body: `${body} ` }])('covers %j', (changes) => {
    const secret = makeSecret()
    const signature = sign({ id, atSeconds, body, secrets: [secret] })
    expect(() => verify(secret, signature, changes)).toThrow('No matching signature')
  })

  it('has a part for each of several secrets', () => {
    const secrets = [makeSecret(), makeSecret()]
    const signature = sign({ id, atSeconds, body, secrets })
    expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/)
    for (const secret of secrets) expect(verify(secret, signature)).toEqual(JSON.parse(body))
    expect(() => verify(makeSecret(), signature)).toThrow('No matching signature')
  })

  it.each(['', 'whsec_', 'secret', 'whsec_not base64!', 'c2VjcmV0'])('cannot be made with the secret %j', (secret) => {
    expect(() => sign({ id, atSeconds, body, secrets: [secret] })).toThrow(
      new Error('the secret of a webhook is not whsec_ and a key in base64'),
    )
  })
})

describe('a signing secret', () => {
  it('is a valid secret of 32 bytes, and never the same', () => {
    const secrets = Array.from({ length: 100 }, makeSecret)
    expect(new Set(secrets).size).toBe(100)
    for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  })

  it('stays valid for a day after its rotation, and only the last one does', () => {
    const once = rotateSecrets([{ secret: 'one', expiresAt: null }], NOON)
    const twice = rotateSecrets(once, NOON + 1)
    const [two, three] = [once[0]!.secret, twice[0]!.secret]
    expect(new Set(['one', two, three]).size).toBe(3)
    expect(once).toEqual([
      { secret: two, expiresAt: null },
      { secret: 'one', expiresAt: NOON + SECRET_OVERLAP_MS },
    ])
    expect(twice).toEqual([
      { secret: three, expiresAt: null },
      { secret: two, expiresAt: NOON + 1 + SECRET_OVERLAP_MS },
    ])
  })
})
