import { describe, expect, it } from 'vitest'
import { type ApiError, isNamespaceGoing } from '../../../../src/kubernetes/errors.ts'
import type { OwnerReference } from '../../../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createPublisher, type PublisherOptions } from '../../../../src/operator/publish/publish.ts'
import { Stalled } from '../../../../src/operator/status/stalled.ts'
import { aHeartbeatCheck, anApiError } from '../../../support/builders.ts'

const check = aHeartbeatCheck({ metadata: { uid: 'u2' } })
const target = { kind: 'Secret', name: 'nightly-heartbeat', key: 'HEARTBEAT_URL', labels: {}, annotations: {} } as const
const owner = (changes: Partial<OwnerReference>): OwnerReference => ({
  apiVersion: 'heartbeat-operator.io/v1',
  kind: 'HeartbeatCheck',
  name: 'nightly',
  uid: 'u1',
  controller: true,
  ...changes,
})

interface Applied {
  readonly metadata: { readonly uid?: string; readonly resourceVersion?: string }
}

const PUBLIC_ID = '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10'
const OURS = { ...check, status: { installation: 'i1' } }

/** Resolves with what a reconcile finds, and what the cache learned. */
async function publishBy(client: object) {
  const results: string[] = []
  const put: HeartbeatCheck[] = []
  const options = {
    client,
    cache: { put: (object: HeartbeatCheck) => put.push(object) },
    claims: { installation: 'i1' },
    pingUrl: () => 'http://ping',
    onPublish: (result: string) => results.push(result),
  } as unknown as PublisherOptions
  const publish = createPublisher(options, () => {})
  const result = await publish({ object: check, target, check: { publicId: PUBLIC_ID }, isNew: false }).catch(
    (error) => {
      if (error instanceof Stalled) return { reason: error.reason, message: error.message }
      throw Object.assign(error, { put })
    },
  )
  return { result, results, put }
}

/** A cluster that holds one Secret, and the HeartbeatCheck `current`; the real ones are in test/cluster/operator. */
async function publishInto(ownerReferences: readonly OwnerReference[], answer?: ApiError, current: object = OURS) {
  const applied: Applied[] = []
  const metadata = { name: target.name, namespace: 'shop', uid: 's1', resourceVersion: '5', ownerReferences }
  const published = await publishBy({
    create: () => Promise.reject(refusal(409, 'AlreadyExists')),
    get: ({ plural }: { plural: string }) => Promise.resolve(plural === 'secrets' ? { metadata } : current),
    apply: (_: unknown, object: Applied) => {
      applied.push(object)
      const written = { metadata: { ...metadata, resourceVersion: '6' } }
      return answer === undefined ? Promise.resolve(written) : Promise.reject(answer)
    },
  }).catch((error) => {
    throw Object.assign(error, { applied })
  })
  return { ...published, applied }
}

const refusal = (status: number, reason: string, causes: { reason: string }[] = []) =>
  anApiError(status, { reason, details: { causes } })

describe('a Secret that another HeartbeatCheck controls', () => {
  it('is taken over from one of the same name, which is gone: looked at again, since its collector may come', async () => {
    const { result, results, applied } = await publishInto([owner({})])
    expect({ result, results }).toEqual({ result: { isFromPredecessor: true }, results: ['written'] })
    // Only this very object, as it was read: never one that came in its place, and never what another client has written since.
    expect(applied).toMatchObject([{ metadata: { uid: 's1', resourceVersion: '5' } }])
  })

  it('is taken over whatever version of the kind its reference names', async () => {
    const { result } = await publishInto([owner({ apiVersion: 'heartbeat-operator.io/v2' })])
    expect(result).toMatchObject({ isFromPredecessor: true })
  })

  it.each([
    ['another name', { name: 'weekly' }],
    ['another kind', { kind: 'CronJob' }],
    ['another group', { apiVersion: 'example.com/v1' }],
  ])('is not touched when it has %s', async (_, changes) => {
    const { result, applied } = await publishInto([owner(changes)])
    expect(result).toMatchObject({ reason: 'TargetNotOwned' })
    expect(applied).toEqual([])
  })
})

describe('another URL in a Secret of the resource', () => {
  it.each([
    ['another installation has the resource', { ...check, status: { installation: 'i2' } }, 1],
    ['no installation has reported the resource yet', check, 0],
  ])('is not replaced while %s, and the cache learns who has it', async (_, current, learned) => {
    const rejected = publishInto([owner({ uid: 'u2' })], undefined, current)
    await expect(rejected).rejects.toMatchObject({ applied: [], put: { length: learned } })
  })

  it('is replaced when the resource is ours', async () => {
    const { results, applied } = await publishInto([owner({ uid: 'u2' })])
    expect({ results, count: applied.length }).toEqual({ results: ['written'], count: 1 })
  })
})

describe('a refused write', () => {
  it.each([
    [403, 'Forbidden'],
    [422, 'Invalid'],
  ])('of status %i is for a person to set right', async (status, reason) => {
    const { result, results } = await publishInto([owner({ uid: 'u2' })], refusal(status, reason))
    expect({ result, results }).toMatchObject({ result: { reason: 'PublishRefused' }, results: ['refused'] })
  })

  it('says so too when not even reading is allowed', async () => {
    const { result } = await publishBy({
      create: () => Promise.reject(refusal(409, 'AlreadyExists')),
      get: () => Promise.reject(refusal(403, 'Forbidden')),
    })
    expect(result).toEqual({ reason: 'PublishRefused', message: 'Secret nightly-heartbeat cannot be written: no' })
  })

  it.each([
    ['another writer was faster', refusal(409, 'Conflict')],
    ['the server is away', refusal(503, 'ServiceUnavailable')],
    ['the namespace is going', refusal(403, 'Forbidden', [{ reason: 'NamespaceTerminating' }])],
  ])('passes by itself when %s', async (_, error) => {
    await expect(publishInto([owner({ uid: 'u2' })], error)).rejects.toBe(error)
  })

  it('a namespace that is being deleted is not a missing right', () => {
    expect(isNamespaceGoing(refusal(403, 'Forbidden', [{ reason: 'NamespaceTerminating' }]))).toBe(true)
    expect(isNamespaceGoing(refusal(403, 'Forbidden'))).toBe(false)
    expect(isNamespaceGoing(new Error('being terminated'))).toBe(false)
  })
})
