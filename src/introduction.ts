/** What `npm start` tells the person who typed it, on standard output. */

import type { Addresses } from './app.ts'
import type { Config } from './config.ts'
import type { Connection } from './kubernetes/connection.ts'

/** What the first start made; null when the database was set up before. */
export interface Made {
  readonly email: string
  readonly password: string
  readonly apiKey: string
}

/**
 * Told the moment it is stored, before anything else can go wrong: nobody can read it again later. Only what was generated is
 * shown: whoever gave a key or a password has it, and this output may be kept as a log.
 */
export function describeCredentials(projectId: string, made: Made | null, given: Config['secrets']): string {
  const project = `  project  ${projectId}`
  if (made === null) return `${project}\n  API key and log-in as printed at the first start`
  const key = given.bootstrapApiKey === undefined ? made.apiKey : 'that of BOOTSTRAP_API_KEY'
  const password = given.bootstrapPassword === undefined ? made.password : 'with BOOTSTRAP_PASSWORD'
  return `${project}
  API key  ${key}
  log-in   ${made.email} ${password}
  (what was generated is shown this once: note it now)`
}

/** One line: which cluster, or that there is none and what to do about it. */
export function describeCluster(
  { clusterName, watchNamespaces }: Config,
  connection: Pick<Connection, 'server' | 'source'> | null,
  fault: string | null,
): string {
  if (connection === null) {
    const why =
      fault ?? 'no kubeconfig and no ServiceAccount was found (set KUBECONFIG to have HeartbeatChecks reconciled)'
    return `  cluster  none: ${why}`
  }
  const where = watchNamespaces === null ? 'all namespaces' : `the namespaces ${watchNamespaces.join(', ')}`
  return `  cluster  ${connection.server} (${connection.source}), as "${clusterName}": HeartbeatChecks of ${where}`
}

/** The public addresses, and a line to paste: the check to begin with, or where no key may be shown the question how it is. */
export function describeService({ ping, api, ops }: Addresses, projectId: string, apiKey: string | null): string {
  const served =
    ping === null
      ? ''
      : `  ping     ${ping}/ping/<public_id of a check>
  api      ${api}   (described by ${api}/openapi.json)
`
  const addresses = `${served}  ops      ${ops}/metrics`
  if (apiKey === null || ping === null) return `${addresses}\n\nIs it well?\n\n  curl -fsS ${ops}/readyz\n`
  const check = JSON.stringify({ project_id: projectId, name: 'My first job', period_seconds: 10, grace_seconds: 5 })
  return `${addresses}

Make a check that wants a ping every 10 seconds:

  curl -fsS ${api}/checks -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -d '${check}'
`
}
