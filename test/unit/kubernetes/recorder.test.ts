import { describe, expect, it } from 'vitest'
import { ApiError, TransportError } from '../../../src/kubernetes/errors.ts'
import { cutNote } from '../../../src/kubernetes/event.ts'
import {
  createRecorder,
  FLUSH_MS,
  type Occurrence,
  type RecorderOptions,
  type Regarding,
} from '../../../src/kubernetes/recorder.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const MINUTE_MS = 60_000

const aRegarding = (overrides: Partial<Regarding> = {}): Regarding => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  namespace: 'shop',
  name: 'nightly',
  uid: 'uid-1',
  ...overrides,
})

const anOccurrence = (overrides: Partial<Occurrence> = {}): Occurrence => ({
  type: 'Normal',
  reason: 'Created',
  action: 'Create',
  note: 'made it',
  ...overrides,
})

interface Written {
  at: number
  verb: 'create' | 'patch'
  namespace: string
  name: string
  // biome-ignore lint/suspicious/noExplicitAny: read by the tests as JSON
  body: any
}

const refusal = (status: number, reason: string) =>
  new ApiError({
    request: 'an event',
    status,
    reason,
    message: `events: ${reason}`,
    details: null,
    retryAfterSeconds: null,
  })

function aRecorder(overrides: Partial<RecorderOptions> = {}) {
  const clock = createManualClock()
  const written: Written[] = []
  const existing = new Set<string>()
  const dropped: string[] = []
  const problems: string[] = []
  const behaviour: { fail?: unknown; failOn?: string; hang?: boolean; tries: number; aborted: number } = {
    tries: 0,
    aborted: 0,
  }

  async function receive(entry: Written, signal: AbortSignal | undefined): Promise<object> {
    behaviour.tries += 1
    if (behaviour.hang) {
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))).finally(() => {
        behaviour.aborted += 1
      })
    }
    if (behaviour.fail !== undefined) throw behaviour.fail
    if (behaviour.failOn !== undefined && behaviour.failOn === entry.body.regarding?.uid)
      throw new TransportError('reset')
    const key = `${entry.namespace}/${entry.name}`
    if (entry.verb === 'create' && existing.has(key)) throw refusal(409, 'AlreadyExists')
    if (entry.verb === 'patch' && !existing.has(key)) throw refusal(404, 'NotFound')
    existing.add(key)
    written.push(structuredClone(entry))
    return {}
  }
  const client = {
    create: (_type: object, body: Written['body'], options?: { signal?: AbortSignal }) =>
      receive(
        { at: clock.now(), verb: 'create', namespace: body.metadata.namespace, name: body.metadata.name, body },
        options?.signal,
      ),
    mergePatch: (
      _type: object,
      { namespace, name }: { namespace?: string; name: string },
      body: object,
      options?: { signal?: AbortSignal },
    ) => receive({ at: clock.now(), verb: 'patch', namespace: namespace!, name, body }, options?.signal),
  } as unknown as RecorderOptions['client']

  const recorder = createRecorder({
    client,
    clock,
    controller: 'example.com/controller',
    instance: 'pod-1',
    onProblem: (error) => void problems.push(error.message),
    onDropped: (reason) => void dropped.push(reason),
    ...overrides,
  })
  recorder.start()
  return { clock, recorder, client, written, existing, dropped, problems, behaviour }
}

const verbs = (written: Written[]) => written.map(({ verb, body }) => `${verb} ${body.series?.count ?? 1}`)

