/** Which resources a poll follows. */

import { describe, expect, it } from 'vitest'
import { STATUSES } from '../../../../src/domain/check.ts'
import { toTime } from '../../../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { type CheckPollOptions, createCheckPoll } from '../../../../src/operator/reconcile/poll-checks.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import type { DueStatus } from '../../../../src/operator/status/status-turns.ts'
import type { Context } from '../../../../src/store/context.ts'
import { aHeartbeatCheck, anApiError, aSource } from '../../../support/builders.ts'
import { serviceWith } from '../../../support/operator-service.ts'

const NOW = Date.parse('2026-01-02T03:04:05Z')

/** A poll of these rows, as the statement returns them: namespace, name, status, since, last ping, expected, and of the last run Job and outcome. */
function pollOf(rows: readonly unknown[][], options: Partial<CheckPollOptions>) {
  const did: string[] = []
  const due: DueStatus[] = []
  const poll = createCheckPoll({
    service: serviceWith({
      database: { queryColumns: async () => rows },
      clock: { now: () => NOW },
    } as unknown as Context),
    client: {} as never,
    cluster: 'default',
    cache: { get: () => undefined, keys: () => [], isListed: () => true },
    isWatched: () => true,
    isForeign: () => false,
    isFailing: () => false,
    enqueue: (key, priority, afterMs) =>
      did.push([key, priority, ...(afterMs === undefined ? [] : [afterMs])].join(' ')),
    turns: {
      begin(given) {
        due.push(...given)
        return []
      },
    },
    sources: null,
    now: () => NOW,
    onOrphan: (resource) => expect.unreachable(resource.name),
    ...options,
  })
  return { poll, did, due }
}

/** Their checks are in the database and have changed, or, with `isLost`, are not there. */
async function pollThese(installations: readonly string[], isLost: boolean): Promise<string[]> {
  const objects = new Map(
    installations.map((installation, index): [string, HeartbeatCheck] => [
      `shop/job-${index}`,
      aHeartbeatCheck({
        metadata: { name: `job-${index}`, uid: `u${index}` },
        status: { installation, checkId: `c${index}`, state: 'up' },
      }),
    ]),
  )
  const rows = [...objects.values()].map(({ metadata: { name } }) => ['shop', name, 2, NOW, null, null])
  const { poll, did } = pollOf(isLost ? [] : rows, {
    cache: { get: (key) => objects.get(key), keys: () => objects.keys(), isListed: () => true },
    isForeign: ({ status }) => status?.installation === 'other',
    isFailing: (key) => key === 'shop/job-2',
  })
  await poll()
  return did
}

it('F1: a poll neither follows a resource of another installation nor counts its check as lost', async () => {
  expect(await pollThese(['ours', 'other'], false)).toEqual(['shop/job-0 live'])
  expect(await pollThese(['ours', 'other'], true)).toEqual(['shop/job-0 live'])
})

it('a poll leaves a resource that fails to its back-off', async () => {
  expect(await pollThese(['ours', 'ours', 'ours'], false)).toEqual(['shop/job-0 live', 'shop/job-1 live'])
  expect(await pollThese(['ours', 'ours', 'ours'], true)).toEqual(['shop/job-0 live', 'shop/job-1 live'])
})

it.each([
  ['became late', 'up', NOW - 5_000, { isTurned: true, since: NOW - 5_000 }],
  ['is on time again', 'late', NOW + 60_000, { isTurned: true, since: NOW - 65_000 }],
  ['goes on', 'up', NOW + 60_000, { isTurned: false, since: NOW - 200_000 }],
])(
  'F7: a job that %s is offered a turn, with the time of what is to be shown',
  async (_, state, expectedAt, offered) => {
    const object = aHeartbeatCheck({
      metadata: { name: 'job' },
      spec: { periodSeconds: 60 },
      status: { checkId: 'c', state, stateTime: toTime(NOW - 900_000), lastPingTime: toTime(NOW - 200_000) },
    })
    const row = ['shop', 'job', STATUSES.indexOf('up'), NOW - 900_000, NOW - 65_000, expectedAt]
    const { poll, did, due } = pollOf([row], {
      cache: { get: () => object, keys: () => ['shop/job'], isListed: () => true },
    })
    await poll()
    expect(due).toEqual([{ key: 'shop/job', ...offered }])
    expect(did).toEqual([])
  },
)

it('a resource that gets a turn is reconciled in the background', async () => {
  const object = aHeartbeatCheck({
    metadata: { name: 'job' },
    status: { checkId: 'c', state: 'up', stateTime: toTime(NOW) },
  })
  const row = (name: string) => ['shop', name, STATUSES.indexOf('up'), NOW, NOW - 65_000, NOW + 60_000]
  const { poll, did } = pollOf([row('a'), row('b')], {
    cache: { get: () => object, keys: () => ['shop/a', 'shop/b'], isListed: () => true },
    turns: { begin: ([first]) => [first!.key] },
  })
  await poll()
  expect(did).toEqual(['shop/a background 0'])
})

