/**
 * How buildah, podman and docker build an image and push it. Each is called as a person would call it, with its own
 * settings.
 */

import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findIn, listPath } from '../programs/places.ts'

export const NAMES = ['buildah', 'podman', 'docker'] as const
export type BuilderName = (typeof NAMES)[number]

export interface Sources {
  /** The folder of the Containerfile. */
  readonly context: string
  readonly args: Readonly<Record<string, string>>
  /** Settings of npm; null: none. */
  readonly npmrc: string | null
}

export interface Builder {
  readonly name: BuilderName
  /**
   * Fills `layout`, a folder that does not exist yet, with an OCI layout of the image. `anew`: no step is taken from a
   * cache.
   */
  build(sources: Sources, architecture: string, layout: string, options: { anew: boolean }): Promise<void>
  /** Pushes one index of the layouts, and resolves with its digest. */
  push(sources: Sources, layouts: ReadonlyMap<string, string>, reference: string): Promise<string>
}

/** A message for the user. */
export class ImageError extends Error {
  override readonly name = 'ImageError'
}

/** The first one that PATH has and that works. Throws ImageError. */
export async function findBuilder(environment: NodeJS.ProcessEnv = process.env): Promise<Builder> {
  const reasons: string[] = []
  for (const name of NAMES) {
    const program = await findIn(listPath(environment), name)
    if (program === null) continue
    if (name !== 'docker') return likeBuildah(name)
    const answer = await call(name, ['buildx', 'inspect', '--bootstrap'], 'quiet').catch((error: Error) => error)
    if (!(answer instanceof Error)) return docker()
    reasons.push(
      `\n${program} is there, but \`docker buildx inspect --bootstrap\` fails: ${answer.message.split('\n')[0]}`,
    )
  }
  const wanted = 'No builder of images was found. Install buildah, podman, or docker with buildx.'
  throw new ImageError(wanted + reasons.join(''))
}

const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64' }

function likeBuildah(name: 'buildah' | 'podman'): Builder {
  return {
    name,
    async build({ context, args, npmrc }, architecture, layout, { anew }) {
      const image = `localhost/heartbeat-operator-build-${process.pid}:${architecture}`
      const lent = npmrc === null ? [] : ['--secret', `id=npmrc,src=${npmrc}`]
      // Releases of 2022, as Debian 12 has them, do not know it.
      const platform = { BUILDPLATFORM: `linux/${ARCHITECTURES[process.arch] ?? process.arch}` }
      const how = [
        '--platform',
        `linux/${architecture}`,
        // Without it an image of the same name and another platform, from the build before, is taken.
        '--pull-always',
        '--timestamp',
        '0',
        '--format',
        'oci',
        ...(anew ? ['--no-cache'] : []),
      ]
      await call(
        name,
        ['build', ...how, ...buildArgs({ ...args, ...platform }), ...lent, '--tag', image, context],
        'shown',
      )
      try {
        await call(name, ['push', '--quiet', '--format', 'oci', image, `oci:${layout}`], 'quiet')
      } finally {
        await call(name, ['rmi', '--force', image], 'quiet')
      }
    },
    async push(_, layouts, reference) {
      const list = `localhost/heartbeat-operator-push-${process.pid}`
      const folder = await mkdtemp(join(tmpdir(), 'heartbeat-image-'))
      const digest = join(folder, 'digest')
      await call(name, ['manifest', 'create', list], 'quiet')
      try {
        for (const layout of layouts.values()) await call(name, ['manifest', 'add', list, `oci:${layout}`], 'quiet')
        const how = ['--all', '--format', 'oci', '--digestfile', digest]
        await call(name, ['manifest', 'push', ...how, list, `docker://${reference}`], 'shown')
        return (await readFile(digest, 'utf8')).trim()
      } finally {
        await call(name, ['manifest', 'rm', list], 'quiet')
        await rm(folder, { recursive: true })
      }
    },
  }
}

function docker(): Builder {
  const build = ({ context, args, npmrc }: Sources, platforms: readonly string[], ...more: string[]) => {
    const lent = npmrc === null ? [] : ['--secret', `id=npmrc,src=${npmrc}`]
    // Attestations are made by the release. With them a second build would have another digest.
    const how = [
      '--platform',
      platforms.join(),
      '--provenance=false',
      '--sbom=false',
      '--file',
      join(context, 'Containerfile'),
    ]
    return call(
      'docker',
      ['buildx', 'build', ...how, ...buildArgs({ ...args, SOURCE_DATE_EPOCH: '0' }), ...lent, ...more, context],
      'shown',
    )
  }
  return {
    name: 'docker',
    async build(sources, architecture, layout, { anew }) {
      await mkdir(layout)
      const output = `type=oci,tar=false,rewrite-timestamp=true,dest=${layout}`
      await build(sources, [`linux/${architecture}`], ...(anew ? ['--no-cache'] : []), '--output', output)
    },
    async push(sources, layouts, reference) {
      const folder = await mkdtemp(join(tmpdir(), 'heartbeat-image-'))
      const metadata = join(folder, 'metadata.json')
      try {
        // From the cache of the builds before.
        const platforms = [...layouts.keys()].map((architecture) => `linux/${architecture}`)
        const output = `type=image,push=true,oci-mediatypes=true,rewrite-timestamp=true,name=${reference}`
        await build(sources, platforms, '--output', output, '--metadata-file', metadata)
        return JSON.parse(await readFile(metadata, 'utf8'))['containerimage.digest']
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  }
}

const buildArgs = (args: Readonly<Record<string, string>>) =>
  Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`])

/** `quiet`: what it says is shown only when it fails, as the error's message. */
function call(command: string, args: readonly string[], output: 'shown' | 'quiet'): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', ...(output === 'shown' ? ([2, 2] as const) : (['pipe', 'pipe'] as const))],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece) => (said += piece))
    child.on('error', (error) => reject(new ImageError(`${command} cannot be run: ${error.message}`)))
    child.on('close', (status) => {
      if (status === 0) return resolve()
      const what = output === 'shown' ? `${command} ${args[0]} failed with status ${status}.` : said.trim()
      reject(new ImageError(what || `${command} ${args[0]} failed with status ${status}.`))
    })
  })
}
