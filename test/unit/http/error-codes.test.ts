/** The codes of errors over HTTP: each has a status, a cause and a cure, and docs/use/api.md shows all of them. */

import { describe, expect, it } from 'vitest'
import { CONFLICT_CODES, ERROR_CODES } from '../../../src/domain/errors.ts'
import { codeOfStatus, MEANINGS, STATUS } from '../../../src/http/error-codes.ts'
import { readText } from '../../support/documents.ts'

describe('the table of codes in docs/use/api.md', () => {
  const rows = [...readText('docs/use/api.md').matchAll(/^\| `[a-z_]+` \| [\d, ]+ \| .* \|$/gm)].map(([row]) => row)

  it('is that of the service', () => {
    const codes = Object.entries(MEANINGS).map(
      ([code, { status, cause, cure }]) => `| \`${code}\` | ${[status].flat().join(', ')} | ${cause} | ${cure} |`,
    )
    expect(rows).toEqual(codes)
  })

  it('has each code once', () => {
    expect(rows.map((row) => row.split('`')[1]!).sort()).toEqual([...ERROR_CODES].sort())
  })
})

describe('a code', () => {
  it('has the status of its kind', () => {
    for (const code of CONFLICT_CODES) expect([code, STATUS[code]]).toEqual([code, 409])
    expect(STATUS).toMatchObject({ invalid_request: 400, unauthenticated: 401, forbidden: 403, too_large: 413 })
  })

  it.each([
    [400, 'invalid_request'],
    [408, 'invalid_request'],
    [421, 'invalid_request'],
    [431, 'too_large'],
    [599, 'internal'],
  ] as const)('of a request that no handler sees, with the status %i, is %s', (status, code) => {
    expect(codeOfStatus(status)).toBe(code)
  })
})
