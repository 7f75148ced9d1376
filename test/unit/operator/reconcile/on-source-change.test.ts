import { beforeEach, describe, expect, it } from 'vitest'
import { createSourceChanges } from '../../../../src/operator/reconcile/on-source-change.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import type { SourceListener } from '../../../../src/operator/sources/watch-sources.ts'
import { aHeartbeatCheck, aSource } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { useEach } from '../../../support/use.ts'

const clock = useEach(() => createManualClock(1_000_000))
const t = useEach(() => ({
  did: [] as string[],
  listed: new Set(['shop', 'other']),
  missing: new Map<string, string>(),
  rightListeners: new Set<(namespace: string | undefined) => void>(),
  listeners: new Set<SourceListener>(),
  found: undefined as Source | undefined,
}))
let changes: ReturnType<typeof createSourceChanges>
beforeEach(() => {
  changes = createSourceChanges({
    sources: {
      areaOf: () => 'default',
      isListed: (namespace) => t.listed.has(namespace),
      getSource: () => t.found,
      runsOf: () => [],
      missingRight: (namespace) => t.missing.get(namespace) ?? null,
      missingReasonRights: () => [],
      onSource(listener) {
        t.listeners.add(listener)
        return () => t.listeners.delete(listener)
      },
      rights: {
        onChange(listener) {
          t.rightListeners.add(listener)
          return () => t.rightListeners.delete(listener)
        },
      },
    },
    followersOf: (source) => (source === 'shop/backup' ? ['shop/a', 'shop/b'] : []),
    followers: () => ['shop/a', 'shop/b', 'other/c'],
    clock,
    enqueue: (key, priority) => void t.did.push(`sync ${key} ${priority}`),
    offerTurn: (key) => void t.did.push(`turn ${key}`),
  })
  changes.start()
})

const change = (before: Source | undefined, after: Source | undefined, key = 'shop/backup') => {
  const given = { ...(before && { before }), ...(after && { after }) } as Parameters<SourceListener>[1]
  for (const listener of t.listeners) listener(key, given)
}
/** A HeartbeatCheck that follows it, of which this uid is an owner. */
const aCheck = (owner?: string) =>
  aHeartbeatCheck({
    metadata: {
      name: 'a',
      ownerReferences:
        owner === undefined ? [] : [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'backup', uid: owner }],
    },
    spec: { sourceRef: { kind: 'CronJob', name: 'backup' } },
  })
const SYNCED = ['sync shop/a live', 'sync shop/b live']

describe('a source', () => {
  it.each<[string, Source | undefined, Source | undefined]>([
    ['is created', undefined, aSource()],
    ['is deleted', aSource(), undefined],
    ['is another one of its name', aSource(), aSource({ metadata: { uid: 'v' } })],
    ['has another schedule', aSource(), aSource({ schedule: '@hourly' })],
    ['has another zone', aSource(), aSource({ timeZone: 'Asia/Tokyo' })],
    ['is suspended', aSource(), aSource({ suspended: true })],
    ['has another deadline', aSource(), aSource({ activeDeadlineSeconds: 60 })],
  ])('that %s leads to a sync of all that follow it, at once', (_, before, after) => {
    change(before, after)
    expect(t.did).toEqual(SYNCED)
  })

  it('that owns what follows it leaves ten seconds to the garbage collector when it is deleted', async () => {
    change(aSource(), undefined)
    expect(changes.waitMs(aCheck('c1'))).toBe(10_000)
    // Another source owns this one, or none does.
    expect([changes.waitMs(aCheck('earlier')), changes.waitMs(aCheck())]).toEqual([0, 0])
    await clock.advance(9_999)
    expect(changes.waitMs(aCheck('c1'))).toBe(1)
    await clock.advance(1)
    expect(changes.waitMs(aCheck('c1'))).toBe(0)
  })

  it('that is there again is not left to the garbage collector', () => {
    change(aSource(), undefined)
    t.found = aSource({ metadata: { ...aSource().metadata, uid: 'v' } })
    change(undefined, t.found)
    expect(t.did).toEqual([...SYNCED, ...SYNCED])
    expect(changes.waitMs(aCheck('c1'))).toBe(0)
  })

  it('that says something else is for a turn', () => {
    change(aSource(), aSource({ lastScheduleTime: '2026-01-02T03:00:00Z', active: ['backup-1'] }))
    expect(t.did).toEqual(['turn shop/a', 'turn shop/b'])
  })

  it('that is not followed leads to nothing, nor does any after the end', () => {
    change(undefined, aSource(), 'shop/other')
    changes.stop()
    change(undefined, aSource())
    expect(t.did).toEqual([])
  })
})

describe('sources that are not listed yet', () => {
  it('are waited for, unless they may not be listed, and what a list shows leads to nothing', () => {
    expect(changes.waitMs(aCheck())).toBe(0)
    t.listed.clear()
    change(undefined, aSource())
    expect(t.did).toEqual([])
    expect(changes.waitMs(aCheck())).toBe(1_000)
    t.missing.set('shop', 'list jobs.batch in the namespace shop')
    expect(changes.waitMs(aCheck())).toBe(0)
    change(undefined, aSource())
    expect(t.did).toEqual(SYNCED)
  })

  it('are not waited for by what follows none', () => {
    t.listed.clear()
    expect(changes.waitMs({ ...aCheck(), spec: { periodSeconds: 60 } })).toBe(0)
  })
})

describe('a right', () => {
  const changeRight = (namespace: string | undefined) => {
    for (const listener of t.rightListeners) listener(namespace)
  }

  it('that comes or goes leads to a sync of what needs it, and of nothing else', () => {
    changeRight('shop')
    expect(t.did.splice(0)).toEqual(['sync shop/a background', 'sync shop/b background'])
    changeRight('bank')
    expect(t.did).toEqual([])
    // Of the whole cluster.
    changeRight(undefined)
    expect(t.did.splice(0)).toEqual(['sync shop/a background', 'sync shop/b background', 'sync other/c background'])
    changes.stop()
    changeRight('shop')
    expect(t.did).toEqual([])
  })
})
