import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createIncidentTokens } from '../../../src/auth/incident-tokens.ts'
import { NOON as NOW } from '../../support/builders.ts'

const KEY = Buffer.alloc(32, 7)
const tokens = createIncidentTokens(KEY, [])
const incident = { checkId: '01a1ffd6-704f-76e2-8164-e2405742933d', since: NOW }
const token = tokens.sign(incident)

describe('the token of an incident', () => {
  it('names its check and its beginning, and is the same each time', () => {
    expect(tokens.read(token)).toEqual(incident)
    expect(tokens.sign(incident)).toBe(token)
    expect(token).toMatch(/^[\w-]{51}$/)
    for (const since of [0, 1, 2 ** 48 - 1]) {
      const one = { checkId: randomUUID(), since }
      expect(tokens.read(tokens.sign(one))).toEqual(one)
    }
  })

  it('is another one for another check and another time', () => {
    const other = { ...incident, checkId: incident.checkId.replace(/d$/, 'e') }
    expect(new Set([incident, other, { ...incident, since: NOW + 1 }].map(tokens.sign)).size).toBe(3)
  })

  it.each(Array.from({ length: 38 }, (_, place) => place))('is invalid with another byte %i', (place) => {
    for (const flip of [1, 0x80, 0xff]) {
      const bytes = Buffer.from(token, 'base64url')
      bytes[place]! ^= flip
      expect(tokens.read(bytes.toString('base64url'))).toBeNull()
    }
  })

  it('is invalid in another length and in other letters', () => {
    const last = token.at(-1)!
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // Its last two bits are of no byte.
    const spelled = [1, 2, 3].map((bits) => token.slice(0, -1) + letters[letters.indexOf(last) ^ bits])
    for (const text of spelled) expect(Buffer.from(text, 'base64url')).toEqual(Buffer.from(token, 'base64url'))
    for (const text of ['', token.slice(1), token.slice(0, -1), `${token}A`, `${token}=`, ` ${token}`, `${token}\n`])
      expect(tokens.read(text), text).toBeNull()
    for (const text of spelled) expect(tokens.read(text), text).toBeNull()
    expect(tokens.read(randomBytes(38).toString('base64url'))).toBeNull()
  })

  it('is of one key: that of now signs, and those before it are read', () => {
    const next = Buffer.alloc(32, 8)
    expect(createIncidentTokens(next, []).read(token)).toBeNull()
    const renewed = createIncidentTokens(next, [Buffer.alloc(32, 6), KEY])
    expect(renewed.read(token)).toEqual(incident)
    expect(tokens.read(renewed.sign(incident))).toBeNull()
    expect(renewed.read(renewed.sign(incident))).toEqual(incident)
  })
})
