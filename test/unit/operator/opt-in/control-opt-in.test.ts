/** The controller on a clock that a test moves, and on an API server that only counts. test/operator/opt-in.test.ts has the rules. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createKubernetesMetrics } from '../../../../src/kubernetes/metrics.ts'
import type { KubernetesObject } from '../../../../src/kubernetes/objects.ts'
import { createQueue } from '../../../../src/kubernetes/queue.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createOptInController, type OptInController } from '../../../../src/operator/opt-in/control-opt-in.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import type { SourceListener } from '../../../../src/operator/sources/watch-sources.ts'
import type { Term } from '../../../../src/operator/term.ts'
import { createMetrics } from '../../../../src/roles/metrics.ts'
import type { BackoffSteps } from '../../../../src/runtime/backoff.ts'
import { createLoop } from '../../../../src/runtime/loop.ts'
import { aHeartbeatCheck, anApiError } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { useEach } from '../../../support/use.ts'

const LABEL = 'heartbeat-operator.io/watch'
const OURS = 'our-installation'

type DeleteOptions = { readonly uid?: string; readonly resourceVersion?: string }

interface Call {
  readonly verb: string
  readonly name: string
  readonly at: number
}

const clock = useEach(createManualClock)
const t = useEach(() => ({
  calls: [] as Call[],
  sources: new Map<string, Source>(),
  checks: new Map<string, HeartbeatCheck>(),
  namespaces: new Map<string, KubernetesObject>(),
  listeners: new Set<SourceListener>(),
  recorded: [] as { reason: string; note: string; id?: string }[],
  metrics: createMetrics(),
  haveChecksSynced: true,
  unlisted: new Set<string>(),
  respond: async (): Promise<unknown> => ({}),
  /** The uid and the version of each deletion. */
  deleted: [] as unknown[],
  asked: [] as string[],
  instead: { cached: null, now: null } as Record<'cached' | 'now', readonly string[] | null>,
}))
let controller: OptInController
beforeEach(() => {
  controller = create()
})
afterEach(stop)

async function stop(): Promise<void> {
  const stopping = controller.stop(0)
  await clock.advance(0)
  await stopping
}

function create(watch: 'labelled' | 'all' = 'labelled'): OptInController {
  const call = (verb: string, name: string) => {
    t.calls.push({ verb, name, at: clock.now() })
    return t.respond()
  }
  const client = {
    create: (_: object, object: HeartbeatCheck) => call('create', object.metadata.name),
    mergePatch: (_: object, { name }: { name: string }) => call('patch', name),
    delete(_: object, { name }: { name: string }, { uid, resourceVersion }: DeleteOptions) {
      t.deleted.push([uid, resourceVersion])
      return call('delete', name)
    },
  }
  const term = {
    client,
    clock,
    log: silentLog,
    claims: { installation: OURS, takeOver: null, takenOver: new Set() },
    cronJobs: { watch, timeZone: 'Etc/UTC', logs: 'off' },
    metrics: t.metrics.operator,
    kubernetesMetrics: createKubernetesMetrics(createMetrics().registry),
    recorder: { record: (_: object, occurrence: (typeof t.recorded)[number]) => t.recorded.push(occurrence) },
    createQueue: (_: string, backoff: BackoffSteps) => createQueue({ clock, random: () => 0.5, backoff }),
    startLoop(_: string, everyMs: number, run: (stopping: AbortSignal) => Promise<void>) {
      const once = async (stopping: AbortSignal) => run(stopping).then(() => 'done' as const)
      const loop = createLoop({ everyMs, clock, run: once, onError: () => {} })
      loop.start()
      return loop
    },
  } as unknown as Term
  return createOptInController(term, {
    sources: {
      getSource: (key) => t.sources.get(key),
      sources: () => t.sources.values(),
      hasSynced: () => true,
      onSource(listener) {
        t.listeners.add(listener)
        return () => t.listeners.delete(listener)
      },
    },
    checks: {
      get: (key) => t.checks.get(key),
      followersOf: (key) => (t.checks.has(key) ? [key] : []),
      isListed: (namespace) => t.haveChecksSynced && !t.unlisted.has(namespace),
    },
    namespaceWatch: { get: (name) => t.namespaces.get(name) },
    findProjectsInstead: async (_, project, age) => {
      t.asked.push(`${project} ${age}`)
      return t.instead[age]
    },
  })
}

function aNamespace(label?: string): KubernetesObject {
  const labels = label === undefined ? {} : { [LABEL]: label }
  return { metadata: { name: 'shop', uid: 'u', resourceVersion: '1', labels } }
}

function aSource(name: string, metadata: Partial<Source['metadata']> = {}): Source {
  const all = { namespace: 'shop', name, uid: `${name}-uid`, resourceVersion: '1', ...metadata }
  return { metadata: all, active: [] } as unknown as Source
}

