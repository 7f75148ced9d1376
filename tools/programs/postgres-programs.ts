/** Where a whole PostgreSQL of the tests comes from, with pg_dump: the embedded one has only its server. */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DebianPackagesMissing, fetchDebianPackages, unpackedEnvironment } from './debian-packages.ts'

export interface PostgresPrograms {
  /** initdb, postgres, psql, pg_dump and others, of one version. */
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

/** Debian's folder of programs, by their version. */
const HOME = join('usr', 'lib', 'postgresql')

/** The newest that Debian has installed, else its package, unpacked into the cache folder. Throws DebianPackagesMissing. */
export async function findPostgres(): Promise<PostgresPrograms> {
  const installed = await findNewest('/')
  if (installed !== null) return { folder: installed, environment: {} }
  const root = await fetchDebianPackages({ name: 'postgresql', packages: ['postgresql'], scope: 'missing' })
  const folder = await findNewest(root)
  if (folder === null) throw new DebianPackagesMissing(`the package postgresql has no programs in ${HOME}`)
  return { folder, environment: unpackedEnvironment(root, {}) }
}

async function findNewest(root: string): Promise<string | null> {
  const versions = await readdir(join(root, HOME)).catch(() => [])
  const servers = []
  for (const version of versions)
    if ((await readdir(join(root, HOME, version, 'bin'))).includes('initdb')) servers.push(Number(version))
  return servers.length === 0 ? null : join(root, HOME, String(Math.max(...servers)), 'bin')
}