describe('an event', () => {
  it('is written with all that the server asks for, in the namespace of what it is about', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding({ resourceVersion: '7' }), anOccurrence({ type: 'Warning', note: 'übel' }))
    await clock.settle()
    expect(written).toHaveLength(1)
    expect(written[0]!.body).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: expect.stringMatching(/^nightly\.[0-9a-f]{16}$/), namespace: 'shop' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'example.com/controller',
      reportingInstance: 'pod-1',
      action: 'Create',
      reason: 'Created',
      regarding: {
        apiVersion: 'example.com/v1',
        kind: 'Thing',
        namespace: 'shop',
        name: 'nightly',
        uid: 'uid-1',
        resourceVersion: '7',
      },
      note: 'übel',
      type: 'Warning',
    })
  })

  it('tells when it happened, not when it was written', async () => {
    const { recorder, written, clock, behaviour } = aRecorder()
    behaviour.fail = new TransportError('refused')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(500)
    delete behaviour.fail
    await clock.advance(10_000)
    expect(written.map(({ body }) => body.eventTime)).toEqual(['2026-01-01T00:00:00.000000Z'])
  })

  it('on an object without a namespace is written to the default one', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding({ namespace: '' }), anOccurrence())
    await clock.settle()
    expect(written[0]).toMatchObject({ namespace: 'default' })
  })

  it.each([
    ['system:node:x', /^[0-9a-f]{16}$/],
    ['a'.repeat(253), /^a{236}\.[0-9a-f]{16}$/],
    [`${'a'.repeat(235)}-b${'c'.repeat(10)}`, /^a{235}\.[0-9a-f]{16}$/],
  ])('has a name that the server takes although its object is called %s', async (name, expected) => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding({ name }), anOccurrence())
    await clock.settle()
    expect(written[0]!.name).toMatch(expected)
    expect(written[0]!.name.length).toBeLessThanOrEqual(253)
  })

  it('has an instance of at most 128 characters', async () => {
    const { recorder, written, clock } = aRecorder({ instance: 'x'.repeat(129) })
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(written[0]!.body.reportingInstance).toBe('x'.repeat(128))
  })

  it('is held back until the recorder starts', async () => {
    const clock = createManualClock()
    const written: object[] = []
    const client = { create: async (_: object, body: object) => void written.push(body) }
    const recorder = createRecorder({
      client: client as unknown as RecorderOptions['client'],
      clock,
      controller: 'c',
      instance: 'i',
    })
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(written).toHaveLength(0)
    recorder.start()
    await clock.settle()
    expect(written).toHaveLength(1)
  })
})

describe('a note', () => {
  const bytes = (text: string) => Buffer.byteLength(text)

  it('of 1,024 bytes is left as it is, one more is cut', () => {
    expect(cutNote('a'.repeat(1_024))).toBe('a'.repeat(1_024))
    expect(cutNote('a'.repeat(1_025))).toBe(`${'a'.repeat(1_021)}…`)
    expect(bytes(cutNote('a'.repeat(1_025)))).toBe(1_024)
  })

  it('is cut between two characters, whatever their size', () => {
    for (const character of ['ü', '€', '🚀']) {
      for (let lead = 0; lead < 4; lead += 1) {
        const cut = cutNote('x'.repeat(lead) + character.repeat(600))
        expect(cut.isWellFormed()).toBe(true)
        expect(cut).toMatch(new RegExp(`^x{${lead}}(${character})+…$`, 'u'))
        expect(bytes(cut)).toBeLessThanOrEqual(1_024)
        expect(bytes(cut)).toBeGreaterThan(1_024 - bytes(character))
      }
    }
  })

  it('with half a character in it is made whole, as the server would', () => {
    expect(cutNote('a\ud83d')).toBe('a\ufffd')
    expect(bytes(cutNote('\ud83d'.repeat(400)))).toBeLessThanOrEqual(1_024)
  })

  it('reaches the server cut', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence({ note: 'a'.repeat(5_000) }))
    await clock.settle()
    expect(written[0]!.body.note).toHaveLength(1_022)
  })
})

