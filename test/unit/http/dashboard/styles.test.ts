import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const ASSETS = new URL('../../../../src/http/dashboard/assets/', import.meta.url)

/** The classes with which selectors of a file begin. */
function classesOf(file: string): Set<string> {
  const text = readFileSync(new URL(file, ASSETS), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  const selectors = [...text.matchAll(/([^{}]+)\{/g)].map((match) => match[1]!.trim())
  const parts = selectors.filter((selector) => !selector.startsWith('@')).flatMap((selector) => selector.split(','))
  return new Set(parts.flatMap((part) => /^\s*\.([\w-]+)/.exec(part)?.[1] ?? []))
}

it('a link keeps its role, by which readers find it and which says that Space does not follow it', () => {
  const sources = readdirSync(new URL('..', ASSETS), { recursive: true, encoding: 'utf8' })
  const files = sources.filter((file) => file.endsWith('.ts'))
  expect(files.length).toBeGreaterThan(30)
  const read = (file: string) => readFileSync(new URL(`../${file}`, ASSETS), 'utf8')
  expect(files.filter((file) => /<a[^>]* role=/.test(read(file)))).toEqual([])
})

it('a class has its styles in one file: they are served as one, and two families of pages would style each other', () => {
  const files = readdirSync(ASSETS).filter((file) => file.endsWith('.css'))
  expect(files.length).toBeGreaterThan(3)
  const homes = new Map<string, string[]>()
  for (const file of files) for (const name of classesOf(file)) homes.set(name, [...(homes.get(name) ?? []), file])
  expect([...homes].filter(([, found]) => found.length > 1)).toEqual([])
})
