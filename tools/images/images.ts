/**
 * The images of the test node, built without any image registry and kept as OCI archives in the user's cache folder. Each is
 * built again when what it is made of has changed.
 */

import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitForLock } from '../programs/lock.ts'
import { cacheFolder } from '../programs/places.ts'
import type { Environment, Note } from '../programs/programs.ts'
import { openBuilder } from './builder.ts'
import { type ImageName, RECIPES, type Recipe } from './recipes.ts'

export { ImagesError } from './builder.ts'
export type { ImageName } from './recipes.ts'

export interface ImagesOptions {
  readonly names: readonly ImageName[]
  readonly environment?: Environment
  /** One line for a person; default: stderr. */
  readonly note?: Note
}

const HERE = fileURLToPath(new URL('.', import.meta.url))

/**
 * Resolves with the archives of the images, which are called `localhost/NAME:dev` in them. Throws ImagesError, DebianPackagesMissing
 * or ProgramsError.
 */
export async function buildImages(options: ImagesOptions): Promise<Map<ImageName, string>> {
  const { names, environment = process.env } = options
  const note = options.note ?? ((line: string) => process.stderr.write(`${line}\n`))
  const cache = join(cacheFolder(environment), 'images')
  await mkdir(cache, { recursive: true })
  const release = await waitForLock(join(cache, '.lock'), (holder, waited) =>
    note(`process ${holder} builds images into ${cache}; waiting for it: ${waited} s`),
  )
  try {
    await removeDrafts(cache)
    const archives = new Map<ImageName, string>()
    const build = async (name: ImageName) => {
      if (archives.has(name)) return
      const recipe = await RECIPES[name]()
      for (const parent of recipe.from) await build(parent)
      const from = recipe.from.map((parent) => archives.get(parent)!)
      const archive = join(cache, `${name}-${await hashRecipe(name, recipe, from)}.tar`)
      if (!(await isThere(archive))) await buildImage(name, recipe, from, archive, note)
      archives.set(name, archive)
    }
    for (const name of names) await build(name)
    return new Map(names.map((name) => [name, archives.get(name)!]))
  } finally {
    await release()
  }
}

async function buildImage(
  name: ImageName,
  recipe: Recipe,
  from: readonly string[],
  archive: string,
  note: Note,
): Promise<void> {
  const cache = join(archive, '..')
  const startedAt = performance.now()
  note(`building the image ${name} ...`)
  const work = await mkdtemp(join(cache, DRAFT))
  try {
    await using builder = await openBuilder(work)
    const context = join(work, 'context')
    await mkdir(context)
    const file = join(HERE, name, 'Containerfile')
    const draft = join(work, 'archive.tar')
    await builder.build({ name, context, file, from, ...(await recipe.prepare(context)) }, draft)
    // Whole or not at all; and of each image only the newest is kept.
    const older = (await readdir(cache)).filter((other) => new RegExp(`^${name}-[0-9a-f]{16}\\.tar$`).test(other))
    for (const other of older) await rm(join(cache, other))
    await rename(draft, archive)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  note(`built the image ${name}: ${seconds} s, ${((await stat(archive)).size / 2 ** 20).toFixed(1)} MiB`)
}

const DRAFT = '.draft-'

/** Of a process that was killed. */
async function removeDrafts(cache: string): Promise<void> {
  for (const name of await readdir(cache))
    if (name.startsWith(DRAFT)) await rm(join(cache, name), { recursive: true, force: true })
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** All that the image is made of, and how: the files here as well. */
async function hashRecipe(name: ImageName, recipe: Recipe, from: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const text of [...from.map((archive) => basename(archive)), ...(recipe.texts ?? [])]) hash.update(`${text}\0`)
  const own = name === 'heartbeat-operator' ? [] : [join(HERE, name)]
  const code = (await readdir(HERE)).filter((file) => file.endsWith('.ts')).map((file) => join(HERE, file))
  for (const path of [...code.sort(), ...own, ...(recipe.files ?? [])]) await hashPath(hash, path, basename(path))
  return hash.digest('hex').slice(0, 16)
}

async function hashPath(hash: ReturnType<typeof createHash>, path: string, name: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => null)
  if (entries === null) {
    const content = await readFile(path)
    hash.update(`${name}\0${content.length}\0`).update(content)
    return
  }
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const [inside, title] = [join(path, entry.name), `${name}/${entry.name}`]
    if (entry.isSymbolicLink()) hash.update(`${title} -> ${await readlink(inside)}\0`)
    else await hashPath(hash, inside, title)
  }
}
