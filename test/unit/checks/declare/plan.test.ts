import { describe, expect, it } from 'vitest'
import {
  type Declaration,
  type Facts,
  NOTHING_THERE,
  plan,
  planArming,
  readPause,
} from '../../../../src/checks/declare/plan.ts'
import { NO_SPEC } from '../../../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../../../src/domain/check.ts'
import { newState } from '../../../../src/domain/transition.ts'
import type { StoredCheck } from '../../../../src/store/checks/checks.ts'
import { NO_ORIGIN } from '../../../../src/store/checks/columns.ts'
import type { Tombstone } from '../../../../src/store/checks/tombstones.ts'
import { aState, NOON } from '../../../support/builders.ts'

const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'nightly' }
const SPEC = { ...NO_SPEC, periodSeconds: 3_600, dialect: null, graceSeconds: 300 }
const ID = '0190b8a0-0000-7000-8000-00000000000a'
const OTHER_ID = '0190b8a0-0000-7000-8000-00000000000b'

const declaration = (given: Partial<Declaration> = {}): Declaration => ({
  resource: RESOURCE,
  projectId: 'p',
  name: 'Nightly',
  ...NO_TEXTS,
  spec: SPEC,
  suspend: null,
  adoptId: null,
  ...given,
})

/** As `declaration()` declares it. */
const aCheck = (given: Partial<StoredCheck> = {}): StoredCheck => ({
  key: 1,
  id: ID,
  publicId: 'public',
  projectId: 'p',
  name: 'Nightly',
  slug: 'nightly',
  ...NO_TEXTS,
  managedBy: 'kubernetes',
  kubernetes: RESOURCE,
  kubernetesSuspend: null,
  createdAt: NOON,
  updatedAt: NOON,
  spec: SPEC,
  state: aState(),
  ...given,
})
const FOLLOWED = { ...SPEC, jobArea: 'default' }
const BY = { kind: 'kubernetes', id: null, name: 'default' } as const
const pauseUntil = (until: number | null) => ({ kind: 'pause', pause: { by: BY, until, comment: null } })
const PAUSE = pauseUntil(null)
const UNPUBLISHED = { isPublished: false } as const
const ofTheApi = { managedBy: 'api', kubernetes: null } as const

const kept = {
  lastPingAt: NOON,
  lastOutcome: 'fail',
  lastSuccessAt: null,
  lastDurationMs: 5,
  lastStartAt: null,
  pingsTotal: 7,
  escalation: null,
  incidentSince: NOON,
} as const
const aTombstone: Tombstone = {
  ...kept,
  key: 1,
  id: ID,
  publicId: 'public',
  projectId: 'p',
  slug: 'old',
  stampedAt: NOON,
  createdAt: NOON,
  deletedAt: NOON,
  reason: 'failed',
  ...NO_ORIGIN,
}

const facts = (given: Partial<Facts> = {}): Facts => ({ ...NOTHING_THERE, ...given })
const kindsOf = (given: ReturnType<typeof plan>) => 'events' in given && given.events.map(({ kind }) => kind)

describe('a resource without a check', () => {
  it.each<[string, Partial<Declaration>, string[]]>([
    ['gets a new one', {}, ['arm']],
    ['gets a paused one when it is suspended', { suspend: true }, ['arm', 'pause']],
    ['gets a running one when it is not suspended', { suspend: false }, ['arm']],
    ['gets one of which nothing is expected before its URL is published', UNPUBLISHED, []],
    ['gets a paused one before that', { ...UNPUBLISHED, suspend: true }, ['pause']],
  ])('%s', (_, given, events) => {
    const planned = plan(facts(), declaration(given))
    expect([planned.kind, kindsOf(planned)]).toEqual(['create', events])
  })

  it.each<[string, Partial<Declaration>, string[], Partial<Facts>?]>([
    ['gets back what a tombstone kept', {}, ['revive', 'arm']],
    ['gets it back paused', { suspend: true }, ['revive', 'arm', 'pause']],
    ['gets back the check that it adopted before', { adoptId: ID }, ['revive', 'arm'], { adoptee: aCheck() }],
    ['gets it back as it was, if it follows a CronJob: down', { spec: FOLLOWED }, ['revive', 'arm', 'restore']],
    ['so too, if its newest run succeeded before', { spec: FOLLOWED, succeededAt: NOON }, ['revive', 'arm', 'restore']],
    ['but new, if its newest run succeeded since', { spec: FOLLOWED, succeededAt: NOON + 1 }, ['revive', 'arm']],
    ['but paused, if its CronJob is suspended', { spec: FOLLOWED, suspend: true }, ['revive', 'arm', 'pause']],
    [
      'but new, if an older release has deleted it',
      { spec: FOLLOWED },
      ['revive', 'arm'],
      { tombstone: { ...aTombstone, reason: null } },
    ],
    ['gets it back without its URL published: nothing is expected', UNPUBLISHED, ['revive']],
  ])('with a tombstone %s', (_, given, events, known = {}) => {
    const planned = plan(facts({ tombstone: aTombstone, ...known }), declaration(given))
    expect([planned.kind, kindsOf(planned)]).toEqual(['revive', events])
  })
})

