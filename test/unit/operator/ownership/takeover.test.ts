/** What one installation does about the resources of others; two of them are in test/operator. */

import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../../src/kubernetes/errors.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createTakeover, OWNER_WAIT_MS, type TakeoverOptions } from '../../../../src/operator/ownership/takeover.ts'
import { aHeartbeatCheck, anApiError } from '../../../support/builders.ts'
import { silentLog } from '../../../support/silent-log.ts'

const KEY = 'shop/nightly'
const OTHER = '22222222-2222-4222-8222-222222222222'
const FINALIZERS = ['heartbeat-operator.io/cleanup']
const resource = (fields: Partial<HeartbeatCheck> = {}, metadata: Partial<HeartbeatCheck['metadata']> = {}) =>
  aHeartbeatCheck({ ...fields, metadata })
const theirs = resource({
  status: { installation: OTHER, checkId: 'c2', conditions: [], published: { kind: 'Secret', name: 'nightly' } },
})
const created = { check: { id: 'c1' }, change: 'created' } as never

interface Patch {
  readonly metadata: { readonly resourceVersion?: string }
  readonly status: HeartbeatCheck['status']
}

/** Of a database that has no check. `answer`: of the API server to a status. */
function createScene({ takeOver = null as string | null, answer = null as ApiError | null } = {}) {
  let now = 1_000
  let asked = 0
  const patches: Patch[] = []
  const events: { readonly reason: string; readonly note: string }[] = []
  const put: HeartbeatCheck[] = []
  const ask = async () => {
    asked += 1
    return null
  }
  const claims = { installation: 'i1', takeOver, takenOver: new Set<string>(), reported: new Map<string, string>() }
  const options = {
    client: {
      async mergePatch(_type: unknown, _place: unknown, patch: Patch) {
        patches.push(patch)
        if (answer !== null) throw answer
        return { ...theirs, status: { ...theirs.status, ...patch.status } }
      },
    },
    cache: { put: (object: HeartbeatCheck) => void put.push(object) },
    service: { findCheck: ask, now: () => now },
    cluster: 'default',
    claims,
    recorder: { record: (_on: unknown, event: (typeof events)[number]) => void events.push(event) },
    pingUrl: () => 'http://ping',
    now: () => now,
    log: silentLog,
  } as unknown as TakeoverOptions
  const pass = (ms: number): void => {
    now += ms
  }
  const begin = () => createTakeover(options)
  return { ...begin(), again: begin, claims, patches, events, put, asked: () => asked, pass }
}

const waits = (afterMs: number) => ({ kind: 'again', afterMs, priority: 'background' })

describe('a resource that lost its status', () => {
  const lost = (status?: HeartbeatCheck['status']) =>
    resource(status === undefined ? {} : { status }, { finalizers: FINALIZERS })

  it('is left to its owner until the time for that is over', async () => {
    const { begin, pass } = createScene()
    expect(await begin(KEY, lost())).toEqual(waits(OWNER_WAIT_MS))
    pass(OWNER_WAIT_MS - 1)
    expect(await begin(KEY, lost({ conditions: [] }))).toEqual(waits(1))
    pass(1)
    expect(await begin(KEY, lost())).toBeNull()
  })

  it('is waited for again when it loses another one', async () => {
    const { begin, pass } = createScene()
    await begin(KEY, lost())
    pass(OWNER_WAIT_MS)
    expect(await begin(KEY, lost({ installation: 'i1' }))).toBeNull()
    expect(await begin(KEY, lost())).toEqual(waits(OWNER_WAIT_MS))
  })

  it('is not waited for when it is being deleted', async () => {
    const { begin } = createScene()
    const going = resource({}, { finalizers: FINALIZERS, deletionTimestamp: '2026-01-01T00:00:00Z' })
    expect(await begin(KEY, going)).toBeNull()
  })
})

it('nothing is asked about a new resource, one of ours, and one that is gone', async () => {
  const { begin, asked } = createScene()
  for (const object of [
    resource(),
    resource({ status: { installation: 'i1' } }, { finalizers: FINALIZERS }),
    undefined,
  ])
    expect(await begin(KEY, object)).toBeNull()
  expect(asked()).toBe(0)
})

