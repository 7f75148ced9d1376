import { describe, expect, it } from 'vitest'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { anOccurrence, aRecorder, aRegarding, verbs } from './events.ts'

const patient = anOccurrence({ note: 'went well', isPatient: true })
const urgent = anOccurrence({ note: 'went wrong' })

/** Whose Events were written, in their order. */
const uidsOf = (written: { body: { regarding: { uid: string } } }[]) => written.map(({ body }) => body.regarding.uid)

describe('a patient event', () => {
  it('waits for the end of the backlog, where others do not', async () => {
    let isBusy = true
    const { recorder, written, dropped, clock } = aRecorder({ isBusy: () => isBusy })
    recorder.record(aRegarding({ uid: 'uid-1' }), patient)
    recorder.record(aRegarding({ uid: 'uid-2' }), urgent)
    await clock.advance(10_000)
    expect(uidsOf(written)).toEqual(['uid-2'])
    isBusy = false
    await clock.advance(1_000)
    expect(uidsOf(written)).toEqual(['uid-2', 'uid-1'])
    expect(dropped).toEqual([])
  })

  it('comes after all others that wait', async () => {
    const { recorder, written, clock } = aRecorder({ isBusy: () => false })
    for (let index = 0; index < 5; index += 1) recorder.record(aRegarding({ uid: `patient-${index}` }), patient)
    for (let index = 0; index < 5; index += 1) recorder.record(aRegarding({ uid: `urgent-${index}` }), urgent)
    await clock.settle()
    // The two writers had nothing to do, and took the first two.
    const rest = uidsOf(written).slice(2)
    expect(rest.map((uid) => uid.split('-')[0])).toEqual([...Array(5).fill('urgent'), ...Array(3).fill('patient')])
  })

  it('takes no room from others: a thousand of either wait', async () => {
    const { recorder, dropped, behaviour } = aRecorder({ isBusy: () => true })
    behaviour.fail = new TransportError('refused')
    for (let index = 0; index < 1_000; index += 1) recorder.record(aRegarding({ uid: `patient-${index}` }), patient)
    for (let index = 0; index < 1_000; index += 1) recorder.record(aRegarding({ uid: `urgent-${index}` }), urgent)
    expect(dropped).toEqual([])
    recorder.record(aRegarding({ uid: 'one more' }), patient)
    recorder.record(aRegarding({ uid: 'one more' }), urgent)
    expect(dropped).toEqual(['queue_full', 'queue_full'])
  })

  it.each([
    ['patient', patient],
    ['urgent', urgent],
  ])('leaves no room for what was lost while more than half of its limit waits: %s', async (_, occurrence) => {
    const { recorder, behaviour, clock } = aRecorder({ isBusy: () => false, maxWaiting: 10 })
    behaviour.fail = new TransportError('refused')
    const say = (index: number) => recorder.record(aRegarding({ uid: `uid-${index}` }), occurrence)
    for (let index = 0; index < 5; index += 1) say(index)
    expect(recorder.hasRoom()).toBe(true)
    say(5)
    expect(recorder.hasRoom()).toBe(false)
    delete behaviour.fail
    await clock.advance(10_000)
    expect(recorder.hasRoom()).toBe(true)
  })

  it('makes a series as others do, which waits too', async () => {
    let isBusy = false
    const { recorder, written, clock } = aRecorder({ isBusy: () => isBusy })
    recorder.record(aRegarding(), patient)
    await clock.settle()
    isBusy = true
    recorder.record(aRegarding(), patient)
    await clock.advance(5_000)
    expect(verbs(written)).toEqual(['create 1'])
    isBusy = false
    await clock.advance(1_000)
    expect(verbs(written)).toEqual(['create 1', 'patch 2'])
  })

  it('is written at a stop, whatever is left to do', async () => {
    const { recorder, written, dropped, clock } = aRecorder({ isBusy: () => true })
    recorder.record(aRegarding(), patient)
    await clock.settle()
    const stopped = recorder.stop()
    await clock.settle()
    await stopped
    expect({ written: written.length, dropped }).toEqual({ written: 1, dropped: [] })
  })
})
