/** The files of a release, all of which name the image by its digest: the chart, the manifests, and the CRD. */

import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findTool } from '../programs/tools.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CHART = join(ROOT, 'charts/heartbeat-operator')
/** Of the image, in values.yaml; that of PostgreSQL's image is indented further. */
const NO_DIGEST = /^ {2}digest: ""$/m

export const readVersion = async (): Promise<string> =>
  JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).version

/** Resolves with the paths of the files in `folder`, the packaged chart first. */
export async function makeAssets(digest: string, folder: string): Promise<string[]> {
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`"${digest}" is no digest of an image`)
  await mkdir(folder, { recursive: true })
  const version = await readVersion()
  await packageChart(digest, folder)
  const files = [
    'manifests/install.yaml',
    'manifests/install-namespaced.yaml',
    'crds/heartbeatchecks.yaml',
    'crds/heartbeatchannels.yaml',
    'crds/heartbeatsilences.yaml',
  ]
  const copies = files.map(async (file) => {
    const text = await readFile(join(ROOT, file), 'utf8')
    const path = join(folder, file.slice(file.lastIndexOf('/') + 1))
    await writeFile(path, text.replaceAll(`/heartbeat-operator:${version}\n`, `/heartbeat-operator@${digest}\n`))
    return path
  })
  return [join(folder, `heartbeat-operator-${version}.tgz`), ...(await Promise.all(copies))]
}

async function packageChart(digest: string, folder: string): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'heartbeat-chart-'))
  try {
    const chart = join(copy, 'heartbeat-operator')
    await cp(CHART, chart, { recursive: true })
    const values = await readFile(join(chart, 'values.yaml'), 'utf8')
    if (!NO_DIGEST.test(values)) throw new Error('values.yaml must have image.digest, and it must be empty')
    await writeFile(join(chart, 'values.yaml'), values.replace(NO_DIGEST, `  digest: ${digest}`))
    await run(await findTool('helm'), ['package', chart, '--destination', folder])
  } finally {
    await rm(copy, { recursive: true })
  }
}
