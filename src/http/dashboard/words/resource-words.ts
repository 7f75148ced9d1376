/** Resources of a cluster in words. */

import { type Html, html, isolated } from '../html.ts'

interface Named {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** A paragraph for a page whose subject only the resource of this kind changes. */
export function declaredBy(kind: 'HeartbeatChannel' | 'HeartbeatSilence', { cluster, namespace, name }: Named): Html {
  return html`<p>It is managed by Kubernetes: the ${kind} <code>${isolated(`${namespace}/${name}`)}</code> in the cluster <code>${isolated(cluster)}</code> declares it. Change or delete that one instead.</p>`
}
