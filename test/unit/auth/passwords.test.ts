import { scryptSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { hashPassword, isOutdatedHash, verifyPassword } from '../../../src/auth/passwords.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

const CHEAP = { logN: 4, r: 8, p: 1 }

describe('a stored password', () => {
  it('says how it was made, has a salt of its own and does not hold the password', async () => {
    const [one, other] = await Promise.all([hashPassword('correct horse'), hashPassword('correct horse')])
    expect(one).toMatch(/^scrypt\$15\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
    expect(one).not.toBe(other)
    expect(one).not.toContain('correct')
    expect(isOutdatedHash(one)).toBe(false)
  })

  it('matches its password and no other', async () => {
    const stored = await hashPassword('correct horse', CHEAP)
    expect(await verifyPassword('correct horse', stored)).toBe(true)
    expect(await verifyPassword('correct horsf', stored)).toBe(false)
    expect(await verifyPassword('', stored)).toBe(false)
  })

  it('made at an earlier cost is still recognised, and is outdated', async () => {
    const stored = await hashPassword('correct horse', CHEAP)
    expect(stored).toMatch(/^scrypt\$4\$8\$1\$/)
    expect(await verifyPassword('correct horse', stored)).toBe(true)
    expect(await verifyPassword('wrong horse', stored)).toBe(false)
    expect(isOutdatedHash(stored)).toBe(true)
  })

  it('matches however its letters are composed', async () => {
    const stored = await hashPassword('caf\u00e9 au lait', CHEAP)
    expect(await verifyPassword('cafe\u0301 au lait', stored)).toBe(true)
  })

  it('beyond 1,024 characters is wrong, whatever is stored', async () => {
    const longest = 'x'.repeat(1_024)
    expect(await verifyPassword(longest, await hashPassword(longest, CHEAP))).toBe(true)
    for (const stored of [`${longest}x`, ''])
      expect(await verifyPassword(`${longest}x`, await hashPassword(stored, CHEAP)), stored).toBe(false)
  })

  it('of 64 KB of combining marks costs what a wrong one costs', async () => {
    const cost = { logN: 13, r: 8, p: 1 }
    const stored = await hashPassword('correct horse', cost)
    const timed = async (password: string) => {
      const cpuMs = startCpuTimer()
      expect(await verifyPassword(password, stored)).toBe(false)
      return cpuMs()
    }
    const [wrong, long] = [
      await timed('wrong horse'),
      await timed(`x${'\u0301'.repeat(16_000)}${'\u0316'.repeat(16_000)}`),
    ]
    expect(long).toBeGreaterThan(wrong / 5)
    // Normalised, it would take more than a second.
    expect(long).toBeLessThan(wrong + 300)
  })

  it('made by scrypt elsewhere is recognised', async () => {
    const salt = Buffer.from('sixteen bytes ok')
    const hash = scryptSync('correct horse', salt, 32, { N: 2 ** 10, r: 4, p: 2 })
    const stored = `scrypt$10$4$2$${salt.toString('base64url')}$${hash.toString('base64url')}`
    expect(await verifyPassword('correct horse', stored)).toBe(true)
    expect(await verifyPassword('wrong horse', stored)).toBe(false)
  })

  it('of an account that does not exist never matches, and takes as long as a wrong password', async () => {
    const cost = { logN: 13, r: 8, p: 1 }
    const stored = await hashPassword('correct horse', cost)
    const timed = async (hash: string | null) => {
      const cpuMs = startCpuTimer()
      expect(await verifyPassword('wrong horse', hash, cost)).toBe(false)
      return cpuMs()
    }
    const [wrong, nobody] = [await timed(stored), await timed(null)]
    // Without the computation it would be a thousandth.
    expect(nobody).toBeGreaterThan(wrong / 5)
  })

  it.each(['', 'plain', 'scrypt$15$8$3$short$short', `scrypt$31$8$3$${'a'.repeat(22)}$${'a'.repeat(43)}`])(
    'of another form causes an error that does not quote it: %s',
    async (stored) => {
      const failed = verifyPassword('correct horse', stored)
      await expect(failed).rejects.toThrow(/users\.password_hash was not written by this program/)
      if (stored !== '') await expect(failed).rejects.not.toThrow(stored)
    },
  )
})

describe('many passwords at once', () => {
  const verifyAll = (count: number, keysOf: (place: number) => readonly string[], stored: string) =>
    Array.from({ length: count }, (_, place) =>
      verifyPassword('wrong horse', stored, CHEAP, keysOf(place)).catch((error) => error.code),
    )

  it('of one account or network are computed in turn, wait up to twenty, and are rejected beyond that', async () => {
    const stored = await hashPassword('correct horse', CHEAP)
    for (const keysOf of [
      (place: number) => [`network:${place}`, 'account:ann'],
      (place: number) => ['network:one', `account:${place}`],
    ]) {
      const outcomes = await Promise.all(verifyAll(30, keysOf, stored))
      expect(outcomes.filter((outcome) => outcome === false)).toHaveLength(21)
      expect(outcomes.filter((outcome) => outcome === 'unavailable')).toHaveLength(9)
      expect(await verifyPassword('correct horse', stored, CHEAP, keysOf(0))).toBe(true)
    }
  })

  it('of one account or network leave a place for another one', async () => {
    const slow = await hashPassword('correct horse', { logN: 13, r: 8, p: 1 })
    for (const keysOf of [
      (place: number) => [`network:${place}`, 'account:ann'],
      (place: number) => ['network:one', `account:${place}`],
    ]) {
      let done = 0
      const flood = verifyAll(21, keysOf, slow).map((outcome) => outcome.then(() => (done += 1)))
      expect(await verifyPassword('correct horse', slow, CHEAP, ['network:other', 'account:bob'])).toBe(true)
      // In turn it would be the last. How fast the two places are beside each other depends on the machine.
      expect(done).toBeLessThan(11)
      await Promise.all(flood)
    }
  })

  it('of forty accounts, each from a network of its own, are all computed', async () => {
    const stored = await hashPassword('correct horse', CHEAP)
    const outcomes = await Promise.all(verifyAll(40, (place) => [`network:${place}`, `account:${place}`], stored))
    expect(outcomes).toEqual(Array(40).fill(false))
  })
})