const CRON_JOB = { apiGroup: 'batch', kind: 'CronJob', name: 'backup', uid: 'c1', suspended: false, active: [] }
const SHOWN = { name: 'backup-1', outcome: 'Succeeded', completionTime: toTime(NOW - 90_000) }

it.each<[string, Partial<HeartbeatCheck['status'] & object>, [string, string], Partial<Source>, string[]]>([
  ['is as shown', {}, ['backup-1', 'Succeeded'], {}, []],
  ['started', {}, ['backup-2', 'Running'], {}, ['offered']],
  ['succeeded', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Succeeded'], {}, ['offered']],
  ['failed', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Failed'], {}, ['enqueued']],
  ['was deleted', { lastRun: { ...SHOWN, outcome: 'Running' } }, ['backup-1', 'Deleted'], {}, ['enqueued']],
  ['is active', {}, ['backup-1', 'Succeeded'], { active: ['backup-2'] }, ['offered']],
])('a run that %s', async (_, status, [job, outcome], source, expected) => {
  const object = aHeartbeatCheck({
    metadata: { name: 'job' },
    spec: { sourceRef: { kind: 'CronJob', name: 'backup' } },
    status: { checkId: 'c', state: 'up', stateTime: toTime(NOW), source: CRON_JOB, lastRun: SHOWN, ...status },
  })
  const row = ['shop', 'job', STATUSES.indexOf('up'), NOW, null, NOW + 60_000, job, outcome]
  const { poll, did, due } = pollOf([row], {
    cache: { get: () => object, keys: () => ['shop/job'], isListed: () => true },
    sources: {
      areaOf: () => 'default',
      getSource: () => aSource(source),
      runsOf: () => [],
      isListed: () => true,
      missingRight: () => null,
      missingReasonRights: () => [],
    },
  })
  await poll()
  expect([...did.map(() => 'enqueued'), ...due.map(() => 'offered')]).toEqual(expected)
})

it('the resources with a turn are reconciled one each fifth of a second', async () => {
  const { poll, did } = pollOf([], { turns: { begin: () => ['shop/a', 'shop/b', 'shop/c'] } })
  await poll()
  expect(did).toEqual(['shop/a background 0', 'shop/b background 200', 'shop/c background 400'])
})

it('a poll of many checks lets other work run in between, and ends with its signal', async () => {
  const count = 5_000
  const keys = Array.from({ length: count }, (_, index) => `shop/job-${index}`)
  const rows = keys.map((_, index) => ['shop', `job-${index}`, STATUSES.indexOf('down'), NOW, null, null])
  const status = { installation: 'ours', checkId: 'c', state: 'up' }
  const stopping = new AbortController()
  const rounds: unknown[] = []
  const { poll, did } = pollOf(rows, {
    cache: {
      get: (key) => aHeartbeatCheck({ metadata: { name: key.slice(5), uid: key }, status }),
      keys: () => keys,
      isListed: () => true,
    },
    turns: {
      begin(given) {
        rounds.push(given)
        return []
      },
    },
  })
  setImmediate(() => stopping.abort())
  await poll(stopping.signal)
  expect(did.length).toBeGreaterThan(0)
  expect(did.length).toBeLessThan(count)
  // What was not compared must not end the turns that others have.
  expect(rounds).toEqual([])
  await poll()
  expect(new Set(did).size).toBe(count)
})

describe('lost resources', () => {
  /** Rows of two namespaces, the first of which comes first; resolves with the reads and the removals of a poll. */
  async function collect(listed: readonly string[], exists: (namespace: string) => never) {
    const row = (namespace: string) => [namespace, 'lost', STATUSES.indexOf('up'), NOW, null, null]
    const asked: string[] = []
    const client = {
      async get(_: unknown, { namespace }: { namespace: string }) {
        asked.push(namespace)
        return exists(namespace)
      },
    }
    const { poll } = pollOf(['bank', 'shop'].map(row), {
      client: client as never,
      cache: { get: () => undefined, keys: () => [], isListed: (namespace) => listed.includes(namespace) },
      orphanMs: 0,
    })
    await poll()
    return asked
  }
  const answer = (status: number) => () => {
    throw anApiError(status)
  }

  it('are looked for where the list is there, beside a namespace that has none', async () => {
    expect(await collect(['shop'], answer(404))).toEqual(['shop'])
    expect(await collect([], answer(404))).toEqual([])
  })

  it('are looked for beside one that may not be read', async () => {
    expect(await collect(['bank', 'shop'], answer(403))).toEqual(['bank', 'shop'])
  })
})