describe('a check that comes back', () => {
  const eventsOf = (given: Partial<Declaration>, tombstone: Partial<Tombstone> | null) => {
    const planned = plan(facts({ tombstone: tombstone && { ...aTombstone, ...tombstone } }), declaration(given))
    return 'events' in planned ? planned.events : []
  }

  it.each<[string, Partial<Declaration>, Tombstone['reason'], boolean | undefined]>([
    ['is up again, if it follows a CronJob', { spec: FOLLOWED }, 'recovered', true],
    ['is up again after a first success, too', { spec: FOLLOWED }, 'first_success', true],
    ['is not, if it was down', { spec: FOLLOWED }, 'missed', undefined],
    ['is not, if it is suspended', { spec: FOLLOWED, suspend: true }, 'recovered', undefined],
    ['is not, if its job pings', {}, 'recovered', undefined],
  ])('%s', (_, given, reason, isUp) => {
    const [revival] = eventsOf(given, { reason })
    expect(revival).toMatchObject({ kind: 'revive', kept })
    expect('isUp' in revival! ? revival.isUp : undefined).toBe(isUp)
  })

  it.each<[string, Partial<Declaration>, Partial<Tombstone> | null, boolean]>([
    ['a new one', {}, null, true],
    ['one without an incident', {}, { incidentSince: null }, true],
    ['one that its recipients know as down', {}, {}, false],
    ['one that follows a CronJob: the pause at its deletion was notified', { spec: FOLLOWED }, {}, true],
  ])('suspended is %s, and the pause is silent or not', (_, given, tombstone, isSilent) => {
    expect(eventsOf({ ...given, suspend: true }, tombstone).at(-1)).toEqual({ ...PAUSE, isSilent })
  })
})

describe('a check that is as declared', () => {
  it.each([
    ['is left alone', aCheck(), {}],
    ['is left alone when the id to adopt is its own, in any case', aCheck(), { adoptId: ID.toUpperCase() }],
    ['may be paused by the API', aCheck({ state: aState({ status: 'paused' }) }), {}],
    ['may be down', aCheck({ state: aState({ status: 'down', expectedAt: null, dueAt: null }) }), {}],
  ])('%s', (_, check, given) => {
    expect(plan(facts({ check }), declaration(given))).toEqual({ kind: 'nothing', check })
  })
})

