import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../../src/kubernetes/client.ts'
import { ApiError, isNamespaceGoing } from '../../../../src/kubernetes/errors.ts'
import type { OwnerReference } from '../../../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { publishUrl } from '../../../../src/operator/publish/publish.ts'

const check: HeartbeatCheck = {
  metadata: { name: 'nightly', namespace: 'shop', uid: 'u2', resourceVersion: '1' },
  spec: { periodSeconds: 60 },
}
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

/** A cluster that holds one Secret; the real ones are in test/cluster/operator. */
async function publishInto(ownerReferences: readonly OwnerReference[], answer?: ApiError) {
  const applied: Applied[] = []
  const metadata = { name: target.name, namespace: 'shop', uid: 's1', resourceVersion: '5', ownerReferences }
  const client = {
    create: () => Promise.reject(refusal(409, 'AlreadyExists')),
    get: () => Promise.resolve({ metadata }),
    apply: (_: unknown, object: Applied) => {
      applied.push(object)
      const written = { metadata: { ...metadata, resourceVersion: '6' } }
      return answer === undefined ? Promise.resolve(written) : Promise.reject(answer)
    },
  } as unknown as KubernetesClient
  let appliedBefore: number | null = null
  const beforeSharing = async () => (appliedBefore = applied.length)
  return { result: await publishUrl(client, check, target, 'http://ping', beforeSharing), applied, appliedBefore }
}

const refusal = (status: number, reason: string, causes: { reason: string }[] = []) =>
  new ApiError({ request: 'r', status, reason, message: 'no', details: { causes }, retryAfterSeconds: null })

describe('a Secret that another HeartbeatCheck controls', () => {
  it('is taken over from one of the same name, which is gone: looked at again, since its collector may come', async () => {
    const { result, applied, appliedBefore } = await publishInto([owner({})])
    expect(result).toEqual({ kind: 'published', isChanged: true, isFromPredecessor: true })
    expect(appliedBefore).toBe(0)
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
    expect(result).toMatchObject({ kind: 'rejected', reason: 'TargetNotOwned' })
    expect(applied).toEqual([])
  })
})

describe('a refused write', () => {
  it.each([
    [403, 'Forbidden'],
    [422, 'Invalid'],
  ])('of status %i is for a person to set right', async (status, reason) => {
    const { result } = await publishInto([owner({ uid: 'u2' })], refusal(status, reason))
    expect(result).toMatchObject({ kind: 'rejected', reason: 'PublishRefused' })
  })

  it('says so too when not even reading is allowed', async () => {
    const client = {
      create: () => Promise.reject(refusal(409, 'AlreadyExists')),
      get: () => Promise.reject(refusal(403, 'Forbidden')),
    } as unknown as KubernetesClient
    const message = 'Secret nightly-heartbeat cannot be written: no'
    expect(await publishUrl(client, check, target, 'http://ping', async () => {})).toEqual({
      kind: 'rejected',
      reason: 'PublishRefused',
      message,
    })
  })

  it('the message hides the URL when an admission rule quotes it', async () => {
    const message = `denied: {"HEARTBEAT_URL":"${Buffer.from('http://ping').toString('base64')}"} is http://ping`
    const { result } = await publishInto(
      [owner({ uid: 'u2' })],
      new ApiError({ request: 'r', status: 403, reason: 'Forbidden', message, details: null, retryAfterSeconds: null }),
    )
    expect(result).toMatchObject({
      message: 'Secret nightly-heartbeat cannot be written: denied: {"HEARTBEAT_URL":"***"} is ***',
    })
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
