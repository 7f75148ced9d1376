/** Which Lease keeps `npm start` from a cluster, and what it says then. */

import { beforeEach, describe, expect, it } from 'vitest'
import { findOther, type LookOptions } from '../../../../src/operator/ownership/installation.ts'
import { startFakeApiServer } from '../../../support/fake-api-server.ts'
import { clientOf } from '../../../support/operator.ts'
import { useEach } from '../../../support/use.ts'

const LEASES = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease' }
const OURS = '11111111-1111-4111-8111-111111111111'
const OTHER = '22222222-2222-4222-8222-222222222222'

const server = useEach(() => startFakeApiServer({ types: [LEASES] }))
const client = useEach(() => clientOf(server.connection, () => 0))

function putLease(namespace: string, owner: string | null, holderIdentity = '', name = 'heartbeat-operator'): void {
  const annotations = owner === null ? {} : { 'heartbeat-operator.io/installation': owner }
  const spec = { holderIdentity, leaseDurationSeconds: 15, renewTime: '2020-01-01T00:00:00.000000Z' }
  server.collection(LEASES).create({ metadata: { namespace, name, annotations }, spec })
}

function others(changes: Partial<LookOptions> = {}, takeOver: string | null = null) {
  const options = { client, leaseNamespace: 'here', namespaces: null, ...changes }
  return () => findOther(options, { installation: OURS, takeOver }, AbortSignal.timeout(10_000))
}

describe('another installation is there', () => {
  it.each([
    ['that holds its Lease', 'pod-1'],
    ['that is stopped', ''],
  ])('by its Lease in another namespace: one %s', async (_, holder) => {
    putLease('monitoring', OTHER, holder)
    const reason = await others()()
    expect(reason).toContain(`the Lease monitoring/heartbeat-operator belongs to the installation ${OTHER}: `)
    expect(reason).toContain('kubectl delete lease -n monitoring heartbeat-operator')
    expect(reason).toContain(`TAKE_OVER=${OTHER}`)
    expect(reason).toContain('KUBERNETES=required')
  })

  it('by the Lease that we would take, whether it is held, expired or given back, until it is deleted', async () => {
    putLease('here', OTHER, 'pod-1')
    const look = others()
    const belongs = `the Lease here/heartbeat-operator belongs to the installation ${OTHER}: `
    expect(await look()).toContain(belongs)
    // Its renewTime is long ago, and stays.
    expect(await look()).toContain(belongs)
    server.collection(LEASES).mergePatch('here/heartbeat-operator', { spec: { holderIdentity: '' } })
    const reason = await look()
    expect(reason).toContain(belongs)
    expect(reason).toContain('kubectl delete lease -n here heartbeat-operator')
    expect(reason).toContain(`TAKE_OVER=${OTHER}`)
    expect(reason).toContain('KUBERNETES=required')
    server.collection(LEASES).delete('here/heartbeat-operator')
    expect(await look()).toBeNull()
  })
})

describe('no other installation is there', () => {
  it.each([
    ['without any Lease', () => {}],
    ['with Leases of ours', () => ['here', 'monitoring'].forEach((place) => void putLease(place, OURS, 'pod-1'))],
    ['with Leases of other programs', () => putLease('monitoring', OTHER, 'pod-1', 'other-operator')],
    ['with a Lease that names no installation', () => putLease('here', null, 'pod-1')],
  ])('%s', async (_, put) => {
    put()
    expect(await others()()).toBeNull()
  })

  it('when TAKE_OVER names it', async () => {
    putLease('monitoring', OTHER, 'pod-1')
    expect(await others({}, OTHER)()).toBeNull()
  })
})

describe('without the right to list Leases', () => {
  const forbidden = { status: 403, reason: 'Forbidden', message: 'leases is forbidden' }
  beforeEach(() => {
    server.disturb(({ isList }) => isList, forbidden, 1_000)
  })

  it.each(['here', 'heartbeat-operator', 'shop'])('one in %s is found by its name', async (namespace) => {
    putLease(namespace, OTHER, 'pod-1')
    expect(await others({ namespaces: ['shop'] })()).toContain(`the Lease ${namespace}/heartbeat-operator belongs to`)
  })

  it('one that may not be read is none', async () => {
    putLease('heartbeat-operator', OTHER, 'pod-1')
    server.disturb(({ path }) => path.includes('/leases/'), forbidden, 1_000)
    expect(await others()()).toBeNull()
  })

  it('asks for twenty at most', async () => {
    const namespaces = Array.from({ length: 100 }, (_, index) => `team-${index}`)
    expect(await others({ namespaces })()).toBeNull()
    expect(server.requests.filter(({ path }) => path.includes('/leases/'))).toHaveLength(20)
  })
})

it('throws while the API server does not respond', async () => {
  server.disturb(() => true, { status: 403, reason: 'Forbidden' }, 1)
  server.disturb(({ path }) => path.includes('/leases/'), 'reset', 1_000)
  await expect(others()()).rejects.toThrow()
})
