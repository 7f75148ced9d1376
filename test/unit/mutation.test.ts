import { readdirSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import { expect, it } from 'vitest'
import { AREAS } from '../mutation/areas.ts'
import { CHECKOUT } from '../support/documents.ts'

it('each file of the core is of one area of npm run mutate', () => {
  const files = ['src/domain', 'src/checks'].flatMap((folder) =>
    (readdirSync(CHECKOUT + folder, { recursive: true }) as string[])
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  )
  const areasOf = (file: string) =>
    Object.values(AREAS).filter(({ mutate }) => mutate.some((glob) => matchesGlob(file, glob))).length
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((file) => areasOf(file) !== 1)).toEqual([])
})
