/**
 * An OCI layout as an archive that every engine takes: those that read OCI (containerd of kind and k3s, podman, Docker
 * from 25 on) and those that read `docker save` (older Docker, minikube) find the same layers in it. The same image
 * gives the same bytes.
 */

import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

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
  const path = ({ digest }: Descriptor) => `blobs/${digest.replace(':', '/')}`
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
  const blobs = new Set([manifests[0]!, manifest.config, ...manifest.layers].map(path))
  await pipeline(async function* () {
    for (const [file, content] of Object.entries(files)) yield* makeEntry(file, Buffer.from(JSON.stringify(content)))
    for (const blob of blobs) yield* makeEntry(blob, await readFile(join(layout, blob)))
    yield Buffer.alloc(2 * BLOCK)
  }, createWriteStream(archive))
  return { digest, bytes: manifest.layers.reduce((sum, layer) => sum + layer.size, 0) }
}

const BLOCK = 512

/**
 * A file in a tar (POSIX ustar), of nobody in particular and of 1970. Not by the program tar: that of macOS has other
 * options.
 */
function makeEntry(name: string, content: Buffer): Buffer[] {
  const header = Buffer.alloc(BLOCK)
  const number = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at)
  header.write(name)
  number(0o644, 100, 8)
  for (const owner of [108, 116]) number(0, owner, 8)
  number(content.length, 124, 12)
  number(0, 136, 12)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  // The field itself counts as eight spaces.
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0`, 148)
  return [header, content, Buffer.alloc(-content.length & (BLOCK - 1))]
}
