import { describe, expect, it } from 'vitest'
import { fitDescription, fitName, fitSeconds, fitSlug, fitTags } from '../../../src/import/texts.ts'

/** The result, and the notes about it. */
function fitted<T>(work: (notes: string[]) => T): [T, string[]] {
  const notes: string[] = []
  return [work(notes), notes]
}

describe('a name', () => {
  it.each([
    ['x'.repeat(100), 'x'.repeat(100), []],
    ['🍮'.repeat(101), '🍮'.repeat(100), ['the name is cut to 100 characters']],
    ['two\nlines', 'two lines', []],
    [' \u0000 ', 'fallback', []],
    ['\u200b\ufeff', 'fallback', []],
  ])('is a line of at most 100 characters: %j', (given, name, notes) => {
    expect(fitted((to) => fitName(given, 'fallback', to))).toEqual([name, notes])
  })
})

describe('a description', () => {
  it.each([
    ['', null, 0],
    ['a\nb', 'a\nb', 0],
    ['ü'.repeat(4_096), 'ü'.repeat(4_096), 0],
    ['ü'.repeat(4_097), 'ü'.repeat(4_096), 1],
  ])('has at most 4,096 characters, and lines', (given, description, notes) => {
    expect(fitted((to) => fitDescription(given, to))).toEqual([description, expect.objectContaining({ length: notes })])
  })
})

describe('tags', () => {
  it('are each once, in their order', () => {
    expect(fitted((to) => fitTags(['b', 'a', 'b'], to))).toEqual([['b', 'a'], []])
  })

  it('have at most 50 characters, and are at most 20', () => {
    const tags = ['x'.repeat(50), ...Array.from({ length: 20 }, (_, place) => `t${place}`), 'x'.repeat(51)]
    const [kept, notes] = fitted((to) => fitTags(tags, to))
    expect(kept).toEqual(tags.slice(0, 20))
    expect(notes).toEqual([`tags are left out: t19, ${'x'.repeat(51)}`])
  })
})

describe('a slug', () => {
  it.each([
    ['', 'Crème brûlée', 'creme-brulee', []],
    ['a_b-c', 'Name', 'a_b-c', []],
    ['x'.repeat(100), 'Name', 'x'.repeat(100), []],
    ['backup-', 'Name', 'backup', ['the slug backup- becomes backup']],
  ])('is one of ours: %j', (given, name, slug, notes) => {
    expect(fitted((to) => fitSlug(given, name, to))).toEqual([slug, notes])
  })
})

describe('seconds', () => {
  it.each([
    [10, 10, []],
    [9, 10, ['the period of 9 s becomes 10 s']],
    [20, 20, []],
    [21, 20, ['the period of 21 s becomes 20 s']],
    [10.4, 10, ['the period of 10.4 s becomes 10 s']],
  ])('are whole ones within their limits: %d', (given, seconds, notes) => {
    expect(fitted((to) => fitSeconds(given, { min: 10, max: 20 }, 'period', to))).toEqual([seconds, notes])
  })
})