/** As the watch does it. */
function change(name: string, metadata: Partial<Source['metadata']> = {}): void {
  const key = `${metadata.namespace ?? 'shop'}/${name}`
  const before = t.sources.get(key)
  const after = aSource(name, metadata)
  t.sources.set(key, after)
  for (const listener of t.listeners) listener(key, { before, after } as Parameters<SourceListener>[1])
}

function aCheck(name: string, installation = OURS): HeartbeatCheck {
  const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name, uid: `${name}-uid`, controller: true }
  const labels = { 'app.kubernetes.io/managed-by': 'heartbeat-operator' }
  const metadata = { name, labels, ownerReferences: [owner] }
  return aHeartbeatCheck({ metadata, spec: { sourceRef: { kind: 'CronJob', name } }, status: { installation } })
}

const watched = { labels: { [LABEL]: 'true' } }
const done = () => t.calls.splice(0).map(({ verb, name }) => `${verb} ${name}`)
const reject =
  (status: number, reason: string, fields: Parameters<typeof anApiError>[1] = {}) =>
  async () => {
    throw anApiError(status, { reason, ...fields })
  }
async function start(): Promise<void> {
  controller.start()
  await clock.advance(0)
}

describe('the rate', () => {
  it('at most 50 HeartbeatChecks are written in a second, when 10,000 CronJobs are labelled at once', async () => {
    for (let index = 0; index < 10_000; index += 1) t.sources.set(`shop/job-${index}`, aSource(`job-${index}`, watched))
    await start()
    const from = clock.now()
    await clock.advance(10_000)
    const inSecond = Array.from({ length: 10 }, (_, second) =>
      t.calls.filter(({ at }) => at >= from + second * 1_000 && at < from + (second + 1) * 1_000),
    )
    expect(inSecond.map(({ length }) => length)).toEqual(Array(10).fill(50))
    await clock.advance(200_000)
    expect(new Set(t.calls.map(({ name }) => name)).size).toBe(10_000)
  })

  it('one CronJob of another namespace, labelled by a person, does not wait for them', async () => {
    t.namespaces.set('shop', aNamespace('true'))
    for (let index = 0; index < 1_000; index += 1) t.sources.set(`shop/job-${index}`, aSource(`job-${index}`))
    await start()
    change('urgent', watched)
    await clock.advance(400)
    expect(done()).toContain('create urgent')
  })

  it.each(['CronJob', 'Namespace'])(
    'a write that the label of the %s does not want any more when its turn comes is left out',
    async (kind) => {
      t.namespaces.set('shop', aNamespace(kind === 'Namespace' ? 'true' : undefined))
      const labels = kind === 'Namespace' ? {} : watched
      for (let index = 0; index < 60; index += 1) t.sources.set(`shop/job-${index}`, aSource(`job-${index}`, labels))
      await start()
      if (kind === 'CronJob') for (let index = 0; index < 60; index += 1) change(`job-${index}`, { labels: {} })
      t.namespaces.set('shop', aNamespace())
      t.calls.length = 0
      await clock.advance(10_000)
      expect(done()).toEqual([])
    },
  )
})

it('a HeartbeatCheck that was made by others while the turn of its creation came is not written over', async () => {
  for (let index = 0; index < 60; index += 1) change(`job-${index}`, watched)
  await start()
  for (let index = 0; index < 60; index += 1) t.checks.set(`shop/job-${index}`, aCheck(`job-${index}`))
  t.calls.length = 0
  await clock.advance(10_000)
  expect(done()).toEqual([])
})

describe('the label of a Namespace', () => {
  it('decides when it is known, and not before', async () => {
    change('a')
    await start()
    await clock.advance(3_600_000)
    expect(done()).toEqual([])
    t.namespaces.set('shop', aNamespace('true'))
    controller.namespaceChanged('shop')
    await clock.advance(0)
    expect(done()).toEqual(['create a'])
  })

  it('that goes deletes what it created', async () => {
    t.namespaces.set('shop', aNamespace('true'))
    change('a')
    t.checks.set('shop/a', aCheck('a'))
    await start()
    t.namespaces.set('shop', aNamespace())
    controller.namespaceChanged('shop')
    await clock.advance(0)
    expect(done()).toEqual(['delete a'])
    // Of this version only: it may have been changed or made anew by others meanwhile.
    expect(t.deleted).toEqual([['u1', '7']])
  })

  it('that is known again after a right was away is for all CronJobs in it, and not for those of others', async () => {
    t.namespaces.set('shop', aNamespace('true'))
    for (const name of ['a', 'b']) {
      change(name)
      t.checks.set(`shop/${name}`, aCheck(name))
    }
    t.sources.set('stock/a', aSource('a', { namespace: 'stock' }))
    await start()
    t.namespaces.delete('shop')
    change('a', { resourceVersion: '2' })
    await clock.advance(0)
    t.namespaces.set('shop', aNamespace())
    t.namespaces.set('stock', aNamespace('true'))
    controller.namespaceChanged('shop')
    await clock.advance(100)
    expect(done()).toEqual(['delete a', 'delete b'])
  })

  it('that cannot be read any more deletes nothing', async () => {
    t.namespaces.set('shop', aNamespace('true'))
    change('a')
    t.checks.set('shop/a', aCheck('a'))
    await start()
    t.namespaces.delete('shop')
    await clock.advance(3_600_000)
    expect(done()).toEqual([])
  })
})

