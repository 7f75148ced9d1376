import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../../src/kubernetes/client.ts'
import { toTime } from '../../../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import type { Service } from '../../../../src/operator/service.ts'
import { createReporter } from '../../../../src/operator/status/report.ts'
import type { CheckRecord } from '../../../../src/store/checks/checks.ts'
import { aHeartbeatCheck, anApiError } from '../../../support/builders.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')

const check = aHeartbeatCheck()
const synced = { sync: { kind: 'synced' }, published: { kind: 'Secret', name: 'nightly-heartbeat' } } as const

/** An API server whose first answer to a status is a refusal; what it was given, and what the cache learned. */
function createRefusing(status: number, current: HeartbeatCheck) {
  const replaced: { readonly body: HeartbeatCheck; readonly subresource: string | undefined }[] = []
  const put: HeartbeatCheck[] = []
  const client: Pick<KubernetesClient, 'get' | 'mergePatch' | 'replace'> = {
    replace: (_type, body, options) => {
      replaced.push({ body: body as unknown as HeartbeatCheck, subresource: options?.subresource })
      return replaced.length === 1 ? Promise.reject(anApiError(status)) : Promise.resolve(body)
    },
    get: <T>() => Promise.resolve(current as T),
    mergePatch: () => Promise.reject(new Error('a patch')),
  }
  const reporter = createReporter({
    client,
    cache: { put: (object) => put.push(object) },
    service: { now: () => NOW } as Service,
    recorder: { record: () => {} },
    claims: { installation: 'i1' },
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

  it('F1: the status of another installation is not overwritten, and the cache learns of it', async () => {
    const taken = { ...check, metadata: { ...check.metadata, resourceVersion: '9' }, status: { installation: 'i2' } }
    const { reporter, replaced, put } = createRefusing(409, taken)
    await expect(reporter.report(check, synced, null)).rejects.toThrow('no')
    expect({ count: replaced.length, put }).toEqual({ count: 1, put: [taken] })
  })

  it('the status of the previous owner is replaced in a takeover', async () => {
    const seen = { ...check, status: { installation: 'i2' } }
    const current = { ...seen, metadata: { ...check.metadata, resourceVersion: '9' } }
    const { reporter, put } = createRefusing(409, current)
    await reporter.report(seen, synced, null)
    expect(put).toMatchObject([{ status: { installation: 'i1' } }])
  })

  it('the status is not retried after any other rejection', async () => {
    const { reporter, replaced, put } = createRefusing(422, check)
    await expect(reporter.report(check, synced, null)).rejects.toThrow('no')
    expect({ count: replaced.length, put }).toEqual({ count: 1, put: [] })
  })
})

describe('F7: the time of a ping alone', () => {
  /** What is written of a check that was pinged, when it has a turn or not. */
  async function writtenTimes(hasTurn: boolean, status: 'up' | 'paused' = 'up'): Promise<(string | undefined)[]> {
    const written: (string | undefined)[] = []
    const client = {
      replace: (_type: object, body: HeartbeatCheck) => {
        written.push(body.status?.lastPingTime)
        return Promise.resolve(body)
      },
    } as unknown as KubernetesClient
    let current = check
    const reporter = createReporter({
      client,
      cache: {
        put(object) {
          current = object
        },
      },
      service: { now: () => NOW, listUnreportedFlips: async () => [] as const } as unknown as Service,
      recorder: { record: () => {} },
      claims: { installation: 'i1' },
    })
    const state = { status: 'up', since: NOW - 500_000, expectedAt: null, dueAt: null }
    const record = (changes: object) =>
      ({
        id: 'i',
        slug: 's',
        key: 1,
        spec: { periodSeconds: 60 },
        state: { ...state, ...changes },
      }) as unknown as CheckRecord
    await reporter.report(check, synced, record({ lastPingAt: NOW - 200_000 }), false)
    await reporter.report(current, synced, record({ lastPingAt: NOW - 100_000, status }), hasTurn)
    return written
  }
  const [first, second] = [200_000, 100_000].map((ms) => toTime(NOW - ms))

  it('is written when the resource has a turn', async () => {
    expect(await writtenTimes(true)).toEqual([first, second])
  })

  it('is not written without a turn', async () => {
    expect(await writtenTimes(false)).toEqual([first])
  })

  it('needs no turn beside another change', async () => {
    expect(await writtenTimes(false, 'paused')).toEqual([first, second])
  })
})
