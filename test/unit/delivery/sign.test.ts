import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { sign } from '../../../src/delivery/sign.ts'

const makeSecret = () => `whsec_${randomBytes(24).toString('base64')}`
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

  it('is accepted by the package of the scheme', () => {
    const secret = makeSecret()
    expect(verify(secret, sign({ id, atSeconds, body, secrets: [secret] }))).toEqual(JSON.parse(body))
  })

  it('is accepted for keys of all lengths that the scheme allows', () => {
    for (let bytes = 24; bytes <= 64; bytes++) {
      const secret = `whsec_${randomBytes(bytes).toString('base64')}`
      expect(verify(secret, sign({ id, atSeconds, body, secrets: [secret] }))).toEqual(JSON.parse(body))
    }
  })

  it.each([{ id: 'other' }, { atSeconds: atSeconds + 1 }, { body: `${body} ` }])('covers %j', (changes) => {
    const secret = makeSecret()
    const signature = sign({ id, atSeconds, body, secrets: [secret] })
    expect(() => verify(secret, signature, changes)).toThrow('No matching signature')
  })

  it('by another secret is not accepted', () => {
    expect(() => verify(makeSecret(), sign({ id, atSeconds, body, secrets: [makeSecret()] }))).toThrow(
      'No matching signature',
    )
  })

  it('is made by each of several secrets: receivers may know either', () => {
    const secrets = [makeSecret(), makeSecret()]
    const signature = sign({ id, atSeconds, body, secrets })
    expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/)
    for (const secret of secrets) expect(verify(secret, signature)).toEqual(JSON.parse(body))
    expect(() => verify(makeSecret(), signature)).toThrow('No matching signature')
  })

  it.each(['', 'whsec_', 'secret', 'whsec_not base64!', 'c2VjcmV0'])(
    'needs a secret of the right form, not %j',
    (secret) => {
      expect(() => sign({ id, atSeconds, body, secrets: [secret] })).toThrow(
        new Error('the secret of a webhook is not whsec_ and a key in base64'),
      )
    },
  )
})
