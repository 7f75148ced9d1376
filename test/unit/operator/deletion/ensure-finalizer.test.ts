import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../../src/kubernetes/client.ts'
import { ApiError } from '../../../../src/kubernetes/errors.ts'
import { createFinalizers } from '../../../../src/operator/deletion/ensure-finalizer.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import type { Context } from '../../../../src/store/context.ts'

const KEY = 'shop/nightly'
const FINALIZER = 'heartbeat-operator.io/cleanup'

const check = (spec: object = {}, rest: Partial<HeartbeatCheck> = {}): HeartbeatCheck => ({
  metadata: { name: 'nightly', namespace: 'shop', uid: 'u1', resourceVersion: '7' },
  spec: { periodSeconds: 60, ...spec },
  ...rest,
})

/** `answer`: what the API server says of the resource. That of a retired check is in test/operator/postponed-finalizers.test.ts. */
function createHeld({ isBusy = true, answer = 'found' }: { isBusy?: boolean; answer?: 'found' | 'no such kind' } = {}) {
  const asked: string[] = []
  const noSuchKind = new ApiError({
    request: 'r',
    status: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: null,
    retryAfterSeconds: null,
  })
  const client = {
    get: () => {
      asked.push('get')
      return answer === 'found' ? Promise.resolve(check()) : Promise.reject(noSuchKind)
    },
    mergePatch: (_type: unknown, _name: unknown, patch: HeartbeatCheck) => {
      asked.push('finalizer')
      return Promise.resolve({ ...check(), metadata: { ...check().metadata, ...patch.metadata } })
    },
  } as unknown as KubernetesClient
  const context = new Proxy({} as Context, {
    get: () => {
      throw new Error('the database is not to be asked')
    },
  })
  const finalizers = createFinalizers({
    client,
    cache: { put: () => {} },
    context,
    cluster: 'default',
    isBusy: () => isBusy,
  })
  return { finalizers, asked }
}

describe('the finalizer of a new resource', () => {
  it('can wait while others wait', async () => {
    const { finalizers, asked } = createHeld()
    expect((await finalizers.ensureOrPostpone(KEY, check())).metadata.finalizers).toBeUndefined()
    expect(asked).toEqual([])
    expect(finalizers.isPostponed(KEY)).toBe(true)
  })

  it('is written once, whatever becomes of it: a rule of the cluster may take it off again', async () => {
    const { finalizers } = createHeld()
    await finalizers.ensure(KEY, await finalizers.ensureOrPostpone(KEY, check()))
    expect(finalizers.isPostponed(KEY)).toBe(false)
  })

  it('the finalizer is no longer postponed once it is there, also if another process added it', async () => {
    const { finalizers, asked } = createHeld()
    await finalizers.ensureOrPostpone(KEY, check())
    await finalizers.ensureOrPostpone(KEY, { ...check(), metadata: { ...check().metadata, finalizers: [FINALIZER] } })
    expect(finalizers.isPostponed(KEY)).toBe(false)
    expect(asked).toEqual([])
  })

  it.each([
    ['nobody else waits', { isBusy: false }, check()],
    ['its check is to outlive it', {}, check({ deletionPolicy: 'Retain' })],
    ['a pass over it went wrong before', {}, check({}, { status: { conditions: [] } })],
  ])('cannot when %s', async (_, circumstances, object) => {
    const { finalizers, asked } = createHeld(circumstances)
    expect((await finalizers.ensureOrPostpone(KEY, object)).metadata.finalizers).toEqual([FINALIZER])
    expect(asked).toEqual(['finalizer'])
  })
})

describe('a resource that is not in the cache any more', () => {
  it('keeps its check when the API server has it', async () => {
    const { finalizers } = createHeld()
    await finalizers.ensureOrPostpone(KEY, check())
    expect(await finalizers.retireIfGone(KEY)).toBe(false)
  })

  it('keeps its check when the API server does not know its kind', async () => {
    const { finalizers, asked } = createHeld({ answer: 'no such kind' })
    await finalizers.ensureOrPostpone(KEY, check())
    expect(await finalizers.retireIfGone(KEY)).toBe(false)
    expect(asked).toEqual(['get'])
    expect(finalizers.isPostponed(KEY)).toBe(true)
  })

  it('is not asked for when it had its finalizer', async () => {
    const { finalizers, asked } = createHeld()
    await finalizers.ensure(KEY, await finalizers.ensureOrPostpone(KEY, check()))
    expect(await finalizers.retireIfGone(KEY)).toBe(false)
    expect(asked).toEqual(['finalizer'])
  })
})
