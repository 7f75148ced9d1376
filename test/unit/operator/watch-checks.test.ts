/** What the operator's cache makes of the answers to its own writes. */

import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { RESTORE_RIGHTS } from '../../../src/operator/names.ts'
import { type CheckWatchOptions, createCheckWatch } from '../../../src/operator/watch-checks.ts'
import { aHeartbeatCheck, anApiError } from '../../support/builders.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { silentLog } from '../../support/silent-log.ts'

const LISTED = aHeartbeatCheck({ metadata: { name: 'backup', resourceVersion: '10' } })

/** A watch that lists these, and hears nothing more. */
async function start(itemsOf: (namespace: string) => unknown[], changes: Partial<CheckWatchOptions>) {
  const clock = createManualClock()
  const client = {
    async list(_type: unknown, { namespace }: { namespace: string }) {
      return { items: itemsOf(namespace), resourceVersion: '10', continueToken: null }
    },
    async *watch(_type: unknown, { signal }: { signal: AbortSignal }) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  } as unknown as KubernetesClient
  const metrics = { restarted() {}, contact() {}, objects() {} }
  const standard = { client, namespaces: null, clock, random: () => 0, log: silentLog, metrics, onChange() {} }
  const watch = createCheckWatch({ ...standard, ...changes })
  watch.start()
  await clock.settle()
  return { watch, clock }
}

/** The watch has listed the resource. */
async function watchOne() {
  const changes: string[] = []
  const { watch } = await start(() => [LISTED], {
    installation: () => 'i1',
    onChange: (key, priority) => changes.push(`${key} ${priority}`),
  })
  // Thousands come with the first list.
  expect(changes.splice(0)).toEqual(['shop/backup background'])
  return { watch, changes }
}

const answered = (metadata: Partial<HeartbeatCheck['metadata']>): HeartbeatCheck => ({
  ...LISTED,
  metadata: { ...LISTED.metadata, resourceVersion: '12', ...metadata },
})

it.each([
  ['a new specification', { generation: 2 }],
  ['a deletion', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
  ['an annotation', { annotations: { 'heartbeat-operator.io/adopt-check-id': 'x' } }],
  ['a label', { labels: { team: 'shop' } }],
])(
  '%s that comes with the answer to our own write is reported: its event will be older than what is known',
  async (_what, metadata) => {
    const { watch, changes } = await watchOne()
    watch.put(answered(metadata))
    expect(watch.get('shop/backup')?.metadata).toMatchObject(metadata)
    expect(changes).toEqual(['shop/backup live'])
    await watch.stop()
  },
)

it('another object of the same name is left to the watch, which reports it and what it follows', async () => {
  const { watch, changes } = await watchOne()
  watch.put(answered({ uid: 'u2' }))
  expect(watch.get('shop/backup')?.metadata.uid).toBe('u1')
  expect(changes).toEqual([])
  await watch.stop()
})

it.each([
  ['a status', {}],
  ['a finalizer', { finalizers: ['heartbeat-operator.io/cleanup'] }],
])('%s of our own is not', async (_what, metadata) => {
  const { watch, changes } = await watchOne()
  watch.put(answered(metadata))
  expect(watch.get('shop/backup')?.metadata.resourceVersion).toBe('12')
  expect(changes).toEqual([])
  await watch.stop()
})

const OURS = { installation: 'i1', checkId: 'c1', conditions: [] }
const MANAGED_ELSEWHERE = {
  type: 'Stalled',
  status: 'True',
  reason: 'ManagedElsewhere',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const

const PUBLISHED = { ...MANAGED_ELSEWHERE, type: 'Published', reason: 'Published' } as const

it.each([
  [1, 'the id of another installation', { ...OURS, installation: 'i2' }],
  [1, 'its check, a moment later', { ...OURS, checkId: 'c2' }],
  [1, 'its report that it does not have the resource', { ...OURS, conditions: [MANAGED_ELSEWHERE] }],
  [1, 'its report that it has published its URL', { ...OURS, conditions: [PUBLISHED] }],
  [0, 'a status of our own', { ...OURS, state: 'late' } as const],
])('%i change for %s', async (count, _what, status) => {
  const { watch, changes } = await watchOne()
  // The first status is no conflict: its version decides between two installations.
  watch.put({ ...answered({ resourceVersion: '11' }), status: OURS })
  expect(changes).toEqual([])
  watch.put({ ...answered({}), status })
  expect(changes).toHaveLength(count)
  watch.put({ ...answered({ resourceVersion: '13' }), status })
  expect(changes).toHaveLength(count)
  await watch.stop()
})

it.each([
  [0, 'i1'],
  [1, 'i2'],
])('%i change for a first status of the installation %s', async (count, installation) => {
  const { watch, changes } = await watchOne()
  watch.put({ ...answered({}), status: { installation } })
  expect(changes).toHaveLength(count)
  await watch.stop()
})

describe('in several namespaces', () => {
  /** Lists are what `answers` says at the time. */
  async function watchTwo(answers: Record<string, Error | null>) {
    const said: string[] = []
    const itemsOf = (namespace: string) => {
      if (answers[namespace] != null) throw answers[namespace]
      return []
    }
    const log = { ...silentLog, warn: (_fields: unknown, text: string) => said.push(text) } as never
    const { watch, clock } = await start(itemsOf, { namespaces: ['shop', 'bank'], log })
    return { watch, clock, said }
  }
  const error = (status: number) => anApiError(status)

  it.each([403, 500])('one that answers %i keeps the others from nothing, and is listed later', async (status) => {
    const answers: Record<string, Error | null> = { shop: null, bank: error(status) }
    const { watch, clock, said } = await watchTwo(answers)
    expect([watch.hasTried(), watch.isListed('shop'), watch.isListed('bank'), watch.unlisted()]).toEqual([
      true,
      true,
      false,
      ['bank'],
    ])
    expect(said[0]).toContain(status === 403 ? `HeartbeatChecks is missing: ${RESTORE_RIGHTS}` : 'was interrupted')
    answers.bank = null
    await clock.advance(60_000)
    expect([watch.isListed('bank'), watch.unlisted()]).toEqual([true, []])
    await watch.stop()
  })

  it('a right that is missing is named once, and again when it was there meanwhile', async () => {
    const answers: Record<string, Error | null> = { shop: null, bank: error(403) }
    const { watch, clock, said } = await watchTwo(answers)
    await clock.advance(60_000)
    expect(said).toHaveLength(1)
    answers.bank = null
    await clock.advance(60_000)
    answers.bank = error(403)
    // The silent watch is replaced.
    await clock.advance(200_000)
    expect(said).toEqual([said[0], said[0]])
    await watch.stop()
  })

  it('all that fail leave nothing to begin with', async () => {
    const { watch } = await watchTwo({ shop: error(403), bank: error(403) })
    expect(watch.hasTried()).toBe(false)
    await watch.stop()
  })

  it('one recovers beside another that never does', async () => {
    const answers: Record<string, Error | null> = { shop: error(500), bank: error(403) }
    const { watch, clock } = await watchTwo(answers)
    expect(watch.takeRecovery()).toBe(false)
    answers.shop = null
    await clock.advance(60_000)
    expect([watch.takeRecovery(), watch.takeRecovery()]).toEqual([true, false])
    await watch.stop()
  })
})
