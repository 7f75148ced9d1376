/** The texts that `npm start` prints on standard output. */

import type { Addresses } from '../app.ts'
import type { Connection } from '../kubernetes/connection.ts'
import type { Bootstrapped } from '../tenancy/bootstrap.ts'
import type { Config } from './config.ts'

/**
 * Printed as soon as it is stored, because it cannot be read again later. Only generated secrets are shown: a given one
 * is known, and this output may be kept as a log.
 */
export function describeCredentials(projectId: string, made: Bootstrapped['made'], given: Config['secrets']): string {
  const project = `  project  ${projectId}`
  if (made === null) return `${project}\n  API key and log-in were printed at the first start`
  const key = given.bootstrapApiKey === undefined ? made.apiKey : 'from BOOTSTRAP_API_KEY'
  const password = given.bootstrapPassword === undefined ? made.password : 'with the password from BOOTSTRAP_PASSWORD'
  return `${project}
  API key  ${key}
  log-in   ${made.email} ${password}
  (generated secrets are shown only once: note them now)`
}

/** One line: which cluster, or why there is none or it is not reconciled, and what to do. */
export function describeCluster(
  { clusterName, watchNamespaces }: Config,
  connection: Pick<Connection, 'server' | 'source'> | null,
  fault: string | null,
): string {
  if (connection === null) {
    const why = fault ?? 'no kubeconfig and no ServiceAccount was found (set KUBECONFIG to reconcile HeartbeatChecks)'
    return `  cluster  none: ${why}`
  }
  if (fault !== null) return `  cluster  ${connection.server} (${connection.source}), not reconciled: ${fault}`
  const where = watchNamespaces === null ? 'all namespaces' : `the namespaces ${watchNamespaces.join(', ')}`
  return `  cluster  ${connection.server} (${connection.source}), as "${clusterName}": HeartbeatChecks of ${where}`
}

/** The public addresses, and a command to paste: it makes a first check, or asks for readiness when no key is shown. */
export function describeService(
  { ping, api, ops }: Addresses,
  { isDashboardOn }: Pick<Config, 'isDashboardOn'>,
  projectId: string,
  apiKey: string | null,
): string {
  const served =
    ping === null
      ? ''
      : `  ping     ${ping}/ping/<public_id of a check>
  api      ${api}   (described by ${api}/openapi.json)
${isDashboardOn ? `  dashboard  ${api!.replace(/\/api\/v1$/, '')}/\n` : ''}`
  const addresses = `${served}  ops      ${ops}/metrics`
  if (apiKey === null || ping === null) return `${addresses}\n\nCheck that it is ready:\n\n  curl -fsS ${ops}/readyz\n`
  const check = JSON.stringify({ project_id: projectId, name: 'My first job', period_seconds: 10, grace_seconds: 5 })
  return `${addresses}

Make a check that expects a ping every 10 seconds:

  curl -fsS ${api}/checks -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -d '${check}'
`
}
