import { describe, expect, it } from 'vitest'
import { succeededAtOf } from '../../../../src/operator/declare/spec-of-source.ts'
import type { Outcome } from '../../../../src/operator/sources/source-kind.ts'

const NOON = Date.parse('2026-01-02T12:00:00Z')
const run = (outcome: Outcome, seconds: number) => ({ outcome, endedAt: NOON + seconds * 1_000 })

describe('when the newest run that has ended succeeded', () => {
  it.each([
    ['is not known without one', null, [], null],
    ['is in the CronJob, whose Jobs are gone', '2026-01-02T12:00:00Z', [], NOON],
    ['is the end of its Job', null, [run('Succeeded', 5), run('Succeeded', 3)], NOON + 5_000],
    ['is in the CronJob, if that is later', '2026-01-02T12:00:09Z', [run('Succeeded', 5)], NOON + 9_000],
    ['is the end of its Job, if that is later', '2026-01-02T12:00:00Z', [run('Succeeded', 5)], NOON + 5_000],
    ['is known although an older one failed', null, [run('Succeeded', 5), run('Failed', 4)], NOON + 5_000],
    ['is never, if it failed', '2026-01-02T12:00:00Z', [run('Succeeded', 5), run('Failed', 6)], null],
    ['is never, if one failed in the same second', null, [run('Succeeded', 5), run('Failed', 5)], null],
    ['is what it was while the next one runs', null, [run('Succeeded', 5), run('Running', 6)], NOON + 5_000],
    ['is not known by a time that cannot be read', 'soon', [], null],
  ])('%s', (_, lastSuccessfulTime, runs, at) => {
    expect(succeededAtOf({ lastSuccessfulTime }, runs)).toBe(at)
  })
})
