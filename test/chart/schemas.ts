/** JSON schemas for kubeconform, from what an API server says of its kinds in /openapi/v3. */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cluster } from '../support/cluster-client.ts'

type Json = Record<string, unknown>

/** Of /openapi/v3 for a group and version, as far as it is read here. */
export interface OpenApiDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}
interface Schema extends Json {
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[]
}
/** By path: `apis/apps/v1`. */
export type OpenApiDocuments = Readonly<Record<string, OpenApiDocument>>

const REFERENCE = '#/components/schemas/'
/** Where kubeconform looks for a kind, below the folder. */
const LOCATION = '{{.ResourceKind}}{{.KindSuffix}}.json'

/** Of every group and version that the API server has. */
export async function readOpenApi(cluster: Cluster): Promise<OpenApiDocuments> {
  const { paths } = await read<{ paths: Record<string, unknown> }>(cluster, '/openapi/v3')
  const wanted = Object.keys(paths).filter((path) => /^apis?\/(.*\/)?v\d/.test(path))
  // Not by the address in the list: it has a hash, and redirects when another file has added a kind meanwhile.
  const documents = wanted.map(async (path) => {
    return [path, await read<OpenApiDocument>(cluster, `/openapi/v3/${path}`)] as const
  })
  return Object.fromEntries(await Promise.all(documents))
}

async function read<T>(cluster: Cluster, path: string): Promise<T> {
  const { status, body } = await cluster.api('GET', path)
  if (status !== 200) throw new Error(`${path} answers ${status}`)
  // The list of documents is JSON, and does not say so.
  return typeof body === 'string' ? JSON.parse(body) : body
}

/** One file for each kind. Resolves with kubeconform's -schema-location of the folder. */
export async function writeSchemas(folder: string, documents: OpenApiDocuments): Promise<string> {
  await mkdir(folder, { recursive: true })
  const files = Object.entries(documents).flatMap(([path, document]) => listKinds(path, document))
  await Promise.all(files.map(({ name, schema }) => writeFile(join(folder, name), JSON.stringify(schema))))
  return join(folder, LOCATION)
}

function listKinds(path: string, { components }: OpenApiDocument): { name: string; schema: Json }[] {
  const schemas = components?.schemas ?? {}
  return Object.entries(schemas).flatMap(([id, { 'x-kubernetes-group-version-kind': kinds = [] }]) =>
    kinds
      // Some schemas are of many groups; only that of this path is a kind of it.
      .filter(({ group, version }) => path === (group === '' ? `api/${version}` : `apis/${group}/${version}`))
      .map(({ group, version, kind }) => {
        const suffix = `${group === '' ? '' : `-${group.split('.')[0]}`}-${version}`
        return { name: `${kind.toLowerCase()}${suffix}.json`, schema: makeSchema(id, schemas) }
      }),
  )
}

/** With all that it refers to: no file refers to another. */
function makeSchema(id: string, schemas: Readonly<Record<string, Schema>>): Json {
  const used = new Set([id])
  const definitions: Json = {}
  for (const each of used) definitions[each] = convert(schemas[each], used) // a Set grows while it is walked
  return { $ref: `#/definitions/${id}`, definitions }
}

/**
 * Strict: an object that names its properties takes no others. kubeconform reads schemas as draft 4, the one that OpenAPI 3.0 is
 * nearest to; what it has not is nullable.
 */
function convert(node: unknown, used: Set<string>): unknown {
  if (Array.isArray(node)) return node.map((item) => convert(item, used))
  if (typeof node !== 'object' || node === null) return node
  const { $ref, properties, nullable, ...rest } = node as Json
  const result: Json = {}
  for (const [key, value] of Object.entries(rest))
    if (key !== 'default' && key !== 'description' && !key.startsWith('x-kubernetes-'))
      result[key] = convert(value, used)
  if (typeof $ref === 'string') {
    used.add($ref.slice(REFERENCE.length))
    result.$ref = `#/definitions/${$ref.slice(REFERENCE.length)}`
  }
  if (properties !== undefined) {
    const named = Object.entries(properties as Json).map(([name, child]) => [name, convert(child, used)])
    result.properties = Object.fromEntries(named)
    if (result.additionalProperties === undefined && rest['x-kubernetes-preserve-unknown-fields'] !== true)
      result.additionalProperties = false
  }
  if (nullable === true && typeof result.type === 'string') result.type = [result.type, 'null']
  if (rest['x-kubernetes-int-or-string'] !== true) return result
  const { type: _type, format: _format, ...either } = result
  return { anyOf: [{ type: 'integer' }, { type: 'string' }], ...either }
}
