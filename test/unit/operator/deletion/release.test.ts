/** How finalizers are taken off for good: whom it waits for, what it finds, and when it gives up. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../../src/kubernetes/client.ts'
import {
  LEADER_PATIENCE_MS,
  ReleaseError,
  type ReleaseOptions,
  releaseFinalizers,
} from '../../../../src/operator/deletion/release.ts'
import { anApiError } from '../../../support/builders.ts'
import { type FakeObject, startFakeApiServer } from '../../../support/fake-api-server.ts'
import { clientOf } from '../../../support/operator.ts'
import { useEach } from '../../../support/use.ts'

const CHECKS = { group: 'heartbeat-operator.io', version: 'v1', plural: 'heartbeatchecks', kind: 'HeartbeatCheck' }
const CHANNELS = { ...CHECKS, plural: 'heartbeatchannels', kind: 'HeartbeatChannel' }
const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' }
const OURS = 'heartbeat-operator.io/cleanup'
const LEASE = { namespace: 'monitoring', name: 'heartbeat-operator' }
const LEASE_KEY = 'monitoring/heartbeat-operator'

const server = useEach(() => startFakeApiServer({ types: [CHECKS, LEASES] }))
const client = useEach(() => clientOf(server.connection, () => 0))
let said: string[]
beforeEach(() => {
  said = []
})

/** Waits take no time, and are reported: `onSleep` gets how much has gone by. */
function release(
  changes: Partial<ReleaseOptions> = {},
  onSleep: (elapsedMs: number) => void = () => {},
): Promise<void> {
  let elapsedMs = 0
  return releaseFinalizers({
    client,
    namespaces: null,
    leaseNamespace: LEASE.namespace,
    clock: {
      now: () => elapsedMs,
      async sleep(ms) {
        elapsedMs += ms
        onSleep(elapsedMs)
      },
    },
    say: (line) => said.push(line),
    ...changes,
  })
}

function put(key: string, finalizers?: readonly string[]): void {
  const [namespace, name] = key.split('/')
  const metadata = { namespace, name, ...(finalizers === undefined ? {} : { finalizers }) } as FakeObject['metadata']
  server.collection(CHECKS).create({ metadata, spec: { periodSeconds: 3_600 } })
}
const finalizersOf = (key: string) => server.collection(CHECKS).get(key).metadata.finalizers ?? []
const statusOf = (key: string) => (server.collection(CHECKS).get(key) as { status?: object }).status
const AT = '2026-01-01T00:00:00Z'
const patches = () => server.requests.filter(({ method }) => method === 'PATCH')

const holdLease = (spec: object) => server.collection(LEASES).create({ metadata: LEASE, spec })
const renewLease = (renewTime: number) => server.collection(LEASES).mergePatch(LEASE_KEY, { spec: { renewTime } })
const freeLease = () => server.collection(LEASES).mergePatch(LEASE_KEY, { spec: { holderIdentity: '' } })