describe('repeats', () => {
  it('make a series: created, made one of two, counted, and written when it has ended', async () => {
    const { recorder, written, clock } = aRecorder()
    for (let times = 0; times < 5; times += 1) {
      recorder.record(aRegarding(), anOccurrence())
      await clock.advance(10_000)
    }
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
    expect(written[1]).toMatchObject({
      name: written[0]!.name,
      namespace: 'shop',
      body: { series: { count: 2, lastObservedTime: '2026-01-01T00:00:10.000000Z' } },
    })
    await clock.advance(6 * MINUTE_MS - 10_001)
    expect(written).toHaveLength(2)
    await clock.advance(1)
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'patch 5'])
    expect(written[2]!.body).toEqual({ series: { count: 5, lastObservedTime: '2026-01-01T00:00:40.000000Z' } })
    await clock.advance(60 * MINUTE_MS)
    expect(written).toHaveLength(3)
  })

  it('of a series that goes on are written every half hour', async () => {
    const { recorder, written, clock } = aRecorder()
    for (let minute = 0; minute <= 65; minute += 1) {
      recorder.record(aRegarding(), anOccurrence())
      await clock.advance(MINUTE_MS)
    }
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'patch 31', 'patch 61'])
    expect(written.map(({ at }) => (at - written[0]!.at) / MINUTE_MS)).toEqual([0, 1, 31, 61])
  })

  it('after six minutes of quiet are a new event', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(6 * MINUTE_MS - 1)
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
    await clock.advance(6 * MINUTE_MS)
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'create 1'])
    expect(written[2]!.name).not.toBe(written[0]!.name)
  })

  it('that come before the first was written are written with it', async () => {
    const { recorder, written, clock } = aRecorder()
    for (let times = 0; times < 3; times += 1) recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 3'])
  })

  it('that come while the first is being written are not lost', async () => {
    const { recorder, written, clock, client } = aRecorder()
    const { create } = client
    client.create = ((...parameters: Parameters<typeof create>) => {
      recorder.record(aRegarding(), anOccurrence())
      client.create = create
      return create(...parameters)
    }) as typeof create
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
  })

  it.each([
    ['type', {}, { type: 'Warning' }],
    ['reason', {}, { reason: 'Updated' }],
    ['action', {}, { action: 'Update' }],
    ['note', {}, { note: 'made another' }],
    ['object', { name: 'weekly' }, {}],
    ['namespace', { namespace: 'other' }, {}],
    ['incarnation', { uid: 'uid-2' }, {}],
    ['kind', { kind: 'Other' }, {}],
  ] as const)('with another %s are another event', async (_, regarding, occurrence) => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    recorder.record(aRegarding(regarding), anOccurrence(occurrence))
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'create 1'])
  })

  it('with another version of the object are the same event', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding({ resourceVersion: '1' }), anOccurrence())
    await clock.settle()
    recorder.record(aRegarding({ resourceVersion: '2' }), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
  })

  it('of an event that the server has forgotten make it anew', async () => {
    const { recorder, written, clock, existing } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    existing.clear()
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'create 2'])
    expect(written[1]!.body).toMatchObject({ note: 'made it', eventTime: '2026-01-01T00:00:00.000000Z' })
  })
})

describe('an id', () => {
  it('makes the name, so that two processes write one event', async () => {
    const first = aRecorder()
    const second = aRecorder({ client: first.client, instance: 'pod-2' })
    for (const { recorder } of [first, second])
      recorder.record(aRegarding(), anOccurrence({ reason: 'Missed', id: 'flip-17' }))
    await first.clock.settle()
    expect(verbs(first.written)).toEqual(['create 1'])
    expect(first.written[0]!.name).toMatch(/^nightly\.[0-9a-f]{16}$/)
    expect([first.problems, second.problems, first.dropped, second.dropped]).toEqual([[], [], [], []])
  })

  it('is written once, however often it is told', async () => {
    const { recorder, behaviour, clock } = aRecorder()
    for (let times = 0; times < 5; times += 1) {
      recorder.record(aRegarding(), anOccurrence({ id: 'flip-17' }))
      await clock.advance(1_000)
    }
    expect(behaviour.tries).toBe(1)
  })

  it('tells events apart that are otherwise the same, and so does the object', async () => {
    const { recorder, written, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence({ id: 'flip-17' }))
    recorder.record(aRegarding(), anOccurrence({ id: 'flip-18' }))
    recorder.record(aRegarding({ uid: 'uid-2' }), anOccurrence({ id: 'flip-17' }))
    await clock.settle()
    expect(verbs(written)).toEqual(['create 1', 'create 1', 'create 1'])
    expect(new Set(written.map(({ name }) => name)).size).toBe(3)
  })
})