describe('a check that differs is changed', () => {
  const paused = { state: aState({ status: 'paused', expectedAt: null, dueAt: null }) }
  it.each<[string, Partial<StoredCheck>, Partial<Declaration>, object, string[]]>([
    ['in its name', { name: 'Old' }, {}, { isRedescribed: true }, []],
    ['in its description', {}, { description: 'x' }, { isRedescribed: true }, []],
    ['in its owner', { managedBy: 'api' }, {}, { isRedescribed: true }, []],
    ['in its resource', { kubernetes: { ...RESOURCE, name: 'x' } }, {}, { isRedescribed: true }, []],
    ['in its namespace', { kubernetes: { ...RESOURCE, namespace: 'x' } }, {}, { isRedescribed: true }, []],
    ['in its cluster', { kubernetes: { ...RESOURCE, cluster: 'x' } }, {}, { isRedescribed: true }, []],
    ['in that it has none', { kubernetes: null }, {}, { isRedescribed: true }, []],
    ['in who may pause it', { kubernetesSuspend: false }, {}, { isRedescribed: true }, []],
    ['in its project', { projectId: 'old' }, {}, { isRedescribed: true, isMoved: true }, []],
    ['in its spec', { spec: { ...SPEC, graceSeconds: 1 } }, {}, { isRescheduled: true }, ['update']],
    [
      'in where its source is watched: what is overdue stays so',
      { spec: { ...SPEC, jobArea: 'default' } },
      { spec: { ...SPEC, jobArea: 'default/payments' } },
      { isRescheduled: true },
      [],
    ],
    ['in that it follows a source', {}, { spec: { ...SPEC, jobArea: 'default' } }, { isRescheduled: true }, ['update']],
    ['in that it waits for nothing', { state: newState(NOON) }, {}, {}, ['arm']],
    [
      'in that it runs, also before its URL is published',
      { kubernetesSuspend: true },
      { ...UNPUBLISHED, suspend: true },
      {},
      ['pause'],
    ],
    ['in that it runs', { kubernetesSuspend: true }, { suspend: true }, {}, ['pause']],
    ['in that it is paused', { ...paused, kubernetesSuspend: false }, { suspend: false }, {}, ['resume']],
    [
      'in everything',
      { spec: { ...SPEC, graceSeconds: 1 }, state: newState(NOON), name: 'Old' },
      { suspend: true },
      { isRedescribed: true, isRescheduled: true },
      ['update', 'arm', 'pause'],
    ],
  ])('%s', (_, stored, given, differences, events) => {
    const check = aCheck(stored)
    const planned = plan(facts({ check }), declaration(given))
    const same = { isMoved: false, isRedescribed: false, isRescheduled: false }
    expect(planned).toMatchObject({ kind: 'change', check, ...same, ...differences })
    expect(kindsOf(planned)).toEqual(events)
  })
})

describe('a check whose source is suspended, while a person may start a run of it', () => {
  const DOWN = { state: aState({ status: 'down', expectedAt: null, dueAt: null }) } as const
  const NEW = { state: { ...newState(NOON), expectedAt: NOON, dueAt: NOON } } as const
  it.each<[string, Partial<StoredCheck>, Partial<Declaration>, object[]]>([
    [
      'is paused without a word once a run has succeeded',
      { kubernetesSuspend: true },
      {},
      [{ ...PAUSE, isSilent: true }],
    ],
    ['so is one that is new', { ...NEW, kubernetesSuspend: true }, {}, [{ ...PAUSE, isSilent: true }]],
    ['stays down once a run has failed', { ...DOWN, kubernetesSuspend: true }, {}, []],
    ['is paused when it is suspended, also while it is down', { ...DOWN, kubernetesSuspend: false }, {}, [PAUSE]],
    ['is paused where nobody may', { ...DOWN, kubernetesSuspend: true }, { mayRun: false }, [PAUSE]],
  ])('%s', (_, stored, given, events) => {
    const planned = plan(facts({ check: aCheck(stored) }), declaration({ suspend: true, mayRun: true, ...given }))
    expect('events' in planned ? planned.events : []).toEqual(events)
  })

  it('is paused like any other when it is adopted', () => {
    const adoptee = aCheck({ ...ofTheApi, ...DOWN, kubernetesSuspend: true })
    const planned = plan(facts({ adoptee }), declaration({ adoptId: ID, suspend: true, mayRun: true }))
    expect(planned).toMatchObject({ kind: 'adopt', events: [{ kind: 'pause' }] })
  })
})

describe('a check that was retained when its resource was deleted', () => {
  const retention = { ...NO_ORIGIN, updatedAt: NOON, retainedAt: NOON, kubernetesAdopted: true }
  const retained = { check: aCheck(ofTheApi), retention }
  const planWith = (known: Partial<Facts>, given: Partial<Declaration> = {}) =>
    plan(facts({ retained, ...known }), declaration(given)).kind

  it('is managed by the resource again, as adopted as it was', () => {
    const planned = plan(facts({ retained }), declaration())
    expect(planned).toMatchObject({ kind: 'readopt', check: retained.check, origin: { kubernetesAdopted: true } })
    expect(planWith({}, { knownId: ID })).toBe('readopt')
  })

  it('is not, if the API has changed it since', () => {
    const changed = { check: aCheck({ ...ofTheApi, updatedAt: NOON + 1 }), retention }
    expect(plan(facts({ retained: changed }), declaration())).toMatchObject({ kind: 'reject', field: 'retained' })
  })

  it('is not, if the resource had another check since, or is in another project', () => {
    const later = { ...aTombstone, deletedAt: NOON + 1 }
    expect([planWith({ tombstone: aTombstone }), planWith({ tombstone: later })]).toEqual(['readopt', 'revive'])
    expect(planWith({}, { projectId: 'q' })).toBe('create')
  })

  it('is not, if a person has chosen a check, or the resource had another one', () => {
    const adoptee = aCheck({ ...ofTheApi, id: OTHER_ID })
    expect(planWith({ adoptee }, { adoptId: OTHER_ID })).toBe('adopt')
    expect(planWith({ adoptee }, { knownId: OTHER_ID })).toBe('regain')
    expect(planWith({ adoptee: retained.check }, { adoptId: ID })).toBe('adopt')
  })
})

