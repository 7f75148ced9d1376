import { createHash, randomBytes, randomInt } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { findPattern, findWeakness } from '../../../src/domain/weak-secret.ts'
import { EXAMPLES } from '../../../src/http/api/examples.ts'
import { DOCUMENTS, listFiles, readText } from '../../support/documents.ts'

const keyOf = (secret: string) => `hbk_prod_${secret}`
const times = <T>(make: () => T) => Array.from({ length: 2_000 }, make)
const digits = (length: number) => Array.from({ length }, () => randomInt(10)).join('')

describe('a secret that can be guessed', () => {
  it.each([
    ['of one character', keyOf('a'.repeat(40)), 'has too few different characters'],
    ['of five characters', keyOf('abcde'.repeat(8)), 'has too few different characters'],
    ['that repeats itself', keyOf('0123456789abcdef'.repeat(2)), 'is a sequence of characters'],
    ['that repeats a word', keyOf('change-me-'.repeat(4)), 'repeats itself'],
    ['that repeats a word, with an end', keyOf(`${'change-me-'.repeat(3)}1234`), 'repeats itself'],
    ['that counts up', keyOf('abcdefghijklmnopqrstuvwxyz0123456789'), 'is a sequence of characters'],
    ['that counts down', keyOf('zyxwvutsrqponmlkjihgfedcba9876543210'), 'is a sequence of characters'],
    ['of the documents', 'hbk_demo_0123456789abcdef0123456789abcdef', 'is an example of the documents'],
    ['password of one character', 'aaaaaaaaaaaa', 'has too few different characters'],
    ['password that repeats itself', 'secret!secret!', 'repeats itself'],
    ['password that counts', 'abcdefghijkl', 'is a sequence of characters'],
    ['password of the examples', 'correct horse battery staple', 'is an example of the documents'],
  ])('is one %s', (_, secret, why) => expect(findWeakness(secret)).toBe(why))

  it.each([
    ['of zeros', Buffer.alloc(32)],
    ['of one byte', Buffer.alloc(32, 7)],
    ['of two halves', Buffer.from('a key of 16 byte'.repeat(2))],
    ['that counts', Buffer.from(Array.from({ length: 32 }, (_, place) => place))],
  ])('is 32 bytes %s', (_, key) => expect(findPattern([...key])).not.toBeNull())

  it('is each API key and password that a document, the chart or a manifest shows', () => {
    const files = [...DOCUMENTS, ...['charts', 'manifests'].flatMap(listFiles), 'src/http/api/examples.ts']
    const keys = files.flatMap((path) => readText(path).match(/hbk_[0-9A-Za-z]{1,32}_[\w-]{32,128}/g) ?? [])
    expect(keys.length).toBeGreaterThan(2)
    const { password, new_password } = { ...EXAMPLES.logIn!.body, ...EXAMPLES.changePassword!.body } as Record<
      string,
      string
    >
    for (const secret of [...keys, password!, new_password!])
      expect(findWeakness(secret), secret).toBe('is an example of the documents')
  })
})

describe('a secret that passes', () => {
  it.each([
    ['keys of openssl rand -hex 20', () => keyOf(randomBytes(20).toString('hex'))],
    ['keys of openssl rand -hex 16', () => keyOf(randomBytes(16).toString('hex'))],
    ['keys of digits', () => keyOf(digits(32))],
    ['passwords of openssl rand -base64 18', () => randomBytes(18).toString('base64')],
  ])('is one of the %s', (_, make) =>
    expect(times(() => findWeakness(make())).filter((why) => why !== null)).toEqual([]),
  )

  it('is each key of random bytes', () => {
    expect(times(() => findPattern([...randomBytes(32)])).filter((why) => why !== null)).toEqual([])
    expect(findPattern([...createHash('sha256').update('x').digest()])).toBeNull()
  })

  it.each(['correct horse battery', 'mississippi rivers', 'four random words here'])('is the password %s', (text) =>
    expect(findWeakness(text)).toBeNull(),
  )

  it('is none at all', () => expect(findWeakness(undefined)).toBeNull())
})
