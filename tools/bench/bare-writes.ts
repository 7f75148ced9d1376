/**
 * What the API server asks at least for a HeartbeatCheck to be Ready, with any operator: its Secret and its status, written by a
 * loop that decides nothing, with as many requests at once as the controller has workers. Nobody else may be at work.
 */

import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import {
  API_VERSION,
  FIELD_MANAGER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  KIND,
} from '../../src/operator/heartbeat-check.ts'

const AT_ONCE = 16
const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
const NOW = '2026-01-02T03:04:05Z'

/** Seconds for all of them; making them is not counted. */
export async function timeBareWrites(client: KubernetesClient, namespace: string, count: number): Promise<number> {
  const checks: HeartbeatCheck[] = []
  await eachOf(count, async (index) => {
    checks[index] = await client.create<HeartbeatCheck>(HEARTBEAT_CHECKS, describeCheck(namespace, index))
  })
  const startedAt = performance.now()
  await eachOf(count, async (index) => {
    const check = checks[index]!
    await client.apply(SECRETS, describeSecret(check), { fieldManager: FIELD_MANAGER })
    await client.replace(HEARTBEAT_CHECKS, { ...check, status: describeStatus(check) }, { subresource: 'status' })
  })
  return (performance.now() - startedAt) / 1_000
}

async function eachOf(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await act(next++)
    }),
  )
}

function describeCheck(namespace: string, index: number) {
  const spec = { periodSeconds: 3_600, displayName: `Bare ${index}`, description: 'Made by the benchmark' }
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name: `bare-${index}`, namespace }, spec }
}

function describeSecret({ metadata: { namespace, name, uid } }: HeartbeatCheck) {
  const owner = { apiVersion: API_VERSION, kind: KIND, name, uid, controller: true, blockOwnerDeletion: false }
  const url = `http://127.0.0.1:8080/ping/${uid}`
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: namespace!, name: `${name}-heartbeat`, ownerReferences: [owner] },
    data: { HEARTBEAT_URL: Buffer.from(url).toString('base64') },
  }
}

/** As large as the first one of a check is. */
function describeStatus({ metadata: { name, uid } }: HeartbeatCheck) {
  const published = { kind: 'Secret', name: `${name}-heartbeat` }
  const where = `the ping URL is in Secret ${published.name}`
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'Synced', message: `the service holds this specification; ${where}` },
    { type: 'Published', status: 'True', reason: 'Published', message: where },
    {
      type: 'Up',
      status: 'Unknown',
      reason: 'New',
      message: `nothing to judge yet: no completion since it was made or resumed; it counts as missed at ${NOW}`,
    },
  ].map((condition) => ({ ...condition, lastTransitionTime: NOW, observedGeneration: 1 }))
  return {
    observedGeneration: 1,
    checkId: uid,
    slug: name,
    state: 'new',
    stateTime: NOW,
    reason: 'New',
    periodSeconds: 3_600,
    cadence: 'every 1h',
    graceSeconds: 360,
    published,
    conditions,
  }
}
