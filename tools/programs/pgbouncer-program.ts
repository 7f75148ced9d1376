/** Where the real PgBouncer of the tests comes from: found on this machine, or fetched once from Debian. */

import { join } from 'node:path'
import { fetchDebianPackages, unpackedEnvironment } from './debian-packages.ts'
import { findIn, listPath } from './places.ts'

export interface PgBouncerProgram {
  readonly path: string
  readonly environment: Readonly<Record<string, string>>
}

/**
 * The one in PATH, else the one of Debian's package, unpacked into the user's cache folder and installed nowhere. Throws
 * DebianPackagesMissing.
 */
export async function findPgBouncer(): Promise<PgBouncerProgram> {
  const found = await findIn(listPath(process.env), 'pgbouncer')
  if (found !== null) return { path: found, environment: {} }
  const root = await fetchDebianPackages({
    name: 'pgbouncer',
    packages: ['pgbouncer'],
    scope: 'missing',
    otherwise: 'Install PgBouncer in PATH.',
  })
  return { path: join(root, 'usr', 'sbin', 'pgbouncer'), environment: unpackedEnvironment(root, {}) }
}
