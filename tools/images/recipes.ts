/** What each image is made of. */

import { copyFile, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { locatePackage } from '../../src/embedded-postgres/binaries.ts'
import { findTool } from '../programs/tools.ts'
import type { ImageBuild } from './builder.ts'
import { CERTIFICATES, describeNpmSettings, fetchNpm, findCertificates, NPM_VERSION } from './npm.ts'
import { findPackages } from './rootfs.ts'

export const IMAGE_NAMES = ['pause', 'base', 'build', 'job', 'postgres', 'heartbeat-operator'] as const
export type ImageName = (typeof IMAGE_NAMES)[number]

export interface Recipe {
  /** Images that it stands on. */
  readonly from: readonly ImageName[]
  /** Texts, and files or folders, of which the image is made besides those of its folder here. */
  readonly texts?: readonly string[]
  readonly files?: readonly string[]
  /** Fills the context, an empty folder; what it says of the build wins over what goes without saying. */
  prepare(context: string): Promise<Partial<ImageBuild>>
}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const HERE = fileURLToPath(new URL('.', import.meta.url))
/** The C library and the C++ library, which Node.js and PostgreSQL need. */
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6']
/** The Node.js that our package-lock.json names. */
const NODE = join(REPOSITORY, 'node_modules', '.bin', 'node')

/** Each looks for what it needs when it is asked, and downloads it the first time. */
export const RECIPES: Readonly<Record<ImageName, () => Promise<Recipe>>> = {
  async pause() {
    const program = await findTool('pause')
    return {
      from: [],
      files: [program],
      async prepare(context) {
        await copyFile(program, join(context, 'pause'))
        return {}
      },
    }
  },

  async base() {
    const packages = await findPackages('base', LIBRARIES)
    return {
      from: [],
      texts: [packages.versions],
      async prepare(context) {
        await packages.copyTo(context, [{ name: 'nonroot', id: 65532, home: '/home/nonroot' }])
        return {}
      },
    }
  },

  async build() {
    const tools = ['coreutils', 'dash', 'findutils', 'grep', 'sed', 'libatomic1']
    const packages = await findPackages('build', [...LIBRARIES, ...tools])
    const certificates = await findCertificates()
    return {
      from: [],
      texts: [packages.versions, NPM_VERSION],
      files: [NODE, ...(certificates === null ? [] : [certificates])],
      async prepare(context) {
        await packages.copyTo(context, [])
        const local = join(context, 'usr', 'local')
        const npm = join(local, 'lib', 'node_modules', 'npm')
        await copyFile(NODE, join(local, 'bin', 'node'))
        await mkdir(npm, { recursive: true })
        await fetchNpm(npm)
        if (certificates !== null) {
          await mkdir(join(context, dirname(CERTIFICATES)), { recursive: true })
          await copyFile(certificates, join(context, CERTIFICATES))
        }
        for (const name of ['npm', 'npx'])
          await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name))
        return {}
      },
    }
  },

  async job() {
    const packages = await findPackages('job', ['busybox-static', 'curl'])
    return {
      from: [],
      texts: [packages.versions],
      async prepare(context) {
        await packages.copyTo(context, [{ name: 'nonroot', id: 65532, home: '/home/nonroot' }])
        return {}
      },
    }
  },

  async postgres() {
    const packages = await findPackages('postgres', [...LIBRARIES, 'busybox-static'])
    const native = locatePackage()
    return {
      from: [],
      texts: [packages.versions],
      files: [join(native, '..', 'package.json')],
      async prepare(context) {
        await packages.copyTo(context, [{ name: 'postgres', id: 999, home: '/var/lib/postgresql' }])
        const opt = join(context, 'opt', 'postgres')
        await cp(native, opt, { recursive: true, verbatimSymlinks: true })
        await rm(join(opt, 'include'), { recursive: true, force: true })
        const programs = ['docker-entrypoint.sh', 'pg_isready']
        for (const name of programs)
          await copyFile(join(HERE, 'postgres', name), join(context, 'usr', 'local', 'bin', name))
        await mkdir(join(context, 'var', 'run', 'postgresql'), { recursive: true })
        return {}
      },
    }
  },

  async 'heartbeat-operator'() {
    const at = (name: string) => join(REPOSITORY, name)
    const ignored = await readFile(at('.containerignore'), 'utf8')
    const copied = ignored.split('\n').flatMap((line) => (line.startsWith('!') ? [at(line.slice(1))] : []))
    return {
      from: ['base', 'build'],
      files: [at('Containerfile'), at('.containerignore'), ...copied],
      async prepare(context) {
        const npmrc = join(context, 'npmrc')
        await writeFile(npmrc, await describeNpmSettings(), { mode: 0o600 })
        return {
          ...{ context: REPOSITORY, file: at('Containerfile'), secrets: { npmrc } },
          args: { BUILD_IMAGE: 'localhost/build:dev', BASE_IMAGE: 'localhost/base:dev' },
        }
      },
    }
  },
}
