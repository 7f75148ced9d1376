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
  [3, '0'],
  [4, '1: x'],
  [6, '1: x'],
  [7, '2: x, y'],
])('as many lines are composed as fit into %i', (limit, text) => {
  const compose = (lines: readonly string[]) => (lines.length === 0 ? '0' : `${lines.length}: ${lines.join(', ')}`)
  expect(composeLines(['x', 'y'], limit, compose)).toBe(text)
})