describe('the finalizer', () => {
  it('is taken off all HeartbeatChecks, however many pages they fill, and those of others stay', async () => {
    for (let number = 0; number < 450; number += 1) put(`shop/check-${number}`, ['example.com/first', OURS])
    put('bank/untouched')
    await release()
    for (let number = 0; number < 450; number += 1)
      expect(finalizersOf(`shop/check-${number}`)).toEqual(['example.com/first'])
    expect(patches()).toHaveLength(450)
    expect(said).toEqual([
      'the finalizer heartbeat-operator.io/cleanup is off 450 HeartbeatChecks; what they declare stays in the database, and silences go on',
    ])
  })

  it('is taken off HeartbeatChannels too', async () => {
    server.add(CHANNELS)
    put('shop/check', [OURS])
    const metadata = { namespace: 'shop', name: 'ops', finalizers: [OURS] } as unknown as FakeObject['metadata']
    const channels = server.collection(CHANNELS)
    const ready = { type: 'Ready', status: 'True', reason: 'Synced', message: 'y', lastTransitionTime: AT }
    channels.create({ metadata, spec: { ntfy: { topic: 'ops' } }, status: { conditions: [ready] } } as never)
    await release()
    expect(channels.get('shop/ops').metadata.finalizers ?? []).toEqual([])
    const { status } = channels.get('shop/ops') as unknown as { status: { conditions: object[] } }
    expect(status.conditions).toEqual([
      expect.objectContaining({
        status: 'Unknown',
        reason: 'Uninstalled',
        message: expect.stringMatching(/or delete this HeartbeatChannel$/),
      }),
    ])
    expect(said).toEqual([
      'the finalizer heartbeat-operator.io/cleanup is off 1 HeartbeatCheck and 1 HeartbeatChannel; what they declare stays in the database, and silences go on',
    ])
  })

  it('leaves a status that says that nothing keeps it true, of those that have one', async () => {
    const up = { type: 'Up', status: 'False', reason: 'JobFailed', message: 'x', lastTransitionTime: AT }
    const ready = { type: 'Ready', status: 'True', reason: 'Synced', message: 'y', lastTransitionTime: AT }
    put('shop/a', [OURS])
    put('shop/b', [OURS])
    server.collection(CHECKS).mergePatch('shop/b', { status: { state: 'down', conditions: [ready, up] } })
    await release()
    expect(statusOf('shop/a')).toBeUndefined()
    expect(statusOf('shop/b')).toEqual({
      state: 'down',
      conditions: [
        {
          type: 'Ready',
          status: 'Unknown',
          reason: 'Uninstalled',
          message: expect.stringContaining('Install it again, or delete this HeartbeatCheck'),
          lastTransitionTime: '1970-01-01T00:00:00Z',
        },
        up,
      ],
    })
    expect(patches().map(({ path }) => path.split('/').at(-1))).toEqual(['a', 'b', 'status'])
  })

  it('is taken off without the right to write the status, and says nothing of it', async () => {
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Synced', message: 'y', lastTransitionTime: AT }]
    for (const key of ['shop/a', 'shop/b', 'shop/c']) {
      put(key, [OURS])
      server.collection(CHECKS).mergePatch(key, { status: { conditions } })
    }
    let asked = 0
    const mergePatch: KubernetesClient['mergePatch'] = async (type, name, patch, writing) => {
      if (writing?.subresource !== 'status') return client.mergePatch(type, name, patch, writing)
      asked += 1
      throw anApiError(403)
    }
    await release({ client: { ...client, mergePatch } })
    for (const key of ['shop/a', 'shop/b', 'shop/c']) {
      expect(finalizersOf(key)).toEqual([])
      expect(statusOf(key)).toEqual({ conditions })
    }
    // Those of one page are written at once.
    expect(asked).toBeLessThanOrEqual(3)
  })

  it('is taken off in each namespace that may be read, and the others are named', async () => {
    for (const key of ['gone/a', 'shop/b']) put(key, [OURS])
    server.disturb(
      ({ path }) => path.includes('/namespaces/gone/'),
      { status: 403, reason: 'Forbidden', message: 'no right in gone' },
      Number.POSITIVE_INFINITY,
    )
    await expect(release({ namespaces: ['gone', 'shop'] })).rejects.toThrow(
      'could not be taken off those of the namespace gone (no right in gone)',
    )
    expect([finalizersOf('gone/a'), finalizersOf('shop/b')]).toEqual([[OURS], []])
  })

  it('is taken off in the namespaces that are watched, and nowhere else', async () => {
    for (const key of ['shop/a', 'bank/a', 'other/a']) put(key, [OURS])
    await release({ namespaces: ['shop', 'bank'] })
    expect(['shop/a', 'bank/a', 'other/a'].map(finalizersOf)).toEqual([[], [], [OURS]])
    expect(server.requests.filter(({ path }) => path.endsWith('v1/heartbeatchecks'))).toEqual([])
  })

  it('says that there is nothing to do without a finalizer, and in a cluster that does not serve HeartbeatChecks', async () => {
    put('shop/a')
    await release()
    server.remove(CHECKS)
    await release()
    expect(said).toEqual([
      'no resource holds the finalizer heartbeat-operator.io/cleanup: nothing to do',
      'this cluster knows none of our resources: nothing to do',
    ])
  })

  it('removes the finalizer from a resource that was changed since the list, and skips a deleted one', async () => {
    for (const key of ['shop/changed', 'shop/gone']) put(key, [OURS])
    const isOf = (name: string) => (request: { method: string; path: string }) =>
      request.method === 'PATCH' && request.path.endsWith(name)
    server.disturb(isOf('changed'), { status: 409, reason: 'Conflict' })
    server.disturb(isOf('gone'), { status: 404, reason: 'NotFound' })
    await release()
    expect(['shop/changed', 'shop/gone'].map(finalizersOf)).toEqual([[], []])
    expect(said).toEqual([expect.stringContaining('is off 2 HeartbeatChecks')])
  })

  it('does not overwrite what changed since the list', async () => {
    put('shop/a', [OURS])
    await release()
    expect(JSON.parse(patches()[0]!.body)).toEqual({
      metadata: { finalizers: [], resourceVersion: expect.stringMatching(/^\d+$/) },
    })
  })

  it('starts the list again when it expires between two pages', async () => {
    for (let number = 0; number < 200; number += 1) put(`shop/check-${number}`)
    put('shop/last', [OURS])
    server.disturb(({ query }) => query.has('continue'), { status: 410, reason: 'Expired' })
    await release()
    expect(finalizersOf('shop/last')).toEqual([])
    expect(said).toEqual([expect.stringContaining('is off 1 HeartbeatCheck;')])
  })

  it('names a resource whose finalizer cannot be removed, and why, after it has handled the others', async () => {
    for (const name of ['a', 'b', 'c']) put(`shop/${name}`, [OURS])
    const isB = ({ method, path }: { method: string; path: string }) => method === 'PATCH' && path.endsWith('/b')
    server.disturb(isB, { status: 422, reason: 'Invalid', message: 'spec.periodSeconds: Invalid value' }, 100)
    const error = await release().catch((reason) => reason)
    expect(error).toBeInstanceOf(ReleaseError)
    expect(error.exitStatus).toBe(1)
    expect(error.message).toMatch(/could not be taken off shop\/b \(spec\.periodSeconds: Invalid value\): fix that/)
    expect(['shop/a', 'shop/b', 'shop/c'].map(finalizersOf)).toEqual([[], [OURS], []])
  })

  it('retries after a write without a response', async () => {
    put('shop/a', [OURS])
    server.disturb(({ method }) => method === 'PATCH', 'reset', 3)
    await release()
    expect(finalizersOf('shop/a')).toEqual([])
  })

  it('gives up on a finalizer that another controller adds again each time, and says so', async () => {
    put('shop/a', [OURS])
    const putBack = () => server.collection(CHECKS).mergePatch('shop/a', { metadata: { finalizers: [OURS] } })
    await expect(release({}, putBack)).rejects.toThrow(/comes back .* another controller runs, stop it/)
    expect(patches().length).toBeLessThan(20)
  })

  it('names a missing right', async () => {
    put('shop/a', [OURS])
    const message = 'heartbeatchecks is forbidden'
    server.disturb(({ method }) => method === 'PATCH', { status: 403, reason: 'Forbidden', message })
    await expect(release()).rejects.toThrow(
      'a right is missing (get of the Lease heartbeat-operator; list and patch of HeartbeatChecks, HeartbeatChannels, and HeartbeatSilences): heartbeatchecks is forbidden',
    )
    expect(patches()).toHaveLength(1)
  })

  it('says that it was stopped before the end', async () => {
    put('shop/a', [OURS])
    const stopping = new AbortController()
    holdLease({ holderIdentity: 'pod-1', leaseDurationSeconds: 15 })
    const stopped = release({ signal: stopping.signal }, () => stopping.abort())
    await expect(stopped).rejects.toThrow('stopped before the end: run this again')
    expect(patches()).toEqual([])
  })
})

