/** What Kubernetes knows of a check: its resource, and the commands that show more. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import { type Html, html, isolated } from '../../html.ts'
import { copyButton } from '../../ui/parts.ts'
import { wordForShell } from './shell-text.ts'

type Resource = NonNullable<CheckRecord['kubernetes']>
type FollowedCronJob = NonNullable<CheckRecord['cronJob']>

/** Nothing for a check that no resource declares or declared. `mayWrite`: the commands have buttons. */
export function renderKubernetes({ kubernetes, managedBy, cronJob }: CheckRecord, mayWrite: boolean): Html {
  if (kubernetes === null) return html``
  const { cluster, namespace } = kubernetes
  const commands = [
    ['What the operator says, and its conditions', `kubectl describe ${resourceArguments(kubernetes)}`],
    [
      'Each change of status',
      `kubectl events --for ${wordForShell(`hbc/${kubernetes.name}`)} -n ${wordForShell(kubernetes.namespace)}`,
    ],
    ...(cronJob === undefined
      ? [['The jobs beside it', `kubectl get cronjobs,jobs,pods -n ${wordForShell(namespace)}`] as const]
      : listCronJobCommands(namespace, cronJob)),
  ] as const
  return html`<section aria-labelledby="kubernetes-title">
<h2 id="kubernetes-title">Kubernetes</h2>
<p>${resourceWords(kubernetes)} ${managedBy === 'kubernetes' ? 'declares' : 'declared'} this check${
    managedBy === 'kubernetes' ? '' : ', which belongs to the API now'
  }. To look further, in the cluster <code>${isolated(cluster)}</code>:</p>
${commands.map(([meaning, command], index) => html`<p class="command-title">${meaning}</p>${renderCommand(`kubectl-${index + 1}`, command, mayWrite)}`)}
</section>`
}

function listCronJobCommands(namespace: string, { name, lastRun }: FollowedCronJob) {
  const place = `-n ${wordForShell(namespace)}`
  const commands = [
    ['Its CronJob', `kubectl describe cronjob ${wordForShell(name)} ${place}`],
    ['Its Jobs and their pods', `kubectl get jobs,pods ${place}`],
  ] as const
  if (lastRun === null) return commands
  return [
    ...commands,
    ['The log of its last run', `kubectl logs ${wordForShell(`job/${lastRun.job}`)} ${place} --all-containers`],
  ] as const
}

/** `HeartbeatCheck payments/nightly`. */
export function resourceWords(resource: Resource | null): Html {
  if (resource === null) return html`A HeartbeatCheck`
  return html`The HeartbeatCheck <code>${isolated(`${resource.namespace}/${resource.name}`)}</code>`
}

/** A command, with a button that copies it if `canCopy`. */
export function renderCommand(id: string, command: string, canCopy = true): Html {
  return html`<div class="command"><pre tabindex="0"><code id="${id}">${command}</code></pre>
${canCopy ? copyButton(id, 'the command') : ''}</div>`
}

export function deleteCommand(resource: Resource | null): string {
  return `kubectl delete ${resourceArguments(resource)}`
}

export function deleteJobCommand({ namespace }: Pick<Resource, 'namespace'>, job: string): string {
  return `kubectl delete job ${wordForShell(job)} -n ${wordForShell(namespace)}`
}

export function suspendCommand(resource: Resource | null, suspend: boolean): string {
  return `kubectl patch ${resourceArguments(resource)} --type merge -p '{"spec":{"suspend":${suspend}}}'`
}

export function suspendCronJobCommand(
  { namespace, name }: Pick<Resource, 'namespace' | 'name'>,
  suspend: boolean,
): string {
  return `kubectl patch cronjob ${wordForShell(name)} -n ${wordForShell(namespace)} -p '{"spec":{"suspend":${suspend}}}'`
}

function resourceArguments(resource: Resource | null): string {
  const { namespace, name } = resource ?? { namespace: 'NAMESPACE', name: 'NAME' }
  return `heartbeatcheck ${wordForShell(name)} -n ${wordForShell(namespace)}`
}
