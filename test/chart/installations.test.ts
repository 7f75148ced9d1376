/** manifests/: rendered from the chart, for people without Helm. */

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { renderInstallations } from '../../tools/generate/installations.ts'
import { listFiles } from '../support/documents.ts'
import { type ChartObject, DEFINITIONS, describeObject, listPods, pickDefinition } from './chart.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')
const NAMES = ['install', 'install-namespaced'] as const

const objectsOf = (name: string) =>
  parseAllDocuments(read(`manifests/${name}.yaml`)).map((document) => document.toJS() as ChartObject)

describe.each(NAMES)('%s.yaml', (name) => {
  it('is up to date: npm run manifests', async () => {
    const path = `manifests/${name}.yaml`
    expect(read(path)).toBe((await renderInstallations()).get(path))
  })

  it('has an object in each document, its namespace first, and nothing of Helm', () => {
    const objects = objectsOf(name)
    expect(objects[0]).toMatchObject({ kind: 'Namespace', metadata: { name: 'heartbeat-operator' } })
    for (const { kind, metadata } of objects) {
      expect(kind).toMatch(/./)
      expect(metadata.annotations ?? {}, kind).not.toHaveProperty(['helm.sh/resource-policy'])
      expect(JSON.stringify(metadata), kind).not.toMatch(/helm\.sh|"Helm"/)
    }
  })

  it('reads all secrets from one Secret, and starts with the three that its head tells to create', () => {
    const references = listPods(objectsOf(name)).flatMap(({ spec }) =>
      (spec.containers[0].env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []),
    )
    const needed = references.filter(({ optional }) => optional !== true).map(({ key }) => key)
    expect(new Set(references.map((reference) => reference.name))).toEqual(new Set(['heartbeat-operator']))
    const created = [...read(`manifests/${name}.yaml`).matchAll(/^# +--from-literal=(\w+)=/gm)].map(([, key]) => key)
    expect(created).toEqual(['DATABASE_URL', 'SECRET_KEY', 'BOOTSTRAP_PASSWORD'])
    expect(new Set(needed)).toEqual(new Set(['DATABASE_URL', 'SECRET_KEY']))
    expect(references.map(({ key }) => key)).toEqual(expect.arrayContaining(['BOOTSTRAP_PASSWORD', 'METRICS_TOKEN']))
  })

  it('names what is belongs to the cluster by the rule of the chart', () => {
    const ofCluster = objectsOf(name).filter(
      ({ kind, metadata }) =>
        metadata.namespace === undefined && !['Namespace', 'CustomResourceDefinition'].includes(kind),
    )
    expect(ofCluster.length > 0).toBe(name === 'install')
    for (const { metadata } of ofCluster) expect(metadata.name).toMatch(/^heartbeat-operator-heartbeat-operator-/)
  })
})

it('install.yaml holds the CRDs of crds/, and install-namespaced.yaml none', () => {
  for (const plural of DEFINITIONS) {
    const { spec } = pickDefinition(objectsOf('install'), plural)
    expect(spec).toEqual(parse(read(`crds/${plural}.yaml`)).spec)
  }
  const kinds = objectsOf('install-namespaced').map(describeObject)
  expect(kinds.filter((kind) => /^(Cluster|Custom|Validating)/.test(kind))).toEqual([])
})

it('no other file holds the CRDs than these and the templates of the chart', () => {
  const folders = ['charts', 'crds', 'docs', 'manifests', 'src']
  const holding = folders.flatMap(listFiles).filter((path) => read(path).includes('\nkind: CustomResourceDefinition\n'))
  expect(holding.sort()).toEqual([
    'charts/heartbeat-operator/templates/crds/heartbeatchannels.yaml',
    'charts/heartbeat-operator/templates/crds/heartbeatchecks.yaml',
    'charts/heartbeat-operator/templates/crds/heartbeatsilences.yaml',
    'crds/heartbeatchannels.yaml',
    'crds/heartbeatchecks.yaml',
    'crds/heartbeatsilences.yaml',
    'manifests/install.yaml',
  ])
})

it('a person writes less than 750 lines of YAML in manifests/', () => {
  const folder = fileURLToPath(new URL('manifests/', ROOT))
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.yaml'))
  const written = files.filter((file) => !NAMES.some((name) => file === `${name}.yaml`))
  const lines = written.reduce((sum, file) => sum + read(`manifests/${file}`).split('\n').length - 1, 0)
  expect(lines).toBeLessThan(750)
  expect(lines).toBeGreaterThan(500)
})
