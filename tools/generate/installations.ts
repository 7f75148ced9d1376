/**
 * The installations in manifests/, rendered from the chart with the values beside them. Helm is that of PATH, or built
 * once (tools/programs/tools.ts).
 */

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findTool } from '../programs/tools.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** The name of the release, and of its namespace. */
const NAME = 'heartbeat-operator'
/** Nothing of Helm manages these objects. */
const OF_HELM = /^ +(?:helm\.sh\/chart: .*|app\.kubernetes\.io\/managed-by: Helm)\n/gm

const ABOUT_SECRET = `Then create the Secret that it waits for, once:

  kubectl -n heartbeat-operator create secret generic heartbeat-operator \\
    --from-literal=DATABASE_URL='postgres://user:password@host:5432/database' \\
    --from-literal=SECRET_KEY="$(openssl rand -base64 32)" \\
    --from-literal=BOOTSTRAP_PASSWORD="$(openssl rand -base64 18)"

BOOTSTRAP_PASSWORD is the password of admin@example.com, and BOOTSTRAP_API_KEY may be the first key: a value that is
missing is generated at the first start and printed in the log. With METRICS_TOKEN, /metrics requires that token.
SECRET_KEY signs tokens and encrypts the config of channels: keep it as long as the database.

Every other variable of docs/reference/configuration.md can be set in the ConfigMap heartbeat-operator.`

const INSTALLATIONS = {
  install: {
    values: ['install'],
    about: `Heartbeat Operator for a whole cluster.

  kubectl apply -f manifests/install.yaml

${ABOUT_SECRET}`,
  },
  'install-namespaced': {
    values: ['install', 'install-namespaced'],
    about: `Heartbeat Operator for single namespaces, without rights in others. The CRDs belong to the cluster: an administrator
of the cluster installs them.

  kubectl apply -f crds/
  kubectl apply -f manifests/install-namespaced.yaml

It watches its own namespace. Each further one in WATCH_NAMESPACES needs the same Roles and RoleBindings. To install it
in another namespace, change the name in every line "namespace: heartbeat-operator", in the Namespace, in
WATCH_NAMESPACES and in the two addresses. Without the right to read the namespace kube-system it is not detected when
two clusters use one CLUSTER_NAME in one database.

${ABOUT_SECRET}`,
  },
}

/** By path; in the order of Helm, which is that of an installation. */
export async function renderInstallations(): Promise<ReadonlyMap<string, string>> {
  const helm = await findTool('helm')
  const entries = Object.entries(INSTALLATIONS).map(async ([name, { values, about }]) => {
    const files = values.map((file) => `manifests/${file}.values.yaml`)
    const options = ['--namespace', NAME, '--no-hooks', ...files.flatMap((file) => ['--values', file])]
    const command = ['template', NAME, 'charts/heartbeat-operator', ...options]
    const { stdout } = await run(helm, command, { cwd: ROOT, maxBuffer: 64 * 2 ** 20 })
    const head = `Made by \`npm run manifests\` from the chart with ${files.join(' and ')}: change it there.\n\n${about}`
    return [`manifests/${name}.yaml`, comment(head) + stdout.replace(OF_HELM, '')] as const
  })
  return new Map(await Promise.all(entries))
}

function comment(text: string): string {
  const lines = text.split('\n').map((line) => `${`# ${line}`.trimEnd()}\n`)
  return lines.join('')
}
