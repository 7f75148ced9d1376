/** CustomResourceDefinitions from files onto a control plane. */

import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAllDocuments } from 'yaml'
import { type ClusterAccess, requestApi } from './control-plane-access.ts'

const ESTABLISHED_MS = 20_000
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Applies every YAML or JSON file of these files and folders; resolves when all the kinds can be used. */
export async function applyCrds(access: ClusterAccess, places: readonly string[]): Promise<void> {
  const files = (await Promise.all(places.map(listFiles))).flat()
  const objects = (await Promise.all(files.map(readObjects))).flat()
  await Promise.all(objects.map((crd) => applyCrd(access, crd)))
}

interface Crd {
  readonly kind?: string
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
}

/** What kubectl apply leaves behind and looks for: without it the next one would warn. */
function withLastApplied(crd: Crd): Crd {
  const annotations = {
    ...crd.metadata.annotations,
    'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(crd)}\n`,
  }
  return { ...crd, metadata: { ...crd.metadata, annotations } }
}

async function listFiles(place: string): Promise<string[]> {
  if (!(await stat(place)).isDirectory()) return [place]
  const names = (await readdir(place)).filter((name) => /\.(ya?ml|json)$/.test(name))
  return names.sort().map((name) => join(place, name))
}

async function readObjects(file: string): Promise<Crd[]> {
  const objects = parseAllDocuments(await readFile(file, 'utf8')).map((document) => document.toJS() as Crd | null)
  const crds = objects.filter((object): object is Crd => object !== null)
  const stranger = crds.find(({ kind }) => kind !== 'CustomResourceDefinition')
  if (stranger !== undefined)
    throw new Error(`${file} holds a ${stranger.kind}; only CustomResourceDefinitions belong there`)
  return crds
}

async function applyCrd(access: ClusterAccess, crd: Crd): Promise<void> {
  const path = `${CRDS}/${crd.metadata.name}`
  const contentType = 'application/apply-patch+yaml'
  const answer = await requestApi(access, `${path}?fieldManager=test-bed&force=true`, {
    method: 'PATCH',
    contentType,
    body: withLastApplied(crd),
  })
  if (answer.status >= 300) throw new Error(`CRD ${crd.metadata.name} is refused: ${answer.body.message}`)
  for (const limit = performance.now() + ESTABLISHED_MS; ; await sleep(20)) {
    const { body } = await requestApi(access, path)
    const conditions: { type: string; status: string; message?: string }[] = body.status?.conditions ?? []
    if (conditions.some(({ type, status }) => type === 'Established' && status === 'True')) return
    if (performance.now() < limit) continue
    const shown = conditions.map(({ type, status, message }) => `${type}=${status} ${message}`).join('; ')
    throw new Error(`CRD ${crd.metadata.name} is not established after ${ESTABLISHED_MS} ms: ${shown}`)
  }
}
