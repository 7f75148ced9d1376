/** docs/operate/production.md: its values, what Argo CD and Flux make of its Application and HelmRelease, and its providers. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { signInProviders } from '../../src/config/sign-in.ts'
import { CHECKOUT, listBlocks, readText } from '../support/documents.ts'
import { CASES } from './cases.ts'
import {
  CHART,
  DEFINITIONS,
  helm,
  listPods,
  parseObjects,
  pick,
  pickDefinition,
  RELEASE,
  type Values,
} from './chart.ts'

const DOCUMENT = 'docs/operate/production.md'

interface Release {
  readonly kind: string
  readonly name: string
  readonly namespace: string
  /** Of the chart, in the repository. */
  readonly path: string
  readonly values: Values
}

const blocksOf = (language: string) => listBlocks(DOCUMENT).filter((block) => block.language === language)
const objects = blocksOf('yaml')
  .flatMap(({ text }) => parseObjects(text))
  .filter(({ kind }) => kind !== undefined)

const { spec: application } = pick(objects, 'Application')
const { spec: helmRelease, metadata } = pick(objects, 'HelmRelease')
const RELEASES: readonly Release[] = [
  {
    kind: 'Application',
    name: application.source.helm.releaseName,
    namespace: application.destination.namespace,
    path: application.source.path,
    values: application.source.helm.valuesObject,
  },
  {
    kind: 'HelmRelease',
    name: helmRelease.releaseName,
    namespace: metadata.namespace!,
    path: helmRelease.chart.spec.chart,
    values: helmRelease.values,
  },
]

/** As Argo CD renders: without a cluster, and without generateSecrets. */
const render = async ({ name, namespace, path, values }: Release) =>
  (await helm(['template', name, join(CHECKOUT, path), '-n', namespace, '--include-crds', '--values', '-'], values))
    .stdout

it.each(RELEASES)('the $kind is rendered without a cluster, twice the same, with the CRDs', async (release) => {
  expect(join(CHECKOUT, release.path)).toBe(CHART)
  const text = await render(release)
  expect(await render(release)).toBe(text)
  const rendered = parseObjects(text)
  for (const plural of DEFINITIONS)
    expect(pickDefinition(rendered, plural).metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' })
  expect(rendered.filter(({ kind }) => kind === 'Secret')).toEqual([])
  expect(release).toMatchObject({ name: RELEASE, namespace: 'monitoring' })
})

/** The keys of each Secret that the commands create. */
function listCreated(): Map<string, string[]> {
  const created = new Map<string, string[]>()
  const commands = blocksOf('sh')
    .map(({ text }) => text.replaceAll('\\\n', ' '))
    .join('\n')
  for (const [, name, literals] of commands.matchAll(/create secret generic (\S+) (.*)$/gm))
    created.set(
      name!,
      [...literals!.matchAll(/--from-(?:literal|file)=(\w+)=/g)].map(([, key]) => key!),
    )
  return created
}

const ofProduction: Release = { ...RELEASES[0]!, kind: 'values', values: CASES.production }

it.each([...RELEASES, ofProduction])('the pods of the $kind find each Secret that they need', async (release) => {
  const created = listCreated()
  const needed = listPods(parseObjects(await render(release))).flatMap(({ spec }) =>
    (spec.containers[0].env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []),
  )
  expect(needed.length).toBeGreaterThan(4)
  for (const { name, key, optional } of needed.filter(({ key }) => key !== 'PREVIOUS_SECRET_KEYS')) {
    expect(created.get(name), `${name}, ${key}`).toContain(key)
    // A Secret that comes later, such as that of an ExternalSecret: the first start would not wait for the Secret,
    // would generate what it misses, and would print that in the log.
    expect(optional, `${name}, ${key}`).not.toBe(true)
  }
  if (release === ofProduction) expect(new Set(needed.map(({ name }) => name))).toEqual(new Set(created.keys()))
})

it('the providers are a SIGN_IN that the service takes', () => {
  const [text] = blocksOf('json').map((block) => block.text)
  expect(signInProviders.parse(text).map(({ name }) => name)).toEqual(['Keycloak', 'Entra', 'Google', 'Dex'])
})

it('the volume of the authority is where the URL of the database looks for it', async () => {
  const values = parse(blocksOf('yaml').find(({ text }) => text.includes('extraVolumes'))!.text) as Values
  const [mount] = values.extraVolumeMounts as { mountPath: string }[]
  expect(readText(DOCUMENT)).toContain(`sslrootcert=${mount!.mountPath}/ca.crt`)
  const pods = listPods(parseObjects(await render({ ...ofProduction, values: { ...CASES.production, ...values } })))
  const withIt = pods.filter(({ spec }) => JSON.stringify(spec.volumes ?? []).includes('heartbeat-db-ca'))
  const names = withIt.map(({ owner }) => owner.metadata.name)
  expect(names).toEqual(expect.arrayContaining(['heartbeat-api', 'heartbeat-controller']))
})

it('the source of Flux is the one that its HelmRelease names', () => {
  const { kind, name } = helmRelease.chart.spec.sourceRef
  expect(pick(objects, kind).metadata).toMatchObject({ name, namespace: metadata.namespace })
  expect(existsSync(join(CHECKOUT, 'crds/heartbeatchecks.yaml'))).toBe(true)
})