describe('resources of another installation', () => {
  const [OWN, OTHER] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']

  function putOf(installation: string, key: string): void {
    put(key, [OURS])
    server.collection(CHECKS).mergePatch(key, { status: { installation } }, { manager: 'test', subresource: 'status' })
  }
  const leaveLease = (installation: string) =>
    server.collection(LEASES).create({
      metadata: { ...LEASE, annotations: { 'heartbeat-operator.io/installation': installation } },
      spec: { holderIdentity: '' },
    })
  beforeEach(() => {
    putOf(OWN, 'shop/ours')
    putOf(OTHER, 'shop/theirs')
    put('shop/unknown', [OURS])
  })
  const left = () => ['shop/ours', 'shop/theirs', 'shop/unknown'].filter((key) => finalizersOf(key).length > 0)

  it('keep the finalizer, which is said with the way out', async () => {
    leaveLease(OWN)
    await release()
    expect(left()).toEqual(['shop/theirs'])
    expect(said).toEqual([
      `resources keep the finalizer ${OURS}: 1 of the installation ${OTHER}; this is the installation ${OWN}: if the other one no longer runs, run this again with TAKE_OVER=<that id>`,
      expect.stringContaining('is off 2 HeartbeatChecks'),
    ])
    said.length = 0
    await release()
    expect(said).toEqual([expect.stringContaining('resources keep the finalizer')])
  })

  it('lose it when TAKE_OVER names that one', async () => {
    leaveLease(OWN)
    await release({ takeOver: OTHER })
    expect(left()).toEqual([])
    expect(said).toEqual([expect.stringContaining('is off 3 HeartbeatChecks')])
  })

  it('are all that have an owner while no Lease says which installation this is: then it fails, and says so', async () => {
    await expect(release()).rejects.toThrow(
      `resources keep the finalizer ${OURS}: 1 of the installation ${OWN}, 1 of the installation ${OTHER}; no Lease here says which installation this is`,
    )
    expect(left()).toEqual(['shop/ours', 'shop/theirs'])
    await expect(release({ takeOver: OWN })).rejects.toThrow(`1 of the installation ${OTHER};`)
    expect(left()).toEqual(['shop/theirs'])
    await release({ takeOver: OTHER })
    expect(left()).toEqual([])
  })
})

