import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { writeArchive } from '../../../tools/image/archive.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'

it('an archive has the files of the image as tar reads them, and the same bytes at any time and place', async () => {
  await using folder = await makeTempFolder()
  const made = ['one', 'two'].map(async (name) => {
    const layout = join(folder.path, name)
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
    const put = (content: string) => {
      const hex = createHash('sha256').update(content).digest('hex')
      writeFileSync(join(layout, 'blobs/sha256', hex), content)
      return { mediaType: 'application/octet-stream', digest: `sha256:${hex}`, size: content.length }
    }
    const layers = [put('a'.repeat(512)), put('b'.repeat(5000))]
    const manifest = put(JSON.stringify({ config: put('{}'), layers: [...layers, layers[0]] }))
    writeFileSync(join(layout, 'index.json'), JSON.stringify({ manifests: [manifest] }))
    const archive = join(folder.path, `${name}.tar`)
    expect(await writeArchive(layout, 'example.com/a:1', archive)).toEqual({ digest: manifest.digest, bytes: 6024 })
    return archive
  })
  const [one, two] = await Promise.all(made)
  expect(readFileSync(one!).equals(readFileSync(two!))).toBe(true)
  const tar = (...args: string[]) => execFileSync('tar', ['-f', one!, ...args], { encoding: 'utf8' })
  const lines = tar('-tv', '--numeric-owner', '--utc').trimEnd().split('\n')
  expect(lines).toHaveLength(3 + 4)
  for (const line of lines) expect(line).toMatch(/^-rw-r--r-- 0\/0 +\d+ 1970-01-01 00:00 \S+$/)
  expect(tar('-xO', 'manifest.json')).toContain('"RepoTags":["example.com/a:1"]')
  for (const [, path, hex] of lines.join('\n').matchAll(/(blobs\/sha256\/(\w+))$/gm))
    expect(createHash('sha256').update(tar('-xO', path!)).digest('hex')).toBe(hex)
})
