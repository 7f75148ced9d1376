import { expect, it } from 'vitest'
import { composeLines, cutEnd, cutStart } from '../../../src/channels/kinds/cut.ts'

const pieces = ['a', '&amp;', 'b']

it.each([
  [7, 'a&amp;b'],
  [6, 'a…'],
  [2, 'a…'],
  [1, '…'],
])('a text of 7 is cut at its end to %i, never within a piece', (limit, text) => {
  expect(cutEnd(pieces, limit)).toBe(text)
})

it.each([
  [7, 'a&amp;b'],
  [6, '…b'],
  [1, '…'],
])('a text of 7 is cut at its beginning to %i, never within a piece', (limit, text) => {
  expect(cutStart(pieces, limit)).toBe(text)
})

it.each([
  ['abcd\nxyz', 7, '…\nxyz'],
  ['abcde\nxy', 7, '…cde\nxy'],
  ['abc\nxyz', 5, '…\nxyz'],
  ['abcd\nxyz', 8, 'abcd\nxyz'],
  ['abcdef', 4, '…def'],
])('%j is cut to %i at a line, unless half of it would be lost', (text, limit, cut) => {
  expect(cutStart([...text], limit)).toBe(cut)
})

it.each([
  [3, '0'],
  [4, '1: x'],
  [6, '1: x'],
  [7, '2: x, y'],
])('as many lines are composed as fit into %i', (limit, text) => {
  const compose = (lines: readonly string[]) => (lines.length === 0 ? '0' : `${lines.length}: ${lines.join(', ')}`)
  expect(composeLines(['x', 'y'], limit, compose)).toBe(text)
})