describe('a leader', () => {
  beforeEach(() => put('shop/a', [OURS]))

  it('waits for a leader that releases its lease', async () => {
    holdLease({ holderIdentity: 'pod-1', leaseDurationSeconds: 15, renewTime: 0 })
    let freedAt = 0
    await release({}, (elapsedMs) => {
      if (freedAt > 0) return
      expect(patches()).toEqual([])
      if (elapsedMs < LEADER_PATIENCE_MS - 1_000) renewLease(elapsedMs)
      else {
        freeLease()
        freedAt = elapsedMs
      }
    })
    expect(freedAt).toBe(LEADER_PATIENCE_MS - 1_000)
    expect(finalizersOf('shop/a')).toEqual([])
    expect(said[0]).toBe('waiting for pod-1 to give back the Lease monitoring/heartbeat-operator ...')
  })

  it('gives up, and removes nothing, while a leader goes on', async () => {
    holdLease({ holderIdentity: 'pod-1', leaseDurationSeconds: 15, renewTime: 0 })
    await expect(release({}, renewLease)).rejects.toThrow(
      /^pod-1 still leads by the Lease monitoring\/heartbeat-operator, .*: stop the controllers, then run this again$/,
    )
    expect(patches()).toEqual([])
  })

  it.each([
    [{ leaseDurationSeconds: 15 }, 15_000],
    [{ leaseDurationSeconds: 30 }, 30_000],
    [{}, 15_000],
  ])('that was killed holds the lease until it lapses: %j', async (spec, lapsesAtMs) => {
    holdLease({ holderIdentity: 'pod-1', ...spec })
    let waitedMs = 0
    await release({}, (elapsedMs) => {
      if (patches().length === 0) waitedMs = elapsedMs
    })
    expect(waitedMs).toBe(lapsesAtMs)
    expect(finalizersOf('shop/a')).toEqual([])
  })

  it('is none when the Lease is free, or was never made', async () => {
    await release()
    holdLease({ holderIdentity: '', leaseDurationSeconds: 1 })
    await release()
    expect(said.filter((line) => line.startsWith('waiting'))).toEqual([])
  })
})
