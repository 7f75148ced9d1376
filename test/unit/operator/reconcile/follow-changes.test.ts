/** Which resources a poll follows. */

import { describe, expect, it } from 'vitest'
import { STATUSES } from '../../../../src/domain/check.ts'
import { ApiError } from '../../../../src/kubernetes/errors.ts'
import { toTime } from '../../../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createFollower } from '../../../../src/operator/reconcile/follow-changes.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import type { Context } from '../../../../src/store/context.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')

/** Their checks are in the database and have changed, or, with `isLost`, are not there. */
async function poll(installations: readonly string[], isLost: boolean): Promise<string[]> {
  const objects = new Map(
    installations.map((installation, index): [string, HeartbeatCheck] => [
      `shop/job-${index}`,
      {
        metadata: { namespace: 'shop', name: `job-${index}`, uid: `u${index}`, resourceVersion: '7' },
        spec: { periodSeconds: 60 },
        status: { installation, checkId: `c${index}`, state: 'up' },
      },
    ]),
  )
  // As the statement returns them: namespace, name, status (down), since, last ping, expected.
  const rows = [...objects.values()].map(({ metadata: { name } }) => ['shop', name, 2, NOW, null, null])
  const enqueued: string[] = []
  const context = { database: { queryColumns: async () => (isLost ? [] : rows) }, clock: { now: () => NOW } }
  const follower = createFollower({
    context: context as unknown as Context,
    client: {} as never,
    cluster: 'default',
    cache: { get: (key) => objects.get(key), keys: () => objects.keys(), isListed: () => true },
    isWatched: () => true,
    isForeign: ({ status }) => status?.installation === 'other',
    enqueue: (key) => enqueued.push(key),
    now: () => NOW,
    onOrphan: () => {},
  })
  await follower.poll()
  return enqueued
}

it('F1: a poll neither follows a resource of another installation nor counts its check as lost', async () => {
  expect(await poll(['ours', 'other'], false)).toEqual(['shop/job-0'])
  expect(await poll(['ours', 'other'], true)).toEqual(['shop/job-0'])
})

it.each([
  ['became late', 'up', NOW - 5_000, { shownAt: null, turnedAt: NOW - 5_000 }],
  ['is on time again', 'late', NOW + 60_000, { shownAt: null, turnedAt: NOW - 65_000 }],
  ['goes on', 'up', NOW + 60_000, { shownAt: NOW - 200_000 }],
])(
  'F7: a job that %s is offered a turn, with the time of what is to be shown',
  async (_, state, expectedAt, offered) => {
    const object: HeartbeatCheck = {
      metadata: { namespace: 'shop', name: 'job', uid: 'u', resourceVersion: '7' },
      spec: { periodSeconds: 60 },
      status: { checkId: 'c', state, stateTime: toTime(NOW - 900_000), lastPingTime: toTime(NOW - 200_000) },
    }
    const row = ['shop', 'job', STATUSES.indexOf('up'), NOW - 900_000, NOW - 65_000, expectedAt]
    const offers: unknown[] = []
    const follower = createFollower({
      context: { database: { queryColumns: async () => [row] }, clock: { now: () => NOW } } as unknown as Context,
      client: {} as never,
      cluster: 'default',
      cache: { get: () => object, keys: () => ['shop/job'], isListed: () => true },
      isWatched: () => true,
      isForeign: () => false,
      enqueue: (key) => expect.unreachable(key),
      pingTimes: { offer: (due) => offers.push(...due) },
      now: () => NOW,
      onOrphan: () => {},
    })
    await follower.poll()
    expect(offers).toEqual([{ key: 'shop/job', ...offered }])
  },
)

const SOURCE: Source = {
  metadata: { namespace: 'shop', name: 'backup', uid: 'u', resourceVersion: '1' },
  createdAt: 0,
  schedule: '0 2 * * *',
  timeZone: null,
  suspended: false,
  concurrencyPolicy: 'Allow',
  startingDeadlineSeconds: null,
  activeDeadlineSeconds: null,
  lastScheduleTime: null,
  lastSuccessfulTime: null,
  active: [],
}
const CRON_JOB = { apiGroup: 'batch', kind: 'CronJob', name: 'backup', uid: 'u', suspended: false, active: [] }
const SHOWN = { name: 'backup-1', outcome: 'Succeeded', completionTime: toTime(NOW - 90_000) }

