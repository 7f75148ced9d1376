import { describe, expect, it } from 'vitest'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { cutNote } from '../../../src/kubernetes/event.ts'
import { MINUTE } from '../../support/builders.ts'
import { anIdleRecorder, anOccurrence, aRecorder, aRegarding, verbs } from './events.ts'

describe('an event', () => {
  it('is written with all that the server asks for, in the namespace of what it is about', async () => {
    const { write, written } = aRecorder()
    await write({ type: 'Warning', note: 'übel' }, { resourceVersion: '7' })
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

  it('has the time of its occurrence, not of its write', async () => {
    const { recorder, written, clock, behaviour } = aRecorder()
    behaviour.fail = new TransportError('refused')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(500)
    delete behaviour.fail
    await clock.advance(10_000)
    expect(written.map(({ body }) => body.eventTime)).toEqual(['2026-01-01T00:00:00.000000Z'])
  })

  it.each([
    ['a'.repeat(253), /^a{236}\.[0-9a-f]{16}$/],
    [`${'a'.repeat(235)}-b${'c'.repeat(10)}`, /^a{235}\.[0-9a-f]{16}$/],
  ])('has a name that the server takes although its object is called %s', async (name, expected) => {
    const { write, written } = aRecorder()
    await write({}, { name })
    expect(written[0]!.name).toMatch(expected)
    expect(written[0]!.name.length).toBeLessThanOrEqual(253)
  })

  it('has an instance of at most 128 characters', async () => {
    const { write, written } = aRecorder({ instance: 'x'.repeat(129) })
    await write()
    expect(written[0]!.body.reportingInstance).toBe('x'.repeat(128))
  })

  it('is held back until the recorder starts', async () => {
    const { recorder, write, written, clock } = anIdleRecorder()
    await write()
    expect(written).toHaveLength(0)
    recorder.start()
    await clock.settle()
    expect(written).toHaveLength(1)
  })
})

describe('a note', () => {
  const bytes = (text: string) => Buffer.byteLength(text)

  it('a note of 1,024 bytes is kept, a longer one is cut', () => {
    expect(cutNote('a'.repeat(1_024))).toBe('a'.repeat(1_024))
    expect(cutNote('a'.repeat(1_025))).toBe(`${'a'.repeat(1_021)}…`)
    expect(bytes(cutNote('a'.repeat(1_025)))).toBe(1_024)
  })

  it('a note is cut between two characters, whatever their size', () => {
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

  it('half a character in a note is replaced, as the server does it', () => {
    expect(cutNote('a\ud83d')).toBe('a\ufffd')
    expect(bytes(cutNote('\ud83d'.repeat(400)))).toBeLessThanOrEqual(1_024)
  })

  it('a note is cut before it is sent', async () => {
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
    await clock.advance(6 * MINUTE - 10_001)
    expect(written).toHaveLength(2)
    await clock.advance(1)
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'patch 5'])
    expect(written[2]!.body).toEqual({ series: { count: 5, lastObservedTime: '2026-01-01T00:00:40.000000Z' } })
    await clock.advance(60 * MINUTE)
    expect(written).toHaveLength(3)
  })

  it('the count of a long series is written every half hour', async () => {
    const { recorder, written, clock } = aRecorder()
    for (let minute = 0; minute <= 65; minute += 1) {
      recorder.record(aRegarding(), anOccurrence())
      await clock.advance(MINUTE)
    }
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'patch 31', 'patch 61'])
    expect(written.map(({ at }) => (at - written[0]!.at) / MINUTE)).toEqual([0, 1, 31, 61])
  })

  it('after six minutes of quiet are a new event', async () => {
    const { recorder, write, written, clock } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(6 * MINUTE - 1)
    await write()
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
    await clock.advance(6 * MINUTE)
    await write()
    expect(verbs(written)).toEqual(['create 1', 'patch 2', 'create 1'])
    expect(written[2]!.name).not.toBe(written[0]!.name)
  })

  it('repeats before the first write are written with it', async () => {
    const { recorder, written, clock } = aRecorder()
    for (let times = 0; times < 3; times += 1) recorder.record(aRegarding(), anOccurrence())
    await clock.settle()
    expect(verbs(written)).toEqual(['create 3'])
  })

  it('repeats during the first write are not lost', async () => {
    const { recorder, write, written, client } = aRecorder()
    const { create } = client
    client.create = ((...parameters: Parameters<typeof create>) => {
      recorder.record(aRegarding(), anOccurrence())
      client.create = create
      return create(...parameters)
    }) as typeof create
    await write()
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
    const { recorder, write, written } = aRecorder()
    recorder.record(aRegarding(), anOccurrence())
    await write(occurrence, regarding)
    expect(verbs(written)).toEqual(['create 1', 'create 1'])
  })

  it('an occurrence on another version of the object repeats the event', async () => {
    const { write, written } = aRecorder()
    await write({}, { resourceVersion: '1' })
    await write({}, { resourceVersion: '2' })
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
  })

  it('a repeat creates the event again when the server has dropped it', async () => {
    const { write, written, existing } = aRecorder()
    await write()
    existing.clear()
    await write()
    expect(verbs(written)).toEqual(['create 1', 'create 2'])
    expect(written[1]!.body).toMatchObject({ note: 'made it', eventTime: '2026-01-01T00:00:00.000000Z' })
  })
})

describe('an id', () => {
  it('an id makes the name, so that two processes write one event', async () => {
    const first = aRecorder()
    const second = aRecorder({ client: first.client, instance: 'pod-2' })
    for (const { recorder } of [first, second])
      recorder.record(aRegarding(), anOccurrence({ reason: 'Missed', id: 'flip-17' }))
    await first.clock.settle()
    expect(verbs(first.written)).toEqual(['create 1'])
    expect(first.written[0]!.name).toMatch(/^nightly\.[0-9a-f]{16}$/)
    expect([first.problems, second.problems, first.dropped, second.dropped]).toEqual([[], [], [], []])
  })

  it('an occurrence with an id is written once, however often it is recorded', async () => {
    const { recorder, behaviour, clock } = aRecorder()
    for (let times = 0; times < 5; times += 1) {
      recorder.record(aRegarding(), anOccurrence({ id: 'flip-17' }))
      await clock.advance(1_000)
    }
    expect(behaviour.tries).toBe(1)
  })

  it('different ids make different events, and so do different objects', async () => {
    const { recorder, write, written } = aRecorder()
    recorder.record(aRegarding(), anOccurrence({ id: 'flip-17' }))
    recorder.record(aRegarding(), anOccurrence({ id: 'flip-18' }))
    await write({ id: 'flip-17' }, { uid: 'uid-2' })
    expect(verbs(written)).toEqual(['create 1', 'create 1', 'create 1'])
    expect(new Set(written.map(({ name }) => name)).size).toBe(3)
  })
})
