/**
 * Builds images with Debian's buildah, without any image registry: each FROM is an image that was built before, or scratch.
 * Needs Linux and root. Nothing is left of it but the archives: storage, settings and mounts are its own.
 */

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fetchDebianPackages, unpackedEnvironment } from '../programs/debian-packages.ts'

export interface ImageBuild {
  /** The image will be called `localhost/NAME:dev`. */
  readonly name: string
  /** The folder of what is copied; its .containerignore counts. */
  readonly context: string
  readonly file: string
  readonly args?: Readonly<Record<string, string>>
  /** Files that steps may mount, and that stay in no layer: id to path. */
  readonly secrets?: Readonly<Record<string, string>>
  /** OCI archives of images that it stands on. */
  readonly from?: readonly string[]
}

export interface Builder extends AsyncDisposable {
  /** Writes an OCI archive. The same inputs give the same bytes: every time in it is the epoch's begin. */
  build(build: ImageBuild, archive: string): Promise<void>
}

/** What keeps a machine from building images; the message says what to do. */
export class ImagesError extends Error {
  override readonly name = 'ImagesError'
}

/** A user who could change what we built could change the tests as well. */
const TRUST_ALL = { default: [{ type: 'insecureAcceptAnything' }] }
const QUOTED_LINES = 25

/**
 * For each step it starts itself anew with an environment that knows nothing of our libraries. So the loader's cache knows them,
 * in its mount namespace.
 */
const WITH_LIBRARIES = 'mount --bind "$1" /etc/ld.so.cache && shift && exec "$@"'

async function writeLibraryCache(home: string, root: string): Promise<string> {
  const [cache, configuration] = [join(home, 'ld.so.cache'), join(home, 'ld.so.conf')]
  const folders = (unpackedEnvironment(root, {}).LD_LIBRARY_PATH ?? '').split(':')
  await writeFile(configuration, `${folders.join('\n')}\ninclude /etc/ld.so.conf\n`)
  await promisify(execFile)('ldconfig', ['-X', '-C', cache, '-f', configuration])
  return cache
}

/** `folder`: where it works, in a folder of its own, until it is disposed of. */
export async function openBuilder(folder: string): Promise<Builder> {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0)
    throw new ImagesError('Building images needs Linux and root, for mounts. Run this as root (sudo npm ...).')
  const root = await fetchDebianPackages({
    name: 'image-builder',
    packages: ['buildah'],
    scope: 'missing',
    otherwise: 'Leave out the tests that need images',
  })
  await mkdir(folder, { recursive: true })
  const home = await mkdtemp(join(folder, '.build-'))
  const [policy, registries] = [join(home, 'policy.json'), join(home, 'registries.conf')]
  await writeFile(policy, JSON.stringify(TRUST_ALL))
  await writeFile(registries, 'unqualified-search-registries = []\n')
  const common = [
    ...['--root', join(home, 'storage'), '--runroot', join(home, 'run'), '--storage-driver', 'overlay'],
    ...['--registries-conf', registries],
  ]
  const libraries = await writeLibraryCache(home, root)
  const environment = { ...unpackedEnvironment(root), HOME: home, TMPDIR: home }

  /** In a mount namespace of its own: when it is killed, its mounts go too. */
  const run = (command: string, ...args: string[]) =>
    new Promise<void>((resolve, reject) => {
      const buildah = ['buildah', ...common, command, '--signature-policy', policy, ...args]
      const all = ['--mount', '--', '/bin/sh', '-c', WITH_LIBRARIES, 'sh', libraries, ...buildah]
      execFile('unshare', all, { env: environment, maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
        if (error === null) return resolve()
        const end = `${stdout}${stderr}`.trimEnd().split('\n').slice(-QUOTED_LINES).join('\n')
        reject(new ImagesError(`buildah ${command} failed (${error.code}). It said:\n${end}`, { cause: error }))
      })
    })

  return {
    async build({ name, context, file, args = {}, secrets = {}, from = [] }, archive) {
      for (const parent of from) await run('pull', '--quiet', `oci-archive:${parent}`)
      const image = `localhost/${name}:dev`
      // chroot needs neither runc nor cgroups; the host's network leads steps to the package registries that it knows.
      const how = ['--isolation', 'chroot', '--network', 'host', '--pull-never', '--timestamp', '0', '--quiet']
      const given = Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])
      const lent = Object.entries(secrets).flatMap(([id, path]) => ['--secret', `id=${id},src=${path}`])
      await run('bud', ...how, ...given, ...lent, '--file', file, '--tag', image, context)
      await rm(archive, { force: true })
      await run('push', '--quiet', image, `oci-archive:${archive}:${image}`)
    },
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  }
}