it.each<[string, Partial<HeartbeatCheck['status'] & object>, [string, string], Partial<Source>, string[]]>([
  ['is as shown', {}, ['backup-1', 'Succeeded'], {}, []],
  ['started', {}, ['backup-2', 'Running'], {}, ['offered']],
  ['succeeded', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Succeeded'], {}, ['offered']],
  ['failed', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Failed'], {}, ['enqueued']],
  ['was deleted', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Deleted'], {}, ['enqueued']],
  ['is active', {}, ['backup-1', 'Succeeded'], { active: ['backup-2'] }, ['offered']],
])('a run that %s', async (_, status, [job, outcome], source, expected) => {
  const object: HeartbeatCheck = {
    metadata: { namespace: 'shop', name: 'job', uid: 'u', resourceVersion: '7' },
    spec: { sourceRef: { kind: 'CronJob', name: 'backup' } },
    status: { checkId: 'c', state: 'up', stateTime: toTime(NOW), source: CRON_JOB, lastRun: SHOWN, ...status },
  }
  const row = ['shop', 'job', STATUSES.indexOf('up'), NOW, null, NOW + 60_000, job, outcome]
  const did: string[] = []
  const follower = createFollower({
    context: { database: { queryColumns: async () => [row] }, clock: { now: () => NOW } } as unknown as Context,
    client: {} as never,
    cluster: 'default',
    cache: { get: () => object, keys: () => ['shop/job'], isListed: () => true },
    isWatched: () => true,
    isForeign: () => false,
    sources: {
      areaOf: () => 'default',
      getSource: () => ({ ...SOURCE, ...source }),
      runsOf: () => [],
      isListed: () => true,
      missingRight: () => null,
      missingReasonRights: () => [],
    },
    enqueue: () => did.push('enqueued'),
    pingTimes: { offer: (due) => did.push(...due.map(() => 'offered')) },
    now: () => NOW,
    onOrphan: () => {},
  })
  await follower.poll()
  expect(did).toEqual(expected)
})

it('a poll of many checks lets other work run in between, and ends with its signal', async () => {
  const count = 5_000
  const keys = Array.from({ length: count }, (_, index) => `shop/job-${index}`)
  const rows = keys.map((_, index) => ['shop', `job-${index}`, STATUSES.indexOf('down'), NOW, null, null])
  const status = { installation: 'ours', checkId: 'c', state: 'up' }
  const enqueued: string[] = []
  const offers: unknown[] = []
  const stopping = new AbortController()
  const follower = createFollower({
    context: { database: { queryColumns: async () => rows }, clock: { now: () => NOW } } as unknown as Context,
    client: {} as never,
    cluster: 'default',
    cache: {
      get: (key) => ({
        metadata: { namespace: 'shop', name: key.slice(5), uid: key, resourceVersion: '7' },
        spec: { periodSeconds: 60 },
        status,
      }),
      keys: () => keys,
      isListed: () => true,
    },
    isWatched: () => true,
    isForeign: () => false,
    enqueue: (key) => enqueued.push(key),
    pingTimes: { offer: (due) => offers.push(due) },
    now: () => NOW,
    onOrphan: () => {},
  })
  setImmediate(() => stopping.abort())
  await follower.poll(stopping.signal)
  expect(enqueued.length).toBeGreaterThan(0)
  expect(enqueued.length).toBeLessThan(count)
  // What was not compared must not end the turns that others have.
  expect(offers).toEqual([])
  await follower.poll()
  expect(new Set(enqueued).size).toBe(count)
})

describe('lost resources', () => {
  /** Rows of two namespaces, the first of which comes first; resolves with the reads and the removals of a poll. */
  async function collect(listed: readonly string[], exists: (namespace: string) => never) {
    const row = (namespace: string) => [namespace, 'lost', STATUSES.indexOf('up'), NOW, null, null]
    const asked: string[] = []
    const context = { database: { queryColumns: async () => ['bank', 'shop'].map(row) }, clock: { now: () => NOW } }
    const client = {
      async get(_: unknown, { namespace }: { namespace: string }) {
        asked.push(namespace)
        return exists(namespace)
      },
    }
    const follower = createFollower({
      context: context as unknown as Context,
      client: client as never,
      cluster: 'default',
      cache: { get: () => undefined, keys: () => [], isListed: (namespace) => listed.includes(namespace) },
      isWatched: () => true,
      isForeign: () => false,
      enqueue: (key) => expect.unreachable(key),
      now: () => NOW,
      orphanMs: 0,
      onOrphan: (resource) => expect.unreachable(resource.namespace),
    })
    await follower.poll()
    return asked
  }
  const answer = (status: number) => () => {
    throw new ApiError({ request: 'get', status, reason: 'R', message: 'no', details: null, retryAfterSeconds: null })
  }

  it('are looked for where the list is there, beside a namespace that has none', async () => {
    expect(await collect(['shop'], answer(404))).toEqual(['shop'])
    expect(await collect([], answer(404))).toEqual([])
  })

  it('are looked for beside one that may not be read', async () => {
    expect(await collect(['bank', 'shop'], answer(403))).toEqual(['bank', 'shop'])
  })
})
