import { describe, expect, it } from 'vitest'
import type { Parts } from '../../../src/checks/parts.ts'
import { ApiError } from '../../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { createReporter } from '../../../src/operator/report.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')

const check: HeartbeatCheck = {
  metadata: { name: 'nightly', namespace: 'shop', uid: 'u1', resourceVersion: '7', generation: 1 },
  spec: { periodSeconds: 60 },
}
const synced = { sync: { kind: 'synced' }, published: { kind: 'Secret', name: 'nightly-heartbeat' } } as const

/** An API server that refuses to replace; what it was asked for. */
function createRefusing(status: number) {
  const calls: { readonly verb: string; readonly body: HeartbeatCheck; readonly subresource: string | undefined }[] = []
  const put: HeartbeatCheck[] = []
  const refusal = new ApiError({
    request: 'r',
    status,
    reason: 'no',
    message: 'no',
    details: null,
    retryAfterSeconds: null,
  })
  const reporter = createReporter({
    client: {
      replace: (_type, body, options) => {
        calls.push({ verb: 'replace', body: body as unknown as HeartbeatCheck, subresource: options?.subresource })
        return Promise.reject(refusal)
      },
      mergePatch: <T>(_type: unknown, _name: unknown, body: object, options?: { subresource?: 'status' }) => {
        calls.push({ verb: 'patch', body: body as HeartbeatCheck, subresource: options?.subresource })
        return Promise.resolve({ ...check, ...body } as T)
      },
    },
    cache: { put: (object) => put.push(object) },
    parts: { clock: { now: () => NOW } } as Parts,
    recorder: { record: () => {} },
  })
  return { reporter, calls, put }
}

describe('a status that is replaced', () => {
  it('is patched when the resource has changed since it was seen', async () => {
    const { reporter, calls, put } = createRefusing(409)
    await reporter.report(check, synced, null)
    expect(calls.map(({ verb, subresource }) => ({ verb, subresource }))).toEqual([
      { verb: 'replace', subresource: 'status' },
      { verb: 'patch', subresource: 'status' },
    ])
    const [replaced, patched] = calls
    expect(replaced!.body).toMatchObject({ ...check, status: { observedGeneration: 1 } })
    expect(patched!.body).toEqual({ status: replaced!.body.status })
    expect(put.map(({ status }) => status)).toEqual([replaced!.body.status])
  })

  it('is not when the API server refuses it for anything else', async () => {
    const { reporter, calls, put } = createRefusing(422)
    await expect(reporter.report(check, synced, null)).rejects.toThrow('no')
    expect(calls.map(({ verb }) => verb)).toEqual(['replace'])
    expect(put).toEqual([])
  })
})
