/**
 * `npm run image`: builds the image for amd64 and arm64 into archives in dist/, with buildah, podman or docker.
 *
 *   --arch amd64       for one platform
 *   --twice            builds again without a cache, and fails unless both builds have the same digest
 *   --push REPOSITORY  pushes REPOSITORY:VERSION, an index of both platforms, to a registry, and writes dist/pushed.json
 *
 * BUILD_IMAGE and BASE_IMAGE replace the images of the Containerfile, as a mirror has them. npm's settings are those of
 * the user.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'
import { writeArchive } from './archive.ts'
import { type Builder, findBuilder, ImageError, type Sources } from './builders.ts'

const ARCHITECTURES = ['amd64', 'arm64']
const USAGE = 'usage: npm run image -- [--arch amd64|arm64] [--twice] [--push REGISTRY/REPOSITORY]'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (name: string) => readFileSync(join(root, name), 'utf8')

try {
  const options = readOptions()
  const builder = await findBuilder()
  await build(builder, options)
} catch (error) {
  if (!(error instanceof ImageError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

interface Options {
  readonly architectures: readonly string[]
  readonly twice: boolean
  readonly push: string | null
}

function readOptions(): Options {
  const options = { arch: { type: 'string' }, twice: { type: 'boolean' }, push: { type: 'string' } } as const
  try {
    const { arch, twice = false, push = null } = parseArgs({ options }).values
    if (arch !== undefined && !ARCHITECTURES.includes(arch)) throw new Error(`there is no platform ${arch}`)
    if (push !== null && !/^[^/\s]+(?:\/[a-z0-9._-]+)+$/.test(push))
      throw new Error(`${push} is no repository of a registry`)
    return { architectures: arch === undefined ? ARCHITECTURES : [arch], twice, push }
  } catch (error) {
    throw new ImageError(`${(error as Error).message}\n${USAGE}`)
  }
}

async function build(builder: Builder, { architectures, twice, push }: Options): Promise<void> {
  const { name, version } = JSON.parse(read('package.json'))
  const image = `${parse(read('charts/heartbeat-operator/values.yaml')).image.repository}:${version}`
  const sources = describeSources(version)
  const dist = join(root, 'dist')
  await mkdir(dist, { recursive: true })
  const work = await mkdtemp(join(dist, '.build-'))
  const clear = () => rmSync(work, { recursive: true, force: true })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      clear()
      process.exit(1)
    })
  try {
    const layouts = new Map<string, string>()
    for (const architecture of architectures) {
      const layout = join(work, architecture)
      layouts.set(architecture, layout)
      await builder.build(sources, architecture, layout, { anew: false })
      const archive = `${name}-${version}-${architecture}.tar`
      const { digest, bytes } = await writeArchive(layout, image, join(work, archive))
      if (twice) await compare(builder, sources, { architecture, work, digest })
      await rename(join(work, archive), join(dist, archive))
      const same = twice ? ', twice the same' : ''
      say(`dist/${archive}: ${image} ${digest}, ${(bytes / 1e6).toFixed(1)} MB${same}`)
    }
    if (push === null) return
    const digest = await builder.push(sources, layouts, `${push}:${version}`)
    await writeFile(join(dist, 'pushed.json'), `${JSON.stringify({ repository: push, digest })}\n`)
    say(`pushed ${push}:${version}@${digest}`)
  } finally {
    clear()
  }
}

async function compare(
  builder: Builder,
  sources: Sources,
  { architecture, work, digest }: { architecture: string; work: string; digest: string },
): Promise<void> {
  const layout = join(work, `${architecture}-again`)
  await builder.build(sources, architecture, layout, { anew: true })
  const again = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests[0].digest
  if (again !== digest) throw new ImageError(`Two builds for ${architecture} are not the same: ${digest} and ${again}.`)
}

function describeSources(version: string): Sources {
  const { BUILD_IMAGE, BASE_IMAGE, npm_config_userconfig: userconfig = join(homedir(), '.npmrc') } = process.env
  const args = {
    VERSION: version,
    ...describeRevision(),
    ...(BUILD_IMAGE === undefined ? {} : { BUILD_IMAGE }),
    ...(BASE_IMAGE === undefined ? {} : { BASE_IMAGE }),
  }
  return { context: root, args, npmrc: existsSync(userconfig) ? userconfig : null }
}

/** Of the commit: two builds of it are the same. Without git: nothing. */
function describeRevision(): Record<string, string> {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, TZ: 'UTC0' },
    }).trim()
  try {
    const [revision, created] = git(
      'log',
      '-1',
      '--no-show-signature',
      '--format=%H %cd',
      '--date=format-local:%Y-%m-%dT%H:%M:%SZ',
    ).split(' ')
    const isChanged = git('status', '--porcelain', '--untracked-files=normal') !== ''
    return { REVISION: `${revision}${isChanged ? '-changed' : ''}`, CREATED: created! }
  } catch {
    return {}
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
