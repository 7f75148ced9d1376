import { describe, expect, it } from 'vitest'
import { type LastRun, newerRun } from '../../../src/domain/last-run.ts'

const run = (job: string, startTime: string | null, given: Partial<LastRun> = {}): LastRun => ({
  job,
  runId: job,
  startTime,
  completionTime: null,
  outcome: 'Running',
  exitCode: null,
  reason: null,
  message: null,
  ...given,
})
const SIX = '2026-11-21T06:00:00Z'
const SEVEN = '2026-11-21T07:00:00Z'
const first = run('a', SIX)
const second = run('b', SEVEN)
const ended = run('a', SIX, { outcome: 'Failed', completionTime: SEVEN })

describe('the last run', () => {
  it.each([
    ['there is none', null, null, null],
    ['none is reported', first, null, first],
    ['none is stored', null, first, first],
    ['the reported one started later', first, second, second],
    ['the stored one started later', second, first, second],
    ['both started in one second', first, run('b', SIX), run('b', SIX)],
    ['the run has ended since', first, ended, ended],
    ['the run has ended before', ended, first, ended],
    ['another run started while it ran', second, ended, second],
    ['the reported one never started', first, run('b', null), first],
    ['the stored one never started', run('b', null), first, first],
    [
      'one that never started ended',
      first,
      run('b', null, { completionTime: SEVEN, outcome: 'Failed' }),
      run('b', null, { completionTime: SEVEN, outcome: 'Failed' }),
    ],
    [
      'its Job was made again under its name',
      { ...ended, runId: 'one' },
      { ...run('a', SEVEN), runId: 'other' },
      { ...run('a', SEVEN), runId: 'other' },
    ],
    [
      'a late report is of the Job that had its name before',
      { ...run('a', SEVEN), runId: 'other' },
      { ...ended, runId: 'one' },
      { ...run('a', SEVEN), runId: 'other' },
    ],
    ['the end of one has another reason', ended, { ...ended, reason: 'OOMKilled' }, { ...ended, reason: 'OOMKilled' }],
  ])('where %s', (_, stored, reported, shown) => {
    expect(newerRun(stored, reported)).toEqual(shown)
  })
})
