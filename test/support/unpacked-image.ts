/**
 * An image out of an OCI archive, unpacked, and its program run as a container has it: on a root of its own that cannot be
 * written to, under the image's user, as process 1, without privileges. The network is this machine's. Needs Linux and root.
 */

import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { listTree, type ServiceProcess, spawnService } from './service-process.ts'
import { makeTempFolder } from './temp-folder.ts'

/** The OCI image's configuration. */
export interface ImageConfig {
  readonly User: string
  readonly WorkingDir: string
  readonly Entrypoint: readonly string[]
  readonly Cmd: readonly string[]
  readonly Env: readonly string[]
  readonly ExposedPorts: Readonly<Record<string, object>>
  readonly Labels: Readonly<Record<string, string>>
}

export interface UnpackedImage extends AsyncDisposable {
  readonly root: string
  readonly config: ImageConfig
  /** Of the manifest: names every byte of the image. */
  readonly digest: string
  /** What a registry keeps of it and a node fetches: all layers, compressed. */
  readonly compressedBytes: number
  /** The steps of its making, as any user of it can read them. */
  readonly history: string
  /** All files, directories and links, as paths from the root. */
  listPaths(): Promise<string[]>
  /** `args` default: the image's. It listens on the loopback address, on free ports. */
  run(environment?: Readonly<Record<string, string>>, args?: readonly string[]): ContainedProcess
}

export interface ContainedProcess extends ServiceProcess {
  /** To the program itself, as a kubelet does it. */
  signalProgram(name: NodeJS.Signals): Promise<void>
  /** Of the program's main process. */
  programPid(): Promise<number>
}

interface Descriptor {
  readonly digest: string
  readonly size: number
}

const run = promisify(execFile)

/** `$1` the root, `$2` the working directory, `$3` and `$4` user and group, then the program. Mounts end with the processes. */
const CONTAIN = `
mount --bind "$1" "$1"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -o remount,bind,ro "$1"
root=$1 folder=$2 user=$3 group=$4
shift 4
exec setpriv --clear-groups --no-new-privs unshare --root="$root" --wd="$folder" --setgid "$group" --setuid "$user" "$@"
`

export async function unpackImage(archive: string): Promise<UnpackedImage> {
  const folder = await makeTempFolder()
  const [oci, root] = [join(folder.path, 'oci'), join(folder.path, 'root')]
  try {
    for (const path of [oci, root]) await mkdir(path)
    await run('tar', ['-xf', archive, '-C', oci])
    const read = async (path: string) => JSON.parse(await readFile(join(oci, path), 'utf8'))
    const blobOf = ({ digest }: Descriptor) => join('blobs', digest.replace(':', '/'))
    const { manifests } = await read('index.json')
    const manifest: { config: Descriptor; layers: Descriptor[] } = await read(blobOf(manifests[0]))
    const { config, history } = await read(blobOf(manifest.config))
    for (const layer of manifest.layers)
      await run('tar', ['-xzpf', join(oci, blobOf(layer)), '-C', root, '--numeric-owner', '--keep-directory-symlink'])
    for (const place of ['dev', 'proc']) await mkdir(join(root, place), { recursive: true })
    return {
      root,
      config,
      digest: manifests[0].digest,
      compressedBytes: manifest.layers.reduce((sum, { size }) => sum + size, 0),
      history: JSON.stringify(history),
      async listPaths() {
        const entries = await readdir(root, { recursive: true, withFileTypes: true })
        return entries.map((entry) => relative(root, join(entry.parentPath, entry.name))).sort()
      },
      run: (environment, args) => contain(root, config, environment, args),
      [Symbol.asyncDispose]: () => folder.remove(),
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

function contain(
  root: string,
  { Entrypoint, Cmd, Env, User, WorkingDir }: ImageConfig,
  environment: Readonly<Record<string, string>> = {},
  args: readonly string[] = Cmd,
): ContainedProcess {
  const own = Object.fromEntries(Env.map((line) => line.split(/=(.*)/s) as [string, string]))
  const [user = '', group = ''] = User.split(':')
  const contained = ['sh', '-ec', CONTAIN, 'contain', root, WorkingDir, user, group, ...Entrypoint, ...args]
  const service = spawnService(
    { HOME: '/', ...own, BIND_ADDRESS: '127.0.0.1', ...environment },
    // As a group, so that a kill reaches the program: what unshare would send it is forgotten when it becomes another user.
    { command: 'unshare', args: ['--mount', '--pid', '--fork', '--', ...contained], isGroup: true },
  )
  async function programPid(): Promise<number> {
    const [, program] = await listTree(service.pid)
    if (program === undefined) throw new Error('the program has ended')
    return program.pid
  }
  return Object.assign(service, {
    programPid,
    signalProgram: async (name: NodeJS.Signals) => void process.kill(await programPid(), name),
  })
}
