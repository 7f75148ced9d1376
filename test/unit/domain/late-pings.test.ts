import { describe, expect, it } from 'vitest'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const spec = aSpec({ maxRuntimeMs: 10 * MINUTE })
const NOW = NOON + 5 * MINUTE
const late = (kind: 'success' | 'fail' | 'start', arrivedAt: number, runId: string | null = null): CheckEvent =>
  kind === 'start' ? { kind, runId, arrivedAt } : { kind, runId, durationMs: null, arrivedAt }
const run = (id: string | null, startedAt: number) => ({ id, startedAt, deadlineAt: startedAt + 10 * MINUTE })

describe('a ping that is recorded late', () => {
  it('counts from its arrival', () => {
    const state = aState({ status: 'up', since: NOON - MINUTE, lastPingAt: NOON - MINUTE })
    const { state: after, flip } = transition(spec, state, late('fail', NOON), NOW)
    expect(after).toMatchObject({ status: 'down', lastPingAt: NOON })
    expect(flip).toMatchObject({ to: 'down', at: NOON })
  })

  it.each(['success', 'fail'] as const)('(%s) is history behind a newer completion, and ends its run', (kind) => {
    const runs = [run('a', NOON - MINUTE), run('b', NOON - MINUTE)]
    const state = aState({ status: 'up', since: NOON - MINUTE, lastPingAt: NOON + SECOND, runs })
    const { state: after, flip } = transition(spec, state, late(kind, NOON, 'a'), NOW)
    expect(flip).toBeNull()
    expect(after).toMatchObject({ status: 'up', lastPingAt: NOON + SECOND, dueAt: state.dueAt, runs: [runs[1]] })
    expect(after.pingsTotal).toBe(state.pingsTotal + 1)
  })

  it('behind a newer completion ends no run that began after it', () => {
    const runs = [run(null, NOON + 2 * SECOND)]
    const state = aState({ status: 'up', since: NOON - MINUTE, lastPingAt: NOON + SECOND, runs })
    expect(transition(spec, state, late('success', NOON), NOW).state.runs).toEqual(runs)
  })

  it('does not move the start of a run that was started again since', () => {
    const runs = [run(null, NOON + SECOND)]
    const state = aState({ status: 'up', since: NOON - MINUTE, lastStartAt: NOON + SECOND, runs })
    const { state: after } = transition(spec, state, late('start', NOON), NOW)
    expect(after).toMatchObject({ runs, lastStartAt: NOON + SECOND })
  })
})