describe('limits', () => {
  it('let an object have 25 events, then one every five minutes, and another object its own', async () => {
    const { recorder, written, dropped, clock } = aRecorder()
    const say = (index: number, uid = 'uid-1') =>
      recorder.record(aRegarding({ uid }), anOccurrence({ note: `${index}` }))
    for (let index = 0; index < 30; index += 1) say(index)
    say(0, 'uid-2')
    await clock.settle()
    expect(written).toHaveLength(26)
    expect(dropped).toEqual(Array(5).fill('rate_limited'))
    await clock.advance(5 * MINUTE_MS - 1)
    say(100)
    expect(dropped).toHaveLength(6)
    await clock.advance(1)
    say(101)
    say(102)
    await clock.settle()
    expect(written).toHaveLength(27)
    expect(dropped).toHaveLength(7)
    await clock.advance(10 * MINUTE_MS)
    for (let index = 200; index < 203; index += 1) say(index)
    await clock.settle()
    expect(written).toHaveLength(29)
  })

  it('give no object more than 25 at once, however long it was quiet', async () => {
    const { recorder, dropped, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(24 * 60 * MINUTE_MS)
    for (let index = 0; index < 26; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    expect(dropped).toEqual(['rate_limited'])
  })

  it('do not count repeats', async () => {
    const { recorder, dropped, clock } = aRecorder()
    for (let times = 0; times < 1_000; times += 1) recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(dropped).toEqual([])
  })

  it('let a thousand wait, drop what is more, and take more when they are written', async () => {
    const { recorder, written, dropped, behaviour, clock } = aRecorder()
    behaviour.fail = new TransportError('refused')
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence())
    for (let index = 0; index < 1_000; index += 1) say(index)
    expect(dropped).toEqual([])
    say(1_000)
    expect(dropped).toEqual(['queue_full'])
    await clock.settle()
    say(1_001)
    expect(dropped).toEqual(['queue_full', 'queue_full'])
    // One that waits already may be repeated.
    say(0)
    expect(dropped).toHaveLength(2)
    delete behaviour.fail
    await clock.advance(10_000)
    expect(written).toHaveLength(1_000)
    say(1_002)
    await clock.settle()
    expect(written).toHaveLength(1_001)
    expect(dropped).toHaveLength(2)
  })

  it('remember no more than some thousand events', async () => {
    const { recorder, written, clock } = aRecorder()
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence())
    for (let index = 0; index < 4_097; index += 1) {
      say(index)
      if (index % 500 === 0) await clock.settle()
    }
    await clock.settle()
    expect(written).toHaveLength(4_097)
    say(4_096)
    say(0)
    await clock.settle()
    // The oldest is forgotten, and begins anew.
    expect(verbs(written.slice(4_097))).toEqual(['patch 2', 'create 1'])
  })

  it('forget nothing that is not written yet', async () => {
    const { recorder, written, behaviour, clock } = aRecorder()
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence())
    behaviour.failOn = 'uid-0'
    for (let index = 0; index < 4_097; index += 1) {
      say(index)
      if (index % 500 === 0) await clock.settle()
    }
    await clock.settle()
    delete behaviour.failOn
    await clock.advance(10_000)
    expect(written.at(-1)!.body.regarding.uid).toBe('uid-0')
    say(1)
    await clock.settle()
    expect(verbs(written.slice(-1))).toEqual(['create 1'])
  })

  it('have room again for what comes after refusals', async () => {
    const { recorder, behaviour, dropped, clock } = aRecorder()
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence())
    behaviour.fail = refusal(403, 'Forbidden')
    for (let index = 0; index < 1_000; index += 1) say(index)
    await clock.settle()
    say(1_000)
    expect(dropped).toEqual(Array(1_000).fill('failed'))
  })

  it('write two at a time', async () => {
    const { recorder, behaviour, clock } = aRecorder()
    behaviour.hang = true
    for (let index = 0; index < 5; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    await clock.settle()
    expect(behaviour.tries).toBe(2)
  })
})

