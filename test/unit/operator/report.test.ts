import { describe, expect, it } from 'vitest'
import { ApiError, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { createReporter } from '../../../src/operator/report.ts'
import type { Context } from '../../../src/store/context.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')

const check: HeartbeatCheck = {
  metadata: { name: 'nightly', namespace: 'shop', uid: 'u1', resourceVersion: '7', generation: 1 },
  spec: { periodSeconds: 60 },
}
const synced = { sync: { kind: 'synced' }, published: { kind: 'Secret', name: 'nightly-heartbeat' } } as const

/** An API server whose first answer to a status is a refusal; what it was given, and what the cache learned. */
function createRefusing(status: number, current: HeartbeatCheck) {
  const replaced: { readonly body: HeartbeatCheck; readonly subresource: string | undefined }[] = []
  const put: HeartbeatCheck[] = []
  const refusal = new ApiError({
    request: 'r',
    status,
    reason: 'no',
    message: 'no',
    details: null,
    retryAfterSeconds: null,
  })
  const client: Pick<KubernetesClient, 'get' | 'mergePatch' | 'replace'> = {
    replace: (_type, body, options) => {
      replaced.push({ body: body as unknown as HeartbeatCheck, subresource: options?.subresource })
      return replaced.length === 1 ? Promise.reject(refusal) : Promise.resolve(body)
    },
    get: <T>() => Promise.resolve(current as T),
    mergePatch: () => Promise.reject(new Error('a patch')),
  }
  const reporter = createReporter({
    client,
    cache: { put: (object) => put.push(object) },
    context: { clock: { now: () => NOW } } as Context,
    recorder: { record: () => {} },
  })
  return { reporter, replaced, put }
}

describe('a status', () => {
  it('replaces that of the resource as it is by now when that has changed since it was seen', async () => {
    const current = { ...check, metadata: { ...check.metadata, resourceVersion: '9', generation: 2 } }
    const { reporter, replaced, put } = createRefusing(409, current)
    await reporter.report(check, synced, null)
    expect(replaced.map(({ subresource }) => subresource)).toEqual(['status', 'status'])
    const [first, second] = replaced.map(({ body }) => body)
    expect(first).toMatchObject({ ...check, status: { observedGeneration: 1 } })
    expect(second).toEqual({ ...current, status: first!.status })
    expect(put).toEqual([second])
  })

  it('the status is not written to a new resource of the same name', async () => {
    const successor = { ...check, metadata: { ...check.metadata, uid: 'u2', resourceVersion: '9' } }
    const { reporter, replaced, put } = createRefusing(409, successor)
    await expect(reporter.report(check, synced, null)).rejects.toThrow('no')
    expect({ count: replaced.length, put }).toEqual({ count: 1, put: [] })
  })

  it('the status is not retried after any other rejection', async () => {
    const { reporter, replaced, put } = createRefusing(422, check)
    await expect(reporter.report(check, synced, null)).rejects.toThrow('no')
    expect({ count: replaced.length, put }).toEqual({ count: 1, put: [] })
  })
})
