/**
 * Builds images with Debian's buildah, without any image registry: each FROM is an image that was built before, or scratch.
 * Needs Linux and root. Nothing is left of it but the archives: storage, settings and mounts are its own.
 */

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
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
  /** A folder for PATH, with a `buildah` that works here as one that is installed would. */
  readonly commands: string
  /** Writes an OCI archive. The same inputs give the same bytes: every time in it is the epoch's begin. */
  build(build: ImageBuild, archive: string): Promise<void>
}

/** What keeps a machine from building images; the message says what to do. */
export class ImagesError extends Error {
  override readonly name = 'ImagesError'
}

const QUOTED_LINES = 25

/** By their paths in the home folder; of the machine's settings nothing is read. A user who could change images could change tests as well. */
const SETTINGS = (home: string) => ({
  '.config/containers/policy.json': JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
  '.config/containers/registries.conf':
    'unqualified-search-registries = []\n[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n',
  // The host's network leads steps to the package registries that it knows.
  'containers.conf': '[containers]\nnetns = "host"\n',
  'storage.conf': `[storage]\ndriver = "overlay"\ngraphroot = "${home}/storage"\nrunroot = "${home}/run"\n`,
})

/**
 * For each step it starts itself anew with an environment that knows nothing of our libraries. So the loader's cache knows them,
 * in its mount namespace: when it is killed, its mounts go too. Isolation by chroot needs neither runc nor cgroups.
 */
const COMMAND = (home: string, { PATH, LD_LIBRARY_PATH }: Record<string, string>, program: string) => `#!/bin/sh
export HOME='${home}' TMPDIR='${home}' BUILDAH_ISOLATION=chroot
export CONTAINERS_CONF='${home}/containers.conf' CONTAINERS_STORAGE_CONF='${home}/storage.conf'
export PATH='${PATH}' LD_LIBRARY_PATH='${LD_LIBRARY_PATH}'
exec unshare --mount -- /bin/sh -c 'mount --bind "$1" /etc/ld.so.cache && shift && exec "$@"' sh '${home}/ld.so.cache' '${program}' "$@"
`

async function writeLibraryCache(home: string, root: string): Promise<void> {
  const configuration = join(home, 'ld.so.conf')
  const folders = (unpackedEnvironment(root, {}).LD_LIBRARY_PATH ?? '').split(':')
  await writeFile(configuration, `${folders.join('\n')}\ninclude /etc/ld.so.conf\n`)
  await promisify(execFile)('ldconfig', ['-X', '-C', join(home, 'ld.so.cache'), '-f', configuration])
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
  await writeLibraryCache(home, root)
  for (const [path, text] of Object.entries(SETTINGS(home))) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), text)
  }
  const command = join(home, 'bin', 'buildah')
  await mkdir(dirname(command))
  const program = join(root, 'usr', 'bin', 'buildah')
  await writeFile(command, COMMAND(home, unpackedEnvironment(root), program), { mode: 0o755 })

  const run = (...args: string[]) =>
    new Promise<void>((resolve, reject) => {
      execFile(command, args, { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
        if (error === null) return resolve()
        const end = `${stdout}${stderr}`.trimEnd().split('\n').slice(-QUOTED_LINES).join('\n')
        reject(new ImagesError(`buildah ${args[0]} failed (${error.code}). It said:\n${end}`, { cause: error }))
      })
    })

  return {
    commands: dirname(command),
    async build({ name, context, file, args = {}, secrets = {}, from = [] }, archive) {
      for (const parent of from) await run('pull', '--quiet', `oci-archive:${parent}`)
      const image = `localhost/${name}:dev`
      const how = ['--pull-never', '--timestamp', '0', '--quiet']
      const given = Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])
      const lent = Object.entries(secrets).flatMap(([id, path]) => ['--secret', `id=${id},src=${path}`])
      await run('bud', ...how, ...given, ...lent, '--file', file, '--tag', image, context)
      await rm(archive, { force: true })
      await run('push', '--quiet', image, `oci-archive:${archive}:${image}`)
    },
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  }
}
