/** A fault whose patch no longer applies would be noticed only at night, by `npm run faults`. */

import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { CHECKOUT } from '../support/documents.ts'

it('each patch of test/faults applies', async () => {
  const bad: string[] = []
  for (const name of readdirSync(`${CHECKOUT}test/faults`).filter((name) => name.endsWith('.patch')))
    await promisify(execFile)('git', ['apply', '--check', '-C1', `test/faults/${name}`], { cwd: CHECKOUT }).catch(() =>
      bad.push(name),
    )
  expect(bad).toEqual([])
})
