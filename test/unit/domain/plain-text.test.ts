/** Texts of others in so many bytes (their characters: test/unit/channels). */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  cleanOutput,
  firstBytes,
  isVisible,
  lastBytes,
  toOneLine,
  withoutBrokenStart,
} from '../../../src/domain/plain-text.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

describe('firstBytes', () => {
  it('keeps a text that fits, and cuts between characters', () => {
    expect(firstBytes('abcdef', 6)).toBe('abcdef')
    expect(firstBytes('abcdefg', 6)).toBe('abc…')
    expect(firstBytes('ééé', 6)).toBe('ééé')
    expect(firstBytes('éééé', 6)).toBe('é…')
    expect(firstBytes('💾💾💾', 8)).toBe('💾…')
  })
})

describe('lastBytes', () => {
  it('keeps a text that fits, and otherwise whole lines of its end', () => {
    expect(lastBytes('one\ntwo', 7)).toBe('one\ntwo')
    expect(lastBytes('one\ntwo\nthree', 12)).toBe('two\nthree'.slice(4))
    expect(lastBytes('one\ntwo\nthree', 12)).not.toContain('…')
  })

  it('cuts a long last line between characters', () => {
    const cut = lastBytes('x'.repeat(50) + 'é'.repeat(50), 20)
    expect(cut).toBe(`…${'é'.repeat(8)}`)
    expect(Buffer.byteLength(lastBytes(`${'é'.repeat(99)}`, 20))).toBeLessThanOrEqual(20)
  })
})

describe('withoutBrokenStart', () => {
  const rest = (...bytes: number[]) => [...withoutBrokenStart(Buffer.from(bytes))]

  it('drops the bytes that continue a character, three at most', () => {
    expect(rest(0x92, 0xbe, 0x61)).toEqual([0x61])
    expect(rest(0x9f, 0x92, 0xbe)).toEqual([])
    expect(rest(0x80, 0x80, 0x80, 0x80)).toEqual([0x80])
    expect(rest(0x61, 0x80)).toEqual([0x61, 0x80])
    expect(rest(0xf0, 0x9f, 0x92, 0xbe)).toEqual([0xf0, 0x9f, 0x92, 0xbe])
  })
})

describe('the lines of an output', () => {
  it('end as they do on any system, or in any text of Unicode', () => {
    expect(cleanOutput('one\r\ntwo\rthree\u2028four\u2029five')).toBe('one\ntwo\nthree\nfour\nfive')
  })

  it('begin with the first that is not empty, and end with the last', () => {
    expect(cleanOutput(' \n\n  one\n\ntwo \n ')).toBe('  one\n\ntwo')
  })
})

describe('what a terminal takes for a command', () => {
  it.each([
    ['a link', 'see \x1b]8;;http://x\x07text\x1b]8;;\x07.', 'see text.'],
    ['a title that ends as it should', '\x1b]0;title\x1b\\text', 'text'],
    ['a title in eight bits', '\u009d0;title\u009ctext', 'text'],
    ['a title of screen', '\x1bktitle\x1b\\text', 'text'],
    ['a title without an end: the rest of its line', 'one\x1b]0;title\ntwo', 'one\ntwo'],
    ['a title at the end of the text', 'one\x1b]0;tit', 'one'],
    ['colours', '\x1b[1;38:2:1:2:3mred\x1b[m, \u009b31mred\u009bm', 'red, red'],
    ['a movement with a space', 'a\x1b[2 qb\x1b[?25lc', 'abc'],
    ['a colour without an end', 'a\x1b[31', 'a'],
    ['an escape without anything', 'a\x1b', 'a'],
    ['an image of several lines', '\x1bP1;2q#0\n-#1\n\x1b\\done', 'done'],
    ['an image in eight bits', '\u0090q#0\n\u009cdone', 'done'],
    ['an image without an end: the rest of its line', '\x1bPq#0\nfailed\n', 'failed'],
    ['an application command', '\x1b_Gf=1;AAAA\x1b\\done, \u009fG\u009c', 'done,'],
    ['a private message', '\x1b^pm\x1b\\done\u009epm\u009c', 'done'],
    ['a string', '\x1bXsos\x1b\\done\u0098sos\u009c', 'done'],
    ['sets of characters', '\x1b(0qqq\x1b(B \x1b%G\x1b#8x', 'qqq x'],
    ['short ones', '\x1b7a\x1b8\x1b=b\x1b>\x1bcc\x1bM', 'abc'],
  ])('is removed: %s', (_, text, cleaned) => {
    expect(cleanOutput(text)).toBe(cleaned)
    expect(toOneLine(text)).toBe(cleaned.replace('\n', ' '))
  })

  it.each([
    [']8;;http://x', ']8;;http://x'],
    ['a\x07[1] item', 'a[1] item'],
    ['list\n[31m] \\ (B', 'list\n[31m] \\ (B'],
  ])('is nothing without an escape: %j', (text, cleaned) => expect(cleanOutput(text)).toBe(cleaned))

  it('leaves no control behind, whatever it is', () => {
    const unit = fc.constantFrom(...'\x1b\x1b\x1b[]PX^_k\\(; 0m\x07\u0090\u0098\u009b\u009c\u009d\u009e\u009f\n\tab')
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
        expect(cleanOutput(text)).not.toMatch(/[^\P{Cc}\n\t]/u)
        expect(toOneLine(text)).not.toMatch(/\p{Cc}/u)
      }),
    )
  })

  const UNITS = [
    '\x1b',
    '\x1b[',
    '\x1b[0',
    '\x1b]',
    '\x1b]a',
    '\x1bP',
    '\x1bPa\n',
    '\x1b(',
    '\u0090',
    '\u0090a',
    '\u009d',
    '\u009b',
    '\x07',
    '\n ',
  ]
  it.each(UNITS)('takes time in proportion to its length: %j', (unit) => {
    const measure = (length: number) => {
      const text = unit.repeat(length / unit.length)
      const took = [1, 2, 3].map(() => {
        const cpuMs = startCpuTimer()
        cleanOutput(text)
        toOneLine(text)
        return cpuMs()
      })
      return Math.min(...took)
    }
    measure(1_000)
    expect(measure(400_000)).toBeLessThan(10 * measure(100_000) + 10)
  })
})

describe('a text of which nothing can be seen', () => {
  it.each([
    '',
    ' ',
    '\u00a0\u3000',
    '\u200b',
    '\u2060',
    '\u00ad',
    '\ufeff',
    '\u180e',
    '\u115f',
    '\u1160',
    '\u3164',
    '\uffa0',
    '\u2800',
    '\u034f',
    '\u200d',
    '\u202e',
    '\u0301',
    '\u20e3',
    '\ufe0f',
    '\u{e0061}\u{e007f}',
    '\u{e0101}',
    '\ufffa',
    '\t\u0000',
    ' \u200b\u0301 ',
  ])('is known: %j', (text) => expect(isVisible(text)).toBe(false))
  it.each(['a', '.', '0', '\u200bx', 'e\u0301', '夜', '💾', '1\ufe0f\u20e3', '\u0663', '🏴\u{e0067}'])(
    'is none: %j',
    (text) => expect(isVisible(text)).toBe(true),
  )
})