describe('faults', () => {
  it.each([
    ['no answer', new TransportError('reset')],
    ['a busy server', refusal(429, 'TooManyRequests')],
    ['a server error', refusal(500, 'InternalError')],
  ])('of the kind that passes are tried again twelve times: %s', async (_, fault) => {
    const { recorder, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.fail = fault
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60 * MINUTE_MS)
    expect(behaviour.tries).toBe(12)
    expect(dropped).toEqual(['failed'])
    expect(problems).toEqual([`the event Created could not be written: ${fault.message}`])
  })

  it('that pass lose nothing, and write nothing twice', async () => {
    const { recorder, behaviour, written, dropped, problems, clock } = aRecorder()
    behaviour.fail = new TransportError('reset')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(20_000)
    delete behaviour.fail
    await clock.advance(60_000)
    expect(verbs(written)).toEqual(['create 1'])
    expect([dropped, problems]).toEqual([[], []])
  })

  it('are counted from the last write', async () => {
    const { recorder, behaviour, written, dropped, clock } = aRecorder()
    behaviour.fail = new TransportError('reset')
    recorder.record(aRegarding(), anOccurrence())
    while (behaviour.tries < 11) await clock.advance(1_000)
    delete behaviour.fail
    await clock.advance(60_000)
    behaviour.fail = new TransportError('reset')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(500)
    delete behaviour.fail
    await clock.advance(2_000)
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
    expect(dropped).toEqual([])
  })

  it('in an answer after the event was written count as written', async () => {
    const { recorder, written, problems, clock, client } = aRecorder()
    const { create } = client
    client.create = (async (...parameters: Parameters<typeof create>) => {
      await create(...parameters)
      throw new TransportError('reset')
    }) as typeof create
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60_000)
    expect(verbs(written)).toEqual(['create 1'])
    expect(problems).toEqual([])
  })

  it.each([403, 404, 422])('that are refusals are reported and not tried again: %i', async (status) => {
    const { recorder, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.fail = refusal(status, 'Refused')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60 * MINUTE_MS)
    expect({ tries: behaviour.tries, dropped, problems }).toEqual({
      tries: 1,
      dropped: ['failed'],
      problems: ['the event Created could not be written: events: Refused'],
    })
    // Forgotten, so that the next occurrence is tried.
    delete behaviour.fail
    recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(behaviour.tries).toBe(2)
  })

  it('never reach whoever records, not even those of its callbacks', async () => {
    const fail = () => {
      throw new Error('no')
    }
    const { recorder, behaviour, written, clock } = aRecorder({ onProblem: fail, onDropped: fail })
    behaviour.fail = refusal(403, 'Forbidden')
    recorder.record(aRegarding(), anOccurrence())
    recorder.record(undefined as never, anOccurrence())
    recorder.record(aRegarding(), undefined as never)
    await clock.settle()
    for (let index = 0; index < 30; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    await clock.settle()
    delete behaviour.fail
    recorder.record(aRegarding({ uid: 'uid-2' }), anOccurrence())
    await clock.settle()
    expect(written).toHaveLength(1)
  })
})

describe('stop', () => {
  it('writes what waits, also what waited for another try and counts not yet written, and takes nothing more', async () => {
    const { recorder, behaviour, written, dropped, clock } = aRecorder()
    for (let times = 0; times < 4; times += 1) {
      recorder.record(aRegarding(), anOccurrence())
      await clock.settle()
    }
    behaviour.fail = new TransportError('refused')
    recorder.record(aRegarding(), anOccurrence({ note: 'later' }))
    await clock.settle()
    delete behaviour.fail
    recorder.record(aRegarding(), anOccurrence({ note: 'last' }))
    const stopped = recorder.stop()
    recorder.record(aRegarding(), anOccurrence({ note: 'too late' }))
    await clock.settle()
    await stopped
    expect(verbs(written).sort()).toEqual(['create 1', 'create 1', 'create 1', 'patch 2', 'patch 4'])
    expect(dropped).toEqual(['stopped'])
    recorder.record(aRegarding(), anOccurrence({ note: 'even later' }))
    expect(dropped).toEqual(['stopped', 'stopped'])
    expect(clock.wakeTimes()).toEqual([])
  })

  it('waits no longer than its limit for a server that does not answer, and counts what it drops', async () => {
    const { recorder, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.hang = true
    for (let index = 0; index < 5; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    let hasStopped = false
    const stopped = recorder.stop().then(() => {
      hasStopped = true
    })
    await clock.advance(FLUSH_MS - 1)
    expect(hasStopped).toBe(false)
    await clock.advance(1)
    await stopped
    await clock.settle()
    expect(dropped).toEqual(Array(5).fill('stopped'))
    expect(behaviour.aborted).toBe(behaviour.tries)
    expect(problems).toEqual([])
    expect(clock.wakeTimes()).toEqual([])
  })

  it('does not try again what fails', async () => {
    const { recorder, behaviour, dropped, clock } = aRecorder()
    behaviour.fail = new TransportError('refused')
    recorder.record(aRegarding(), anOccurrence())
    const stopped = recorder.stop()
    await clock.settle()
    await stopped
    expect({ tries: behaviour.tries, dropped }).toEqual({ tries: 1, dropped: ['stopped'] })
    await recorder.stop()
  })
})