describe('a check whose URL is not published', () => {
  const paused = { state: aState({ status: 'paused', expectedAt: null, dueAt: null }), kubernetesSuspend: false }
  it.each<[string, Partial<StoredCheck>, Partial<Declaration>]>([
    ['is not armed', { state: newState(NOON) }, {}],
    ['is not resumed', paused, { suspend: false }],
    ['stays armed when it was: its URL was published before', {}, {}],
  ])('%s', (_, stored, given) => {
    const check = aCheck(stored)
    expect(plan(facts({ check }), declaration({ ...given, ...UNPUBLISHED }))).toEqual({ kind: 'nothing', check })
  })

  it.each<[string, Partial<StoredCheck['state']>, boolean | null, string[]]>([
    ['is armed when it is', newState(NOON), null, ['arm']],
    ['is resumed then', paused.state, false, ['resume']],
    ['stays paused when the resource says so', paused.state, true, []],
    ['stays paused when the API did it', paused.state, null, []],
    ['is left alone when it is armed', {}, false, []],
    ['is left alone while it is down', { status: 'down', expectedAt: null, dueAt: null }, false, []],
  ])('%s', (_, state, suspend, events) => {
    expect(planArming(aState(state), suspend).map(({ kind }) => kind)).toEqual(events)
  })
})

describe('a check of the API', () => {
  it('is adopted with the declared spec, and armed', () => {
    const adoptee = aCheck({ ...ofTheApi, spec: { ...SPEC, periodSeconds: 60 }, state: newState(NOON) })
    const planned = plan(facts({ adoptee }), declaration({ adoptId: ID }))
    expect(planned).toMatchObject({ kind: 'adopt', check: adoptee, isRedescribed: true, isRescheduled: true })
    expect(kindsOf(planned)).toEqual(['update', 'arm'])
  })
})

describe('a declaration is rejected', () => {
  it.each<[string, Partial<Declaration>, Partial<Facts>, string, string]>([
    ['for a project that is gone', {}, { hasProject: false }, 'not_found', 'project not found'],
    [
      'for a project that is gone, to which its check would move',
      {},
      { check: aCheck({ projectId: 'old' }), hasProject: false },
      'not_found',
      'project not found',
    ],
    [
      'when it has another check than the one to adopt',
      { adoptId: OTHER_ID },
      { check: aCheck() },
      'conflict',
      `this resource has the check ${ID} already and cannot adopt ${OTHER_ID}: remove the id to adopt, or adopt it by a resource of another name`,
    ],
    [
      'when there is no check to adopt',
      { adoptId: 'x' },
      {},
      'not_found',
      'there is no check with the id "x" to adopt: correct the id, or remove it',
    ],
    [
      'when the check to adopt is of another project',
      { adoptId: ID },
      { adoptee: aCheck({ ...ofTheApi, projectId: 'q' }) },
      'forbidden',
      `the check ${ID} belongs to another project: only one of this resource's own project can be adopted`,
    ],
    [
      'when the check to adopt has a resource, although the API manages it',
      { adoptId: ID },
      { adoptee: aCheck({ managedBy: 'api' }) },
      'conflict',
      `the check ${ID} is managed by HeartbeatCheck payments/nightly in cluster default: delete that one with deletionPolicy Retain first`,
    ],
    [
      'when the check to adopt has a resource',
      { adoptId: ID },
      { adoptee: aCheck() },
      'conflict',
      `the check ${ID} is managed by HeartbeatCheck payments/nightly in cluster default: delete that one with deletionPolicy Retain first`,
    ],
  ])('%s', (_, given, known, code, message) => {
    const field = message === 'project not found' ? {} : { field: 'adoptId' }
    expect(plan(facts(known), declaration(given))).toEqual({ kind: 'reject', code, message, ...field })
  })
})