describe('a CronJob that runs', () => {
  it('is not looked at again for it: it also changes when a Job starts or ends', async () => {
    change('a', watched)
    await start()
    expect(done()).toEqual(['create a'])
    change('a', { ...watched, resourceVersion: '2' })
    await clock.advance(1_000)
    expect(done()).toEqual([])
    change('a', { ...watched, annotations: { 'heartbeat-operator.io/grace-seconds': '600' } })
    await clock.advance(1_000)
    expect(done()).toEqual(['create a'])
  })
})

describe('a write that fails', () => {
  it.each([
    ['Conflict', 409],
    ['AlreadyExists', 409],
  ])('by %s: the caches are behind, and it is decided again a second later', async (reason, status) => {
    t.respond = reject(status, reason)
    change('a', watched)
    await start()
    await clock.advance(999)
    expect(done()).toEqual(['create a'])
    await clock.advance(1)
    expect(done()).toEqual(['create a'])
    t.checks.set('shop/a', aCheck('a'))
    await clock.advance(10_000)
    expect([done(), t.recorded]).toEqual([[], []])
  })

  it('because the HeartbeatCheck is gone already is none', async () => {
    t.respond = reject(404, 'NotFound')
    t.namespaces.set('shop', aNamespace())
    t.checks.set('shop/a', aCheck('a'))
    change('a')
    await start()
    await clock.advance(500_000)
    expect([done(), t.recorded]).toEqual([['delete a'], []])
  })

  it('by a missing right is a warning on the CronJob, and tried again each minute', async () => {
    t.respond = reject(403, 'Forbidden', { message: 'User "x" cannot create resource "heartbeatchecks"' })
    change('a', watched)
    await start()
    await clock.advance(59_999)
    expect(done()).toEqual(['create a'])
    expect(t.recorded.map(({ reason, note }) => `${reason}: ${note}`)).toEqual([
      'NotCreated: the API server does not let the operator create the HeartbeatCheck of this CronJob: User "x" cannot create resource "heartbeatchecks"; it is tried again each minute',
    ])
    t.respond = async () => ({})
    await clock.advance(1)
    expect(done()).toEqual(['create a'])
  })

  it('because its namespace is being deleted is none', async () => {
    t.respond = reject(403, 'Forbidden', { details: { causes: [{ reason: 'NamespaceTerminating' }] } })
    change('a', watched)
    await start()
    await clock.advance(500_000)
    expect([done(), t.recorded]).toEqual([['create a'], []])
  })

  it('by the network is tried again, after an outage of any length within 10 s', async () => {
    t.respond = async () => {
      throw new Error('reset')
    }
    change('a', watched)
    await start()
    await clock.advance(3_600_000)
    expect(t.calls.length).toBeLessThan(3_600_000 / 5_000)
    t.calls.length = 0
    t.respond = async () => ({})
    await clock.advance(10_000)
    expect(done()).toEqual(['create a'])
  })
})

describe('warnings', () => {
  const invalid = { ...watched, annotations: { 'heartbeat-operator.io/grace-seconds': 'x' } }

  it('are another Event in each half hour while the fault lasts: the server keeps Events for an hour', async () => {
    t.checks.set('shop/a', aCheck('a'))
    change('a', invalid)
    await start()
    await clock.advance(3 * 3_600_000 - 1)
    // Each resync records it, and the recorder writes each id once.
    expect(t.recorded).toHaveLength(18)
    expect(new Set(t.recorded.map(({ id }) => id)).size).toBe(6)
    change('a', watched)
    await clock.advance(3_600_000)
    expect(t.recorded).toHaveLength(18)
  })

  it('are for each CronJob of a name: a watch that missed the deletion shows the next one as a change', async () => {
    t.checks.set('shop/a', aCheck('a'))
    change('a', invalid)
    await start()
    change('a', { ...invalid, uid: 'next' })
    t.checks.delete('shop/a')
    await clock.advance(1_000)
    expect([done(), t.recorded.length]).toEqual([['create a'], 2])
  })

  it('have the same id in the next leader, which does not repeat them', async () => {
    t.checks.set('shop/a', aCheck('a'))
    change('a', invalid)
    await start()
    await stop()
    controller = create()
    await start()
    expect(t.recorded).toHaveLength(2)
    expect(t.recorded[1]!.id).toBe(t.recorded[0]!.id)
  })
})

