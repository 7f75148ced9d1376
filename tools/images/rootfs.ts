/** Root file systems of images: Debian packages without what only people read, and the few files that packages' scripts would make. */

import { execFile } from 'node:child_process'
import { appendFile, chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fetchDebianPackages } from '../programs/debian-packages.ts'

const run = promisify(execFile)

export interface User {
  readonly name: string
  /** Of the group too. */
  readonly id: number
  readonly home: string
}

/** Unpacked packages, with all that they need, which become a root file system. */
export interface Packages {
  /** Which versions: another text, another image. */
  readonly versions: string
  copyTo(folder: string, users: readonly User[]): Promise<void>
}

/** `name`: of the image, for people. Throws DebianPackagesMissing. */
export async function findPackages(
  name: string,
  packages: readonly string[],
  of: { readonly architecture?: string } = {},
): Promise<Packages> {
  const otherwise = 'Leave out the tests that need images'
  const root = await fetchDebianPackages({ name: `image-${name}`, packages, scope: 'whole', otherwise, ...of })
  return {
    versions: await readFile(join(root, '..', 'packages.json'), 'utf8'),
    async copyTo(folder, users) {
      await run('cp', ['-a', `${root}/.`, folder])
      for (const place of ['doc', 'lintian', 'man', 'locale', 'info', 'bug'])
        await rm(join(folder, 'usr', 'share', place), { recursive: true, force: true })
      for (const place of ['etc', 'tmp', 'usr/local/bin', 'usr/local/lib'])
        await mkdir(join(folder, place), { recursive: true })
      await chmod(join(folder, 'tmp'), 0o1777)
      await writeFile(join(folder, 'etc', 'nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n')
      const all = [{ name: 'root', id: 0, home: '/root' }, ...users]
      for (const { name, id, home } of all) {
        await appendFile(join(folder, 'etc', 'passwd'), `${name}:x:${id}:${id}:${name}:${home}:/bin/sh\n`)
        await appendFile(join(folder, 'etc', 'group'), `${name}:x:${id}:\n`)
        await mkdir(join(folder, home), { recursive: true })
      }
    },
  }
}
