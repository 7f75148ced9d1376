/**
 * An OCI layout as an archive that every engine takes: those that read OCI (containerd of kind and k3s, podman, Docker from 25 on) and those
 * that read `docker save` (older Docker, minikube) find the same layers in it. The same image gives the same bytes.
 */

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Image {
  /** Of the manifest: names every byte of the image. */
  readonly digest: string
  /** What a registry keeps: all layers, compressed. */
  readonly bytes: number
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/**
 * @param layout folder with index.json and blobs; only its single image is taken
 * @param name with the tag, as the engine will list it
 */
export async function writeArchive(layout: string, name: string, archive: string): Promise<Image> {
  const path = ({ digest }: Descriptor) => join('blobs', digest.replace(':', '/'))
  const read = async (file: string) => JSON.parse(await readFile(join(layout, file), 'utf8'))
  const { manifests } = (await read('index.json')) as { manifests: Descriptor[] }
  if (manifests.length !== 1) throw new Error(`${layout} must hold one image, and holds ${manifests.length}`)
  const [{ mediaType, digest, size }] = manifests as [Descriptor]
  const manifest: { config: Descriptor; layers: Descriptor[] } = await read(path(manifests[0]!))
  const tag = name.slice(name.lastIndexOf(':') + 1)
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': tag }
  const files = {
    'index.json': { schemaVersion: 2, manifests: [{ mediaType, digest, size, annotations }] },
    'oci-layout': { imageLayoutVersion: '1.0.0' },
    'manifest.json': [{ Config: path(manifest.config), RepoTags: [name], Layers: manifest.layers.map(path) }],
  }
  const folder = await mkdtemp(`${archive}.`)
  try {
    for (const [file, content] of Object.entries(files)) await writeFile(join(folder, file), JSON.stringify(content))
    const blobs = [manifests[0]!, manifest.config, ...manifest.layers].map(path)
    const alike = [
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--mode=644',
      '--format=ustar',
    ]
    const contents = ['-C', folder, ...Object.keys(files), '-C', layout, ...new Set(blobs)]
    await run('tar', ['-cf', archive, ...alike, ...contents])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return { digest, bytes: manifest.layers.reduce((sum, layer) => sum + layer.size, 0) }
}