it('nothing is decided before the HeartbeatChecks are listed', async () => {
  t.haveChecksSynced = false
  change('a', watched)
  await start()
  await clock.advance(10_000)
  expect(done()).toEqual([])
  t.haveChecksSynced = true
  await clock.advance(1_000)
  expect(done()).toEqual(['create a'])
})

it('nothing is decided in a namespace whose HeartbeatChecks are not listed, and nothing waits for that one', async () => {
  t.unlisted.add('bank')
  change('a', watched)
  change('b', { ...watched, namespace: 'bank' })
  await start()
  await clock.advance(10_000)
  expect(done()).toEqual(['create a'])
  t.unlisted.clear()
  await clock.advance(1_000)
  expect(done()).toEqual(['create b'])
})

it('a HeartbeatCheck that another installation has given away is noticed by a resync', async () => {
  change('a', { labels: { [LABEL]: 'false' } })
  t.checks.set('shop/a', aCheck('a', 'another'))
  await start()
  expect(done()).toEqual([])
  t.checks.set('shop/a', aCheck('a'))
  await clock.advance(600_000)
  expect(done()).toEqual(['delete a'])
})

it('a steady cluster causes no request in an hour', async () => {
  for (let index = 0; index < 500; index += 1) {
    t.sources.set(`shop/job-${index}`, aSource(`job-${index}`, watched))
    t.checks.set(`shop/job-${index}`, aCheck(`job-${index}`))
  }
  await start()
  await clock.advance(3_600_000)
  expect([done(), t.recorded]).toEqual([[], []])
})

it('counts the CronJobs by whether they are watched, and none after the term', async () => {
  const counts = async () => {
    const { values } = await t.metrics.registry.getSingleMetric('heartbeat_cronjobs')!.get()
    return Object.fromEntries(values.map(({ labels, value }) => [labels.watched, value]))
  }
  change('a', watched)
  change('b')
  t.checks.set('shop/a', aCheck('a'))
  await start()
  expect(await counts()).toEqual({ true: 1, false: 1, rejected: 0 })
  t.respond = reject(403, 'Forbidden')
  change('c', watched)
  await clock.advance(1_000)
  expect(await counts()).toEqual({ true: 1, false: 1, rejected: 1 })
  change('c')
  await clock.advance(1_000)
  expect(await counts()).toEqual({ true: 1, false: 2, rejected: 0 })
  change('c', watched)
  await clock.advance(1_000)
  t.sources.delete('shop/c')
  for (const listener of t.listeners) listener('shop/c', { before: aSource('c') } as Parameters<SourceListener>[1])
  t.checks.set('shop/b', aCheck('b'))
  controller.checkChanged('shop/b', 'live')
  await clock.advance(1_000)
  expect(await counts()).toEqual({ true: 2, false: 0, rejected: 0 })
  await stop()
  expect(await counts()).toEqual({ true: 0, false: 0, rejected: 0 })
  expect(t.listeners.size).toBe(0)
})

describe('the project of an annotation', () => {
  const inProject = { ...watched, annotations: { 'heartbeat-operator.io/project': 'payments' } }

  it('is looked at again before a HeartbeatCheck is made without it: what a watch says may be outdated', async () => {
    t.instead = { cached: ['shop'], now: null }
    change('a', inProject)
    await start()
    expect(done()).toEqual(['create a'])
    expect(t.asked).toEqual(['payments cached', 'payments now'])
    expect(t.recorded).toEqual([])
  })

  it('is no reason to read anything when the HeartbeatCheck has it, or the CronJob is not watched', async () => {
    t.checks.set('shop/a', aCheck('a'))
    Object.assign(t.checks.get('shop/a')!.spec, { project: 'payments' })
    change('a', inProject)
    change('b', { annotations: inProject.annotations })
    t.namespaces.set('shop', aNamespace())
    await start()
    expect(t.asked).toEqual([])
  })

  it('warns of a HeartbeatCheck that is there by what is cached', async () => {
    t.instead = { cached: ['shop'], now: null }
    t.checks.set('shop/a', aCheck('a'))
    change('a', inProject)
    await start()
    expect(t.asked).toEqual(['payments cached'])
    expect(t.recorded.map(({ reason }) => reason)).toEqual(['InvalidAnnotation'])
  })
})