describe('a time until which a resource pauses its check', () => {
  const UNTIL = NOON + 1_000
  const pausedTo = (until: number | null) =>
    aState({
      status: 'paused',
      reason: 'paused',
      since: NOON - 1,
      dueAt: null,
      pause: { by: BY, until, comment: null },
    })
  const read = (
    given: Parameters<typeof readPause>[0],
    state = aState({ since: NOON - 1 }),
    suspended: boolean | null = null,
  ) => readPause(given, state, suspended, NOON)
  const none = (suspend: boolean | null) => ({ suspend, pausedUntil: null })
  const until = (time: number) => ({ suspend: true, pausedUntil: time })

  it.each([null, false])('suspends a check until then, if spec.suspend is %s', (suspend) => {
    expect(read({ suspend, pausedUntil: NOON + 1 })).toEqual(until(NOON + 1))
    expect(read({ suspend, pausedUntil: NOON })).toEqual(none(suspend))
    expect(read({ suspend })).toEqual(none(suspend))
    expect(readPause({ suspend, pausedUntil: NOON + 1 }, null, null, NOON)).toEqual(until(NOON + 1))
  })

  it('has no effect beside spec.suspend', () => {
    for (const pausedUntil of [UNTIL, 'kept', null] as const)
      expect(read({ suspend: true, pausedUntil }, pausedTo(UNTIL), true)).toEqual(none(true))
  })

  it('has passed once the history of the check says so, whatever our clock says', () => {
    expect(read({ suspend: null, pausedUntil: UNTIL }, aState({ status: 'new', since: UNTIL }))).toEqual(none(null))
    expect(read({ suspend: null, pausedUntil: UNTIL }, aState({ since: UNTIL - 1 }))).toEqual(until(UNTIL))
  })

  it('is kept as long as the resource pauses the check', () => {
    const kept = { suspend: null, pausedUntil: 'kept' } as const
    expect(read(kept, pausedTo(UNTIL), true)).toEqual(until(UNTIL))
    expect(read(kept, pausedTo(NOON), true)).toEqual(none(null))
    expect(read(kept, pausedTo(UNTIL), null)).toEqual(none(null))
    expect(read(kept, pausedTo(null), true)).toEqual(none(null))
    expect(read(kept)).toEqual(none(null))
  })

  const planned = (check: Partial<StoredCheck>, wanted: Partial<Declaration>) => {
    const decided = plan(facts({ check: aCheck(check) }), declaration(wanted))
    return 'events' in decided ? decided.events : decided.kind
  }

  it('pauses, is moved, and is the same the second time', () => {
    expect(planned({}, until(UNTIL))).toEqual([pauseUntil(UNTIL)])
    const paused = { state: pausedTo(UNTIL), kubernetesSuspend: true }
    expect(planned(paused, until(UNTIL))).toBe('nothing')
    expect(planned(paused, until(UNTIL + 1))).toEqual([pauseUntil(UNTIL + 1)])
    expect(planned(paused, none(true))).toEqual([pauseUntil(null)])
    expect(planned({ state: pausedTo(null), kubernetesSuspend: true }, until(UNTIL))).toEqual([pauseUntil(UNTIL)])
  })

  it('resumes when it is taken away, but nothing that others paused', () => {
    const paused = { state: pausedTo(UNTIL), kubernetesSuspend: true }
    expect(planned(paused, none(null))).toEqual([{ kind: 'resume' }])
    expect(planned(paused, none(false))).toEqual([{ kind: 'resume' }])
    expect(planned({ state: pausedTo(null), kubernetesSuspend: true }, none(null))).toEqual([])
    expect(planned({ state: pausedTo(UNTIL) }, none(null))).toBe('nothing')
  })

  it('pauses a check that a run of its suspended source took down', () => {
    const down = { state: aState({ status: 'down', reason: 'failed' }), kubernetesSuspend: true, spec: FOLLOWED }
    const followed = { spec: FOLLOWED, mayRun: true }
    expect(planned(down, { ...followed, ...none(true) })).toBe('nothing')
    expect(planned(down, { ...followed, ...until(UNTIL) })).toEqual([pauseUntil(UNTIL)])
  })
})
