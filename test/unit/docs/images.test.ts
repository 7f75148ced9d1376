/** The pictures of the documents. `npm run pictures` writes them. */

import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { listFiles, readText } from '../../support/documents.ts'

const PICTURES = fileURLToPath(new URL('../../../docs/images', import.meta.url))

it('the pictures of docs/images are small, and each is shown in a document', async () => {
  const files = (await readdir(PICTURES)).filter((name) => name.endsWith('.png'))
  expect(files.length).toBeGreaterThanOrEqual(12)
  for (const file of files) expect((await stat(join(PICTURES, file))).size, file).toBeLessThan(150_000)
  const documents = ['README.md', ...listFiles('docs').filter((path) => path.endsWith('.md'))]
  const shown = documents.flatMap((path) =>
    [...readText(path).matchAll(/images\/([\w-]+\.png)/g)].map(([, name]) => name),
  )
  expect(files.filter((file) => !shown.includes(file))).toEqual([])
})
