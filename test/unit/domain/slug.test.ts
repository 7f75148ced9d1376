import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../../src/domain/limits.ts'
import { deriveSlug, isSlug, withSuffix } from '../../../src/domain/slug.ts'
import { anyText } from '../../support/builders.ts'

/** Design, section 3.1. */
const SLUG = /^[a-z0-9](?:[a-z0-9-_]*[a-z0-9])?$/

it('a slug has 1 to 100 characters, and begins and ends with a letter or digit', () => {
  for (const text of ['a', '7', 'a-_b', 'a'.repeat(LIMITS.slugLength)]) expect(isSlug(text), text).toBe(true)
  for (const text of ['', '-a', 'a_', 'A', 'a b', 'é', 'a'.repeat(LIMITS.slugLength + 1)])
    expect(isSlug(text), text).toBe(false)
})

describe('the slug of a name', () => {
  it.each([
    ['Nightly Backup', 'nightly-backup'],
    ['backup', 'backup'],
    ['DB: dump (prod) #3', 'db-dump-prod-3'],
    ['snake_case_job', 'snake-case-job'],
    ['--- edges ---', 'edges'],
    ['Übergröße Çelik Łódź', 'ubergrosse-celik-lodz'],
    ['Ærø straße', 'aero-strasse'],
    ['İstanbul ısı', 'istanbul-isi'],
    ['e\u0301te\u0301', 'ete'],
    ['Ｆｕｌｌ １２', 'full-12'],
    ['резервная копия', 'rezervnaya-kopiya'],
    ['объект', 'obekt'],
    ['αντίγραφο', 'antigrafo'],
    ['北京', 'beijing'],
    ['バックアップ', 'batkuatpu'],
    ['백업', 'baegeob'],
    ['สำรองข้อมูล', 'samrongkhomul'],
    ['Sao lưu dữ liệu', 'sao-luu-du-lieu'],
    ['١٢', '12'],
    ['💾 nightly', 'nightly'],
    ['🎉', 'check'],
    ['!!!', 'check'],
    ['', 'check'],
    ['夜間 backup', 'yejian-backup'],
  ])('%j gives %j', (name, slug) => {
    expect(deriveSlug(name, 'check')).toBe(slug)
  })

  it('ends at 100 characters, and never in a separator', () => {
    expect(deriveSlug('a'.repeat(100), 'check')).toBe('a'.repeat(100))
    expect(deriveSlug('a'.repeat(101), 'check')).toBe('a'.repeat(100))
    expect(deriveSlug(`${'a'.repeat(99)} b`, 'check')).toBe('a'.repeat(99))
    expect(deriveSlug(`${'a'.repeat(98)} b`, 'check')).toBe(`${'a'.repeat(98)}-b`)
  })

  it('is always one that the interface accepts', () => {
    fc.assert(
      fc.property(anyText(150), (name) => {
        const slug = deriveSlug(name, 'check')
        expect(slug).toMatch(SLUG)
        expect(slug.length).toBeLessThanOrEqual(LIMITS.slugLength)
      }),
    )
  })
})

describe('a taken slug', () => {
  it('is numbered from two on', () => {
    expect([1, 2, 3, 10].map((nth) => withSuffix('backup', nth))).toEqual([
      'backup',
      'backup-2',
      'backup-3',
      'backup-10',
    ])
  })

  it('makes room for its number within 100 characters', () => {
    expect(withSuffix('a'.repeat(100), 2)).toBe(`${'a'.repeat(98)}-2`)
    expect(withSuffix('a'.repeat(98), 2)).toBe(`${'a'.repeat(98)}-2`)
    expect(withSuffix('a'.repeat(100), 1234)).toBe(`${'a'.repeat(95)}-1234`)
    expect(withSuffix(`${'a'.repeat(97)}-bc`, 2)).toBe(`${'a'.repeat(97)}-2`)
  })

  it('gives another one for each number', () => {
    const slug = 'a'.repeat(100)
    expect(new Set(Array.from({ length: 200 }, (_, index) => withSuffix(slug, index + 1))).size).toBe(200)
  })
})

it('a project whose name has no usable letter is called project', () => {
  expect(deriveSlug('!?', 'project')).toBe('project')
})
