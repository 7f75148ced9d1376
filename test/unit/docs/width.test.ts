/** Prose of the documents for operators has at most 120 characters a line; tables, code and addresses are free. */

import { expect, it } from 'vitest'
import { DOCUMENTS, readText } from '../../support/documents.ts'

it.each(DOCUMENTS.filter((path) => /^docs\/(?:operate|reference)\//.test(path)))('%s', (document) => {
  const prose = readText(document).replace(/^ *```.*?^ *```$/gms, '')
  expect(prose.split('\n').filter((line) => line.length > 120 && !/^\||^\S+$/.test(line))).toEqual([])
})
