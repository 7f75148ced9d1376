/**
 * What to run when the API server says that the controller's account may not publish in a namespace (design, section 6,
 * "Publishing").
 */

import { ApiError } from '../../kubernetes/errors.ts'
import { PUBLISHER_BINDING, RESTORE_RIGHTS } from '../names.ts'

/** RBAC's rejection names the user. Admission rules and quotas also answer 403, and name none. */
const FORBIDDEN = /\bforbidden: User "([^"]+)" cannot \w+ resource "/
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/
/** The chart's own name of the account is `<fullname>-controller`; a value of the chart can replace that name. */
const OF_CHART = /^(.+)-controller$/
/** The name that the chart gives to its ClusterRole. A shell rejects the name as it stands here. */
const ROLE_OF_CHART = '<fullname>-<namespace>-publisher'
/** The ClusterRole of manifests/install.yaml, which are rendered from the chart. */
const ROLE_OF_MANIFESTS = 'heartbeat-operator-heartbeat-operator-publisher'
/** A binding to a ClusterRole that does not exist is no error, and grants nothing. */
const IF_WITHOUT_EFFECT = `the ClusterRole is ${ROLE_OF_CHART} of the Helm release, without Helm ${ROLE_OF_MANIFESTS}; where single namespaces are watched there is none: ${RESTORE_RIGHTS}`

/**
 * Who grants the right to publish in this namespace, and how. The account is the one that the API server rejected: a
 * kubeconfig does not say whose its credentials are, nor does a ServiceAccount's folder without its token being
 * decoded. Null: no right is missing.
 */
export function describeGrant(error: unknown, namespace: string): string | null {
  if (!(error instanceof ApiError) || error.status !== 403) return null
  const user = FORBIDDEN.exec(error.message)?.[1]
  if (user === undefined) return null
  const [, home, account] = SERVICE_ACCOUNT.exec(user) ?? []
  const subject = account === undefined ? `--user=${quote(user)}` : `--serviceaccount=${home}:${account}`
  const [, fullname] = OF_CHART.exec(account ?? '') ?? []
  const role = fullname === undefined ? ROLE_OF_CHART : `${fullname}-${home}-publisher`
  const command = `kubectl create rolebinding ${PUBLISHER_BINDING} -n ${namespace} --clusterrole=${role} ${subject}`
  return `an administrator of the namespace grants it with: ${command}; ${IF_WITHOUT_EFFECT}`
}

/** For a shell. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
