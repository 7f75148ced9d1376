/** Lines of prose end at 120 characters. Tables, code, comments and single long words, such as addresses, are free. */

import { describe, expect, it } from 'vitest'
import { DOCUMENTS, listFiles, readText } from '../../support/documents.ts'

const MOST = 120
const FOLDERS = ['charts', 'docs', 'manifests', 'src', 'test', 'tools'].flatMap(listFiles)
const FILES = [...new Set([...DOCUMENTS, ...FOLDERS.filter((path) => path.endsWith('.md'))])].sort()

/** Not wrapped yet. A file that has no long line any more must leave this list. */
const TO_DO: readonly string[] = [
  'CONTRIBUTING.md',
  'README.md',
  'docs/operate/alerts.md',
  'docs/operate/operations.md',
  'docs/operate/production.md',
  'docs/reference/configuration.md',
  'docs/reference/interface.md',
]

/** The numbers of the lines that are too long. */
function findLongLines(text: string): number[] {
  let isCode = false
  return text.split('\n').flatMap((line, index) => {
    if (line.trimStart().startsWith('```')) isCode = !isCode
    const isFree = isCode || /^\s*(\||<!--)/.test(line) || /^\s*(- )?\S+$/.test(line)
    return !isFree && line.length > MOST ? [index + 1] : []
  })
}

describe('lines of prose', () => {
  it.each(FILES.filter((path) => !TO_DO.includes(path)))('%s: none is too long', (path) => {
    expect(findLongLines(readText(path))).toEqual([])
  })

  it('the list of files to do is as short as can be', () => {
    expect(TO_DO.filter((path) => findLongLines(readText(path)).length === 0)).toEqual([])
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
