/**
 * Lines of prose end at 120 characters. Tables, code, comments and single long words, such as addresses, are free. Rows
 * of a table belong to a table: behind a blank line Markdown shows them as prose.
 */

import { describe, expect, it } from 'vitest'
import { DOCUMENTS, listFiles, readText } from '../../support/documents.ts'

const MOST = 120
const FOLDERS = ['charts', 'docs', 'manifests', 'src', 'test', 'tools'].flatMap(listFiles)
const FILES = [...new Set([...DOCUMENTS, ...FOLDERS.filter((path) => path.endsWith('.md'))])].sort()

/** The numbers of the lines that are too long. */
function findLongLines(text: string): number[] {
  let isCode = false
  return text.split('\n').flatMap((line, index) => {
    if (line.trimStart().startsWith('```')) isCode = !isCode
    const isFree = isCode || /^\s*(\||<!--)/.test(line) || /^\s*(- )?\S+$/.test(line)
    return !isFree && line.length > MOST ? [index + 1] : []
  })
}

/** The numbers of the lines that begin a group of rows, and have no head. */
function findLooseRows(text: string): number[] {
  const isRow = (line: string | undefined) => /^\s*\|/.test(line ?? '')
  let isCode = false
  const lines = text.split('\n')
  return lines.flatMap((line, index) => {
    if (line.trimStart().startsWith('```')) isCode = !isCode
    const begins = !isCode && isRow(line) && !isRow(lines[index - 1])
    return begins && !/^\s*\|[-:| ]+\|\s*$/.test(lines[index + 1] ?? '') ? [index + 1] : []
  })
}

describe('lines of prose', () => {
  it.each(FILES)('%s: none is too long', (path) => {
    expect(findLongLines(readText(path))).toEqual([])
  })

  it.each([
    ['prose', `${'word '.repeat(24)}end`, [1]],
    ['an item of a list behind a table', `| ${'cell '.repeat(30)}|\n\n- ${'word '.repeat(24)}`, [3]],
    ['prose behind code', `\`\`\`\n${'code '.repeat(30)}\n\`\`\`\n${'word '.repeat(25)}`, [4]],
    ['an address', `- https://example.com/${'a'.repeat(120)}`, []],
  ])('a long line is found, or free: %s', (_, text, lines) => {
    expect(findLongLines(text)).toEqual(lines)
  })
})

describe('rows of tables', () => {
  it.each(FILES)('%s: each has a head', (path) => {
    expect(findLooseRows(readText(path))).toEqual([])
  })

  it('behind a blank line are found', () => {
    expect(findLooseRows('| a |\n|---|\n| 1 |\n\n| 2 |\n\n```\n| b |\n```\n')).toEqual([5])
  })
})
