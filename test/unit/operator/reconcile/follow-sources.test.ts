import { beforeEach, describe, expect, it } from 'vitest'
import { createSourceFollower } from '../../../../src/operator/reconcile/follow-sources.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import type { SourceListener } from '../../../../src/operator/sources/watch-sources.ts'

function aSource(changes: Partial<Source> = {}): Source {
  return {
    metadata: { namespace: 'shop', name: 'backup', uid: 'u', resourceVersion: '1' },
    createdAt: 0,
    schedule: '@daily',
    timeZone: null,
    suspended: false,
    concurrencyPolicy: 'Allow',
    startingDeadlineSeconds: null,
    activeDeadlineSeconds: null,
    lastScheduleTime: null,
    lastSuccessfulTime: null,
    active: [],
    ...changes,
  }
}

let did: string[]
let listed: Set<string>
let missing: Map<string, string>
let rightListeners: Set<(namespace: string | undefined) => void>
let listeners: Set<SourceListener>
let owners: Map<string, string>
let now: number
let follower: ReturnType<typeof createSourceFollower>

beforeEach(() => {
  did = []
  listed = new Set(['shop', 'other'])
  missing = new Map()
  rightListeners = new Set()
  listeners = new Set()
  owners = new Map()
  now = 1_000_000
  follower = createSourceFollower({
    sources: {
      areaOf: () => 'default',
      isListed: (namespace) => listed.has(namespace),
      getSource: () => undefined,
      runsOf: () => [],
      missingRight: (namespace) => missing.get(namespace) ?? null,
      missingReasonRights: () => [],
      onSource(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      rights: {
        onChange(listener) {
          rightListeners.add(listener)
          return () => rightListeners.delete(listener)
        },
      },
    },
    followersOf: (source) => (source === 'shop/backup' ? ['shop/a', 'shop/b'] : []),
    followers: () => ['shop/a', 'shop/b', 'other/c'],
    isOwnedBy: (key, uid) => owners.get(key) === uid,
    now: () => now,
    sync: (key, priority) => void did.push(`sync ${key} ${priority}`),
    offerTurn: (key) => void did.push(`turn ${key}`),
  })
  follower.start()
})

const change = (before: Source | undefined, after: Source | undefined, key = 'shop/backup') => {
  const given = { ...(before && { before }), ...(after && { after }) } as Parameters<SourceListener>[1]
  for (const listener of listeners) listener(key, given)
}
const SYNCED = ['sync shop/a live', 'sync shop/b live']

describe('a source', () => {
  it.each<[string, Source | undefined, Source | undefined]>([
    ['is created', undefined, aSource()],
    ['is deleted', aSource(), undefined],
    ['is another one of its name', aSource(), aSource({ metadata: { ...aSource().metadata, uid: 'v' } })],
    ['has another schedule', aSource(), aSource({ schedule: '@hourly' })],
    ['has another zone', aSource(), aSource({ timeZone: 'Asia/Tokyo' })],
    ['is suspended', aSource(), aSource({ suspended: true })],
    ['has another deadline', aSource(), aSource({ activeDeadlineSeconds: 60 })],
  ])('that %s leads to a sync of all that follow it, at once', (_, before, after) => {
    change(before, after)
    expect(did).toEqual(SYNCED)
  })

  it('that owns what follows it leaves ten seconds to the garbage collector when it is deleted', () => {
    owners.set('shop/a', 'u').set('shop/b', 'earlier')
    change(aSource(), undefined)
    expect(did.splice(0)).toEqual(['sync shop/b live'])
    now += 9_999
    follower.look()
    expect(did).toEqual([])
    now += 1
    follower.look()
    follower.look()
    expect(did.splice(0)).toEqual(['sync shop/a background'])

    change(aSource(), undefined)
    change(undefined, aSource({ metadata: { ...aSource().metadata, uid: 'v' } }))
    expect(did.splice(0)).toEqual(['sync shop/b live', ...SYNCED])
    now += 10_000
    follower.look()
    expect(did).toEqual([])
  })

  it('that says something else is for a turn', () => {
    change(aSource(), aSource({ lastScheduleTime: '2026-01-02T03:00:00Z', active: ['backup-1'] }))
    expect(did).toEqual(['turn shop/a', 'turn shop/b'])
  })

  it('that is not followed leads to nothing, nor does any after the end', () => {
    change(undefined, aSource(), 'shop/other')
    follower.stop()
    change(undefined, aSource())
    expect(did).toEqual([])
  })
})

describe('sources that are not listed yet', () => {
  it('lead to a sync of what waits for them when they are, once', () => {
    listed.clear()
    follower.wait('shop/a')
    follower.wait('other/c')
    change(undefined, aSource())
    follower.look()
    expect(did).toEqual([])
    listed.add('shop')
    follower.look()
    follower.look()
    expect(did).toEqual(['sync shop/a background'])
    missing.set('other', 'list jobs.batch in the namespace other')
    follower.look()
    expect(did.slice(1)).toEqual(['sync other/c background'])
  })
})

describe('a right', () => {
  const changeRight = (namespace: string | undefined) => {
    for (const listener of rightListeners) listener(namespace)
  }

  it('that comes or goes leads to a sync of what needs it, and of nothing else', () => {
    changeRight('shop')
    expect(did.splice(0)).toEqual(['sync shop/a background', 'sync shop/b background'])
    changeRight('bank')
    expect(did).toEqual([])
    // Of the whole cluster.
    changeRight(undefined)
    expect(did.splice(0)).toEqual(['sync shop/a background', 'sync shop/b background', 'sync other/c background'])
    follower.stop()
    changeRight('shop')
    expect(did).toEqual([])
  })
})
