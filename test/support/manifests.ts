/**
 * The manifests that are made, by path: the CustomResourceDefinition from its schema, also as a template of the chart, the
 * installations from manifests/parts, the schema of the chart's values, and the table of them in its README.
 */

import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { RESOURCE_DEFINITION } from '../../src/operator/schema/definition.ts'
import { renderValuesSchema } from '../chart/values-schema.ts'
import { replaceValuesTable } from '../chart/values-table.ts'

/** Where the image is to be had; its tag is the version in package.json. */
const IMAGE = 'ghcr.io/heartbeat-operator/heartbeat-operator'

const CHART = 'charts/heartbeat-operator'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')

const EVERYWHERE = [
  'namespace',
  'service-accounts',
  'rbac-lease',
  'rbac',
  'rbac-cronjobs',
  'rbac-publisher',
  'rbac-users',
  'admission-policy',
  'configuration',
]
const IN_ONE_NAMESPACE = [
  'namespace',
  'service-accounts',
  'rbac-lease',
  'rbac-namespaced',
  'rbac-cronjobs-namespaced',
  'configuration-namespaced',
]
const WORKLOADS = ['api', 'controller', 'metrics']

const ABOUT_SECRET = `Then create the Secret that it waits for, once:

  kubectl -n heartbeat-operator create secret generic heartbeat-operator \\
    --from-literal=DATABASE_URL='postgres://user:password@host:5432/database' \\
    --from-literal=SECRET_KEY="$(openssl rand -base64 32)" \\
    --from-literal=BOOTSTRAP_PASSWORD="$(openssl rand -base64 18)"

BOOTSTRAP_PASSWORD is the password of admin@example.com. SECRET_KEY signs tokens and encrypts the config of channels: keep it as
long as the database.`

const ABOUT_INSTALL = `Heartbeat Operator for a whole cluster.

  kubectl apply -f manifests/install.yaml

${ABOUT_SECRET}`

const ABOUT_INSTALL_NAMESPACED = `Heartbeat Operator for single namespaces, without rights in others. The CRD belongs to the cluster and is installed by an
administrator:

  kubectl apply -f manifests/crd.yaml
  kubectl apply -f manifests/install-namespaced.yaml

It watches its own namespace; see WATCH_NAMESPACES below for others. To install it in another namespace, change the name in every
line "namespace: heartbeat-operator", in the Namespace, in WATCH_NAMESPACES and in the two addresses. Without the right to read the
namespace kube-system it is not detected when two clusters use one CLUSTER_NAME in one database.

${ABOUT_SECRET}`

export function renderManifests(): ReadonlyMap<string, string> {
  const definition = renderDefinition()
  return new Map([
    ['crds/heartbeatchecks.yaml', definition],
    ['manifests/crd.yaml', definition],
    [`${CHART}/templates/crds/heartbeatchecks.yaml`, renderDefinitionTemplate()],
    [`${CHART}/values.schema.json`, renderValuesSchema(read(`${CHART}/values.yaml`))],
    [`${CHART}/README.md`, replaceValuesTable(read(`${CHART}/README.md`), read(`${CHART}/values.yaml`))],
    [
      'manifests/install.yaml',
      compose(ABOUT_INSTALL, 'manifests/parts', [definition, ...readParts([...EVERYWHERE, ...WORKLOADS])]),
    ],
    [
      'manifests/install-namespaced.yaml',
      compose(ABOUT_INSTALL_NAMESPACED, 'manifests/parts', readParts([...IN_ONE_NAMESPACE, ...WORKLOADS])),
    ],
  ])
}

function renderDefinition(): string {
  const about = comment('Made by `npm run manifests` from src/operator/schema: change it there.')
  return about + stringify(RESOURCE_DEFINITION, { lineWidth: 120, aliasDuplicateObjects: false })
}

/** What only the chart says of the definition, as Helm reads it: the rest holds no template. */
const TEMPLATE_HEAD = `{{- if .Values.crds.enabled -}}
{{- /* Made by \`npm run manifests\` from src/operator/schema: change it there. */ -}}
{{- /* Without it every HeartbeatCheck, and all that it published, would go with the release. */ -}}
{{- $annotations := .Values.crds.keep | ternary (dict "helm.sh/resource-policy" "keep") dict -}}
`
const TEMPLATE_METADATA = `  {{- include "heartbeat-operator.meta" (list $ "" (dict "annotations" $annotations)) | nindent 2 }}
`
const TEMPLATE_TAIL = '{{- end }}\n'

function renderDefinitionTemplate(): string {
  const { labels: _, ...metadata } = RESOURCE_DEFINITION.metadata
  const yaml = stringify({ ...RESOURCE_DEFINITION, metadata }, { lineWidth: 120, aliasDuplicateObjects: false })
  if (yaml.includes('{{'))
    throw new Error('the definition of HeartbeatCheck holds {{, which Helm would take for its own')
  const end = yaml.indexOf('spec:\n')
  return TEMPLATE_HEAD + yaml.slice(0, end) + TEMPLATE_METADATA + yaml.slice(end) + TEMPLATE_TAIL
}

function readParts(names: readonly string[]): string[] {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  return names.map((name) =>
    read(`manifests/parts/${name}.yaml`).replace(/^( *image:) heartbeat-operator$/m, `$1 ${IMAGE}:${version}`),
  )
}

function compose(about: string, from: string, documents: readonly string[]): string {
  return `${comment(`Made by \`npm run manifests\` from ${from}: change it there.\n\n${about}`)}${documents.map((text) => `---\n${text}`).join('')}`
}

function comment(text: string): string {
  return text
    .split('\n')
    .map((line) => `${`# ${line}`.trimEnd()}\n`)
    .join('')
}
