/**
 * What is made without Helm, by path: the CustomResourceDefinitions from their schemas, also as templates of the chart and
 * as documents, the schema of the chart's values, the table of them in its README, and its versions. The rest:
 * installations.ts.
 */

import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { DEFINITIONS } from '../../src/operator/schema/definition.ts'
import { renderCrdReference } from './crd-reference.ts'
import { renderValuesSchema } from './values-schema.ts'
import { replaceValuesTable } from './values-table.ts'

const CHART = 'charts/heartbeat-operator'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')

export function renderManifests(): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(DEFINITIONS).flatMap(([name, definition]) => [
      [`crds/${name}.yaml`, renderDefinition(definition)] as const,
      [`${CHART}/templates/crds/${name}.yaml`, renderDefinitionTemplate(definition)] as const,
    ]),
    ['docs/reference/crd.md', renderCrdReference(DEFINITIONS.heartbeatchecks, USES.check)],
    ['docs/reference/crd-channel.md', renderCrdReference(DEFINITIONS.heartbeatchannels, USES.channel)],
    ['docs/reference/crd-silence.md', renderCrdReference(DEFINITIONS.heartbeatsilences, USES.silence)],
    [`${CHART}/Chart.yaml`, setVersions(read(`${CHART}/Chart.yaml`))],
    [`${CHART}/values.schema.json`, renderValuesSchema(read(`${CHART}/values.yaml`))],
    [`${CHART}/README.md`, replaceValuesTable(read(`${CHART}/README.md`), read(`${CHART}/values.yaml`))],
    ...WITH_IMAGE.map((path) => [path, setVersions(read(path))] as const),
  ])
}

/** Where each kind is explained. */
const USES = {
  check: '[HeartbeatChecks](../use/checks.md), [CronJobs](../use/cronjobs.md)',
  silence: '[Silences](../use/channels.md#silences)',
  channel: '[Channels as resources](../use/channels.md#as-resources)',
} as const

/** Documents that name the image, or its archive. */
const WITH_IMAGE = ['docs/get-started/docker.md', 'docs/get-started/image.md']

/** The chart, the image that it installs, and what documents say of the image have the version of package.json. */
function setVersions(text: string): string {
  const { version } = JSON.parse(read('package.json'))
  return text
    .replace(/^(version|appVersion): .*$/gm, `$1: ${version}`)
    .replace(/(?<=heartbeat-operator[:-])\d+\.\d+\.\d+/g, version)
}

type Definition = (typeof DEFINITIONS)[keyof typeof DEFINITIONS]

function renderDefinition(definition: Definition): string {
  const about = '# Made by `npm run manifests` from src/operator/schema: change it there.\n'
  return about + stringify(definition, { lineWidth: 120, aliasDuplicateObjects: false })
}

/** What only the chart says of the definition, as Helm reads it: the rest holds no template. */
const TEMPLATE_HEAD = `{{- if .Values.crds.enabled -}}
{{- /* Made by \`npm run manifests\` from src/operator/schema: change it there. */ -}}
{{- /* Without it every resource, and all that it published, would go with the release. */ -}}
{{- $annotations := .Values.crds.keep | ternary (dict "helm.sh/resource-policy" "keep") dict -}}
`
const TEMPLATE_METADATA = `  {{- include "heartbeat-operator.meta" (list $ "" (dict "annotations" $annotations)) | nindent 2 }}
`
const TEMPLATE_TAIL = '{{- end }}\n'

function renderDefinitionTemplate(definition: Definition): string {
  const { labels: _, ...metadata } = definition.metadata
  const yaml = stringify({ ...definition, metadata }, { lineWidth: 120, aliasDuplicateObjects: false })
  if (yaml.includes('{{')) throw new Error(`${metadata.name} holds {{, which Helm would take for its own`)
  const end = yaml.indexOf('spec:\n')
  return TEMPLATE_HEAD + yaml.slice(0, end) + TEMPLATE_METADATA + yaml.slice(end) + TEMPLATE_TAIL
}
