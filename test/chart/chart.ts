/** The chart as Helm renders it, for the tests of the lane. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { findTool } from '../../tools/programs/tools.ts'
import { cluster } from '../support/cluster.ts'

export const CHART = fileURLToPath(new URL('../../charts/heartbeat-operator', import.meta.url))
/** What the tests install as: `helm install heartbeat charts/heartbeat-operator --namespace monitoring`. */
export const RELEASE = 'heartbeat'
export const NAMESPACE = 'monitoring'

export interface ChartObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind; a test asserts the shape by reading it
  readonly [field: string]: any
}

export type Values = Readonly<Record<string, unknown>>

export interface HelmOutput {
  readonly stdout: string
  readonly stderr: string
}

const HELM = await findTool('helm')

/** Helm would keep settings and a cache in the person's home; these are gone with the lane's control plane. */
const HOME = join(cluster.folder, 'helm')
const ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  HOME,
  HELM_CACHE_HOME: join(HOME, 'cache'),
  HELM_CONFIG_HOME: join(HOME, 'config'),
  HELM_DATA_HOME: join(HOME, 'data'),
}

/** Runs Helm with these values; fails with what it said when it fails. */
export function helm(args: readonly string[], values: Values = {}): Promise<HelmOutput> {
  return new Promise((resolve, reject) => {
    const options = { env: ENVIRONMENT, maxBuffer: 64 * 2 ** 20 }
    const child = execFile(HELM, [...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve({ stdout, stderr })
      reject(new Error(`helm ${args[0]} failed (${error.code}): ${stderr.trim()}\n${stdout.trim()}`, { cause: error }))
    })
    child.stdin?.on('error', () => {}) // it may end without reading
    child.stdin?.end(JSON.stringify(values))
  })
}

export interface RenderOptions {
  readonly release?: string
  readonly namespace?: string
}

const rendered = new Map<string, Promise<readonly ChartObject[]>>()

/** All that the chart makes of these values, hooks and tests included; rendered once for each file of tests. */
export function renderChart(values: Values = {}, options: RenderOptions = {}): Promise<readonly ChartObject[]> {
  const key = JSON.stringify([values, options])
  const objects = rendered.get(key) ?? renderText(values, options).then(parseObjects)
  rendered.set(key, objects)
  return objects
}

/** The same as YAML, rendered anew. Helm sees no cluster here, where the chart generates secrets only with `generateSecrets`. */
export async function renderText(values: Values = {}, options: RenderOptions = {}): Promise<string> {
  const { release = RELEASE, namespace = NAMESPACE } = options
  const command = ['template', release, CHART, '--namespace', namespace, '--values', '-']
  return (await helm(command, { generateSecrets: true, ...values })).stdout
}

/** What Helm says of values that it refuses; fails when it takes them. */
export async function readRefusal(values: Values): Promise<string> {
  const text = await renderText(values).catch((error: Error) => error)
  if (typeof text === 'string') throw new Error(`Helm takes ${JSON.stringify(values)}`)
  return text.message
}

export function parseObjects(yaml: string): readonly ChartObject[] {
  return parseAllDocuments(yaml)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS() as ChartObject | null
    })
    .filter((object) => object !== null)
}

/** The definitions of our kinds, by the file of each in crds/. */
export const DEFINITIONS = ['heartbeatchecks', 'heartbeatchannels', 'heartbeatsilences'] as const
export const pickDefinition = (objects: readonly ChartObject[], plural: (typeof DEFINITIONS)[number]) =>
  pick(objects, 'CustomResourceDefinition', `${plural}.heartbeat-operator.io`)

/** The one object of this kind, and name where several are there; fails when there is none or more than one. */
export function pick(objects: readonly ChartObject[], kind: string, name?: string): ChartObject {
  const found = objects.filter(
    (object) => object.kind === kind && (name ?? object.metadata.name) === object.metadata.name,
  )
  if (found.length !== 1)
    throw new Error(`${found.length} objects are ${kind} ${name ?? ''}: ${found.map(describeObject)}`)
  return found[0]!
}

/** `Deployment monitoring/heartbeat-api`. */
export function describeObject({ kind, metadata }: ChartObject): string {
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly args?: readonly string[]
  readonly env?: readonly {
    name: string
    value?: string
    valueFrom?: { secretKeyRef: { name: string; key: string; optional?: boolean } }
  }[]
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly [field: string]: any
}

export interface PodTemplate {
  readonly owner: ChartObject
  readonly labels: Readonly<Record<string, string>>
  readonly spec: { readonly containers: readonly [Container] } & Record<string, unknown>
}

/** The pods that these objects are or make. */
export function listPods(objects: readonly ChartObject[]): readonly PodTemplate[] {
  return objects.flatMap((owner) => {
    if (owner.kind === 'Pod') return [{ owner, labels: owner.metadata.labels, spec: owner.spec }]
    const template = owner.spec?.template
    return template?.spec?.containers === undefined
      ? []
      : [{ owner, labels: template.metadata.labels, spec: template.spec }]
  })
}
