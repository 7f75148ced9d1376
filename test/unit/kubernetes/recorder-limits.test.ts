import { describe, expect, it } from 'vitest'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { FLUSH_MS } from '../../../src/kubernetes/recorder.ts'
import { MINUTE } from '../../support/builders.ts'
import { isPending } from '../../support/until.ts'
import { anOccurrence, aRecorder, aRegarding, refusal, verbs } from './events.ts'

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
    await clock.advance(5 * MINUTE - 1)
    say(100)
    expect(dropped).toHaveLength(6)
    await clock.advance(1)
    say(101)
    say(102)
    await clock.settle()
    expect(written).toHaveLength(27)
    expect(dropped).toHaveLength(7)
    await clock.advance(10 * MINUTE)
    for (let index = 200; index < 203; index += 1) say(index)
    await clock.settle()
    expect(written).toHaveLength(29)
    // After a day there are 25 again and no more; repeats do not count.
    await clock.advance(24 * 60 * MINUTE)
    const before = dropped.length
    for (let index = 300; index < 326; index += 1) for (const _ of [1, 2]) say(index)
    expect(dropped.length - before).toBe(2)
  })

  it('let 20,000 wait, drop what is more, and take more when they are written', async () => {
    const { recorder, written, dropped, behaviour, clock } = aRecorder()
    behaviour.fail = new TransportError('refused')
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence())
    for (let index = 0; index < 20_000; index += 1) say(index)
    expect(dropped).toEqual([])
    say(20_000)
    expect(dropped).toEqual(['queue_full'])
    // One that waits already may be repeated.
    say(0)
    expect(dropped).toHaveLength(1)
    delete behaviour.fail
    await clock.advance(10_000)
    expect(written).toHaveLength(20_000)
    say(20_001)
    await clock.settle()
    expect(written).toHaveLength(20_001)
    expect(dropped).toHaveLength(1)
  })

  it('know the newest 20,000 that were written, and forget nothing that is not', async () => {
    const { recorder, written, behaviour, clock } = aRecorder()
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), anOccurrence({ id: 'once' }))
    behaviour.failOn = 'uid-0'
    for (let index = 0; index < 10_000; index += 1) say(index)
    await clock.settle()
    for (let index = 10_000; index < 20_001; index += 1) say(index)
    await clock.settle()
    expect(behaviour.tries).toBe(20_001)
    delete behaviour.failOn
    await clock.advance(10_000)
    expect(written.at(-1)!.body.regarding.uid).toBe('uid-0')
    const { tries } = behaviour
    say(2)
    await clock.settle()
    expect(behaviour.tries).toBe(tries)
    // The oldest is forgotten, and its name prevents a second Event.
    say(1)
    await clock.settle()
    expect(behaviour.tries).toBe(tries + 1)
    expect(written).toHaveLength(20_001)
  })

  it('write warnings before normal events, and those of each namespace in turn', async () => {
    const { recorder, written, clock } = aRecorder()
    const say = (namespace: string, index: number, type: 'Normal' | 'Warning') =>
      recorder.record(aRegarding({ namespace, uid: `${namespace}-${index}` }), anOccurrence({ type }))
    for (let index = 0; index < 5; index += 1) say('busy', index, 'Normal')
    say('busy', 5, 'Warning')
    say('quiet', 0, 'Normal')
    await clock.settle()
    // The two writers had nothing to do, and took the first two.
    const uids = written.slice(2).map(({ body }) => body.regarding.uid)
    expect(uids).toEqual(['busy-5', 'busy-2', 'quiet-0', 'busy-3', 'busy-4'])
  })

  it('rejected events make room for later ones', async () => {
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
    ['is being deleted', refusal(403, 'Forbidden', { causes: [{ reason: 'NamespaceTerminating' }] }), [], []],
    ['is gone', refusal(404, 'NotFound', { kind: 'namespaces', name: 'shop' }), [], []],
    [
      'is there',
      refusal(403, 'Forbidden', { causes: [{ reason: 'FieldValueForbidden' }] }),
      ['the event Created could not be written: events: Forbidden'],
      ['failed'],
    ],
  ])('F10: a rejected Event whose namespace %s', async (_, fault, expectedProblems, expectedDrops) => {
    const { recorder, write, behaviour, written, dropped, problems, clock } = aRecorder()
    behaviour.fail = fault
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60 * MINUTE)
    expect(behaviour.tries).toBe(1)
    expect([problems, dropped]).toEqual([expectedProblems, expectedDrops])
    // It is forgotten: the next one is written.
    behaviour.fail = undefined
    await write()
    expect(verbs(written)).toEqual(['create 1'])
  })

  it.each([
    ['no answer', new TransportError('reset')],
    ['a busy server', refusal(429, 'TooManyRequests')],
    ['a server error', refusal(500, 'InternalError')],
  ])('transient errors are retried twelve times: %s', async (_, fault) => {
    const { recorder, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.fail = fault
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60 * MINUTE)
    expect(behaviour.tries).toBe(12)
    expect(dropped).toEqual(['failed'])
    expect(problems).toEqual([`the event Created could not be written: ${fault.message}`])
  })

  it('transient errors lose nothing, and nothing is written twice', async () => {
    const { recorder, behaviour, written, dropped, problems, clock } = aRecorder()
    behaviour.fail = new TransportError('reset')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(20_000)
    delete behaviour.fail
    await clock.advance(60_000)
    expect(verbs(written)).toEqual(['create 1'])
    expect([dropped, problems]).toEqual([[], []])
  })

  it('retries are counted from the last write', async () => {
    const { recorder, behaviour, written, dropped, clock } = aRecorder({ random: () => 0 })
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

  it('an event whose response was lost counts as written', async () => {
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

  it.each([403, 404, 409, 422])('a rejection is reported and not retried: %i', async (status) => {
    const { recorder, write, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.fail = refusal(status, 'Refused')
    recorder.record(aRegarding(), anOccurrence())
    await clock.advance(60 * MINUTE)
    expect({ tries: behaviour.tries, dropped, problems }).toEqual({
      tries: 1,
      dropped: ['failed'],
      problems: ['the event Created could not be written: events: Refused'],
    })
    // Forgotten, so that the next occurrence is tried.
    delete behaviour.fail
    await write()
    expect(behaviour.tries).toBe(2)
  })

  it('record() never throws, not even an error of its callbacks', async () => {
    const fail = () => {
      throw new Error('no')
    }
    const { recorder, write, behaviour, written, clock } = aRecorder({ onProblem: fail, onDropped: fail })
    behaviour.fail = refusal(403, 'Forbidden')
    recorder.record(aRegarding(), anOccurrence())
    recorder.record(undefined as never, anOccurrence())
    recorder.record(aRegarding(), undefined as never)
    await clock.settle()
    for (let index = 0; index < 30; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    await clock.settle()
    delete behaviour.fail
    await write({}, { uid: 'uid-2' })
    expect(written).toHaveLength(1)
  })
})

describe('stop', () => {
  it('writes what waits, also what waited for another try and counts not yet written, and takes nothing more', async () => {
    const { recorder, write, behaviour, written, dropped, clock } = aRecorder()
    for (let times = 0; times < 4; times += 1) {
      await write()
    }
    behaviour.fail = new TransportError('refused')
    await write({ note: 'later' })
    delete behaviour.fail
    recorder.record(aRegarding(), anOccurrence({ note: 'last' }))
    const stopped = recorder.stop()
    await write({ note: 'too late' })
    await stopped
    expect(verbs(written).sort()).toEqual(['create 1', 'create 1', 'create 1', 'patch 2', 'patch 4'])
    expect(dropped).toEqual(['stopped'])
    recorder.record(aRegarding(), anOccurrence({ note: 'even later' }))
    expect(dropped).toEqual(['stopped', 'stopped'])
    expect(clock.wakeTimes()).toEqual([])
  })

  it('stop waits no longer than its limit for a response, and counts the dropped events', async () => {
    const { recorder, behaviour, dropped, problems, clock } = aRecorder()
    behaviour.hang = true
    for (let index = 0; index < 5; index += 1) recorder.record(aRegarding(), anOccurrence({ note: `${index}` }))
    const stopped = recorder.stop()
    await clock.advance(FLUSH_MS - 1)
    expect(await isPending(stopped)).toBe(true)
    await clock.advance(1)
    await stopped
    await clock.settle()
    expect(dropped).toEqual(Array(5).fill('stopped'))
    expect(behaviour.aborted).toBe(behaviour.tries)
    expect(problems).toEqual([])
    expect(clock.wakeTimes()).toEqual([])
  })

  it('stop does not retry', async () => {
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

describe('an occurrence', () => {
  const heard: string[] = []
  const say = (recorder: ReturnType<typeof aRecorder>['recorder'], id: string) =>
    recorder.record(aRegarding(), anOccurrence({ id, onWritten: () => heard.push(id) }))
  const take = () => heard.splice(0)

  it('with an id is reported once it is written, to each who recorded it', async () => {
    const { recorder, clock } = aRecorder()
    say(recorder, 'a')
    say(recorder, 'a')
    expect(take()).toEqual([])
    await clock.settle()
    expect(take()).toEqual(['a', 'a'])
    say(recorder, 'a')
    expect(take()).toEqual(['a'])
  })

  it('with an id is written once, also an hour later', async () => {
    const { recorder, behaviour, clock } = aRecorder()
    say(recorder, 'a')
    await clock.advance(60 * MINUTE)
    say(recorder, 'a')
    await clock.settle()
    expect(behaviour.tries).toBe(1)
    expect(take()).toEqual(['a', 'a'])
  })

  it('without an id is reported as soon as it is counted', () => {
    const { recorder } = aRecorder()
    for (const count of [1, 2]) {
      recorder.record(aRegarding(), anOccurrence({ onWritten: () => heard.push('counted') }))
      expect(take(), `${count}`).toEqual(['counted'])
    }
  })

  it('is reported when another process wrote it, and when the server rejects it', async () => {
    for (const [status, reason] of [
      [409, 'AlreadyExists'],
      [403, 'Forbidden'],
    ] as const) {
      const { recorder, behaviour, clock } = aRecorder()
      behaviour.fail = refusal(status, reason)
      say(recorder, 'a')
      await clock.settle()
      expect(take(), reason).toEqual(['a'])
    }
  })

  it('is reported when the object has had too many, and not when too many wait or the server is away for too long', async () => {
    const { recorder, behaviour, clock } = aRecorder({ maxWaiting: 1_000 })
    behaviour.fail = new TransportError('refused')
    for (let index = 0; index < 26; index += 1) say(recorder, `${index}`)
    expect(take()).toEqual(['25'])
    for (let index = 0; index < 975; index += 1) recorder.record(aRegarding({ uid: `uid-x${index}` }), anOccurrence())
    say(recorder, 'more')
    await clock.advance(60 * MINUTE)
    expect(take()).toEqual([])
    // It was lost, and may be recorded again.
    delete behaviour.fail
    say(recorder, '0')
    await clock.settle()
    expect(take()).toEqual(['0'])
  })

  it('is not reported after a stop', async () => {
    const { recorder, behaviour, clock } = aRecorder()
    behaviour.hang = true
    say(recorder, 'a')
    const stopped = recorder.stop()
    await clock.advance(FLUSH_MS)
    await stopped
    expect(take()).toEqual([])
  })
})