describe('a resource of another installation', () => {
  it('is reported once, in each term of this process, and with each way out', async () => {
    const { begin, again, patches, events } = createScene()
    expect(await begin(KEY, theirs)).toEqual({ kind: 'done' })
    await begin(KEY, theirs)
    await again().begin(KEY, theirs)
    expect(patches.map(({ metadata }) => metadata)).toEqual([{ resourceVersion: '7' }])
    expect(patches[0]!.status?.conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'Ready False',
      'Stalled True',
    ])
    expect(events.map(({ reason }) => reason)).toEqual(['ManagedElsewhere'])
    const { note } = events[0]!
    expect(note).toContain(`belongs to the installation ${OTHER}, so the installation i1 does not`)
    for (const way of [`heartbeat-operator.io/take-over: ${OTHER}`, `TAKE_OVER=${OTHER}`, 'WATCH_NAMESPACES'])
      expect(note).toContain(way)
    // A condition, and the note of an Event, hold 1,024.
    expect(note.length).toBeLessThan(1_024)
  })

  it('is reported again when it is a new one of the same name', async () => {
    const { begin, patches } = createScene()
    await begin(KEY, theirs)
    await begin(KEY, { ...theirs, metadata: { ...theirs.metadata, uid: 'u2' } })
    await begin(KEY, undefined)
    await begin(KEY, theirs)
    expect(patches).toHaveLength(3)
  })
})

describe('a takeover whose check is there', () => {
  it('names us and our check, which is not published yet, and takes the resource once', async () => {
    const { begin, claim, patches, put, claims } = createScene({ takeOver: OTHER })
    expect(await begin(KEY, theirs)).toBeNull()
    const taken = await claim(KEY, theirs, created)
    expect(put).toEqual([taken])
    expect(taken.status).toMatchObject({ installation: 'i1', checkId: 'c1', published: theirs.status!.published })
    const states = taken.status!.conditions!.map(({ type, status }) => `${type} ${status}`)
    expect(states).toEqual(['Ready False', 'Reconciling True', 'Published False'])
    expect(patches.map(({ metadata }) => metadata)).toEqual([{ resourceVersion: '7' }])
    expect([...claims.takenOver]).toEqual(['u1'])
  })

  it('fails when the resource has changed since, and is still a takeover', async () => {
    const answer = anApiError(409, { reason: 'Conflict', message: 'changed' })
    const { begin, claim, put, claims } = createScene({ takeOver: OTHER, answer })
    await begin(KEY, theirs)
    await expect(claim(KEY, theirs, created)).rejects.toThrow('changed')
    expect({ put, taken: claims.takenOver.size }).toEqual({ put: [], taken: 0 })
  })

  it('has its Event when the resource is brought in line, which says what became of the check at first', async () => {
    const { begin, claim, events } = createScene({ takeOver: OTHER })
    await begin(KEY, theirs)
    const taken = await claim(KEY, theirs, created)
    await claim(KEY, theirs, { check: { id: 'c1' }, change: 'updated' } as never)
    await begin(KEY, taken)
    // The previous owner reports that it does not have the resource.
    const [first, ...others] = taken.status!.conditions!
    const reported = [{ ...first!, reason: 'ManagedElsewhere' }, ...others]
    await begin(KEY, { ...taken, status: { ...taken.status, conditions: reported } })
    expect(events).toEqual([])
    const ready = { ...taken.status!.conditions![0]!, status: 'True', reason: 'Synced' } as const
    const synced = { ...taken, status: { ...taken.status, conditions: [ready] } }
    await begin(KEY, synced)
    await begin(KEY, synced)
    expect(events.map(({ reason }) => reason)).toEqual(['TakenOver'])
    expect(events[0]!.note).toContain('the check is a new one with a new ping URL, and its history stays')
  })

  it('of our own resource changes nothing', async () => {
    const ours = resource({ status: { installation: 'i1' } })
    const { claim, patches } = createScene()
    expect(await claim(KEY, ours, created)).toBe(ours)
    expect(patches).toEqual([])
  })
})
