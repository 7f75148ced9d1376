import { describe, expect, it } from 'vitest'
import {
  isDisconnected,
  isLockedElsewhere,
  isOut,
  type Sent,
  sortOutcomes,
} from '../../../../src/checks/ping/outcomes.ts'
import type { PingFailure, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import { NOON } from '../../../support/builders.ts'

const PING_ID = Buffer.alloc(16, 1)
const ERROR = new Error('why')
const sent = (publicId: string, more: Partial<Sent> = {}): Sent => ({
  ping: { publicId, body: null },
  since: NOON,
  isRetry: false,
  isLocked: false,
  pingId: null,
  ...more,
})
const failure = (kind: PingFailure['kind']): PingFailure =>
  kind === 'lost' ? { kind, error: ERROR, pingId: PING_ID } : { kind, error: ERROR }
const LOCKED = failure('locked elsewhere')

/** What became of each: `again`, `unstored`, or its result. */
function sort(
  group: readonly Sent[],
  outcomes: readonly PingOutcome[],
  given: { disk?: boolean; room?: boolean; now?: number } = {},
) {
  const { disk = false, room = true, now = NOON } = given
  const { settled, unstored, again, errors } = sortOutcomes(group, outcomes, { isForDisk: disk, hasRoom: room, now })
  const nameOf = ({ ping }: Sent) => ping.publicId
  return {
    settled: settled.map(([one, result]) => [nameOf(one), result]),
    unstored: unstored.map((one) => [nameOf(one), one.pingId]),
    again: again.map((one) => [nameOf(one), one.isRetry, one.isLocked]),
    errors: [...errors],
  }
}
const NONE = { settled: [], unstored: [], again: [], errors: [] }

describe('a ping', () => {
  it('that the database has decided about is settled', () => {
    const outcomes = ['stored', 'run_refused', 'duplicate', 'unknown'] as const
    const settled = outcomes.map((outcome) => [outcome, outcome])
    for (const disk of [true, false])
      expect(
        sort(
          outcomes.map((name) => sent(name)),
          outcomes,
          { disk },
        ),
      ).toEqual({ ...NONE, settled })
  })

  it('that was not sent is sent once more, and then it is unavailable', () => {
    const outcomes = [failure('unsent'), failure('unsent')]
    expect(sort([sent('a'), sent('b', { isRetry: true })], outcomes)).toEqual({
      ...NONE,
      again: [['a', true, false]],
      settled: [['b', 'unavailable']],
      errors: [[ERROR, 1]],
    })
  })

  it.each(['lost', 'outage', 'rejected'] as const)('that is %s is unavailable, and its error is counted', (kind) => {
    const settled = ['a', 'b'].map((name) => [name, 'unavailable'])
    const both = [failure(kind), failure(kind)]
    expect(sort([sent('a'), sent('b')], both)).toEqual({ ...NONE, settled, errors: [[ERROR, 2]] })
  })
})

describe('with a disk', () => {
  it('what the database does not store goes there, with the id that it may have been stored under', () => {
    const kinds = ['unsent', 'lost', 'outage', 'locked elsewhere'] as const
    const unstored = kinds.map((kind) => [kind, kind === 'lost' ? PING_ID : null])
    expect(
      sort(
        kinds.map((kind) => sent(kind)),
        kinds.map(failure),
        { disk: true },
      ),
    ).toEqual({ ...NONE, unstored })
  })

  it('what the database rejects does not: it would be rejected again', () => {
    const settled = [['a', 'unavailable']]
    expect(sort([sent('a')], [failure('rejected')], { disk: true })).toEqual({ ...NONE, settled, errors: [[ERROR, 1]] })
  })

  it('that is full, only what is not sent again does', () => {
    const group = [sent('a'), sent('b', { isRetry: true })]
    const outcomes = [failure('unsent'), failure('unsent')]
    const sorted = { again: [['a', true, false]], unstored: [['b', null]] }
    expect(sort(group, outcomes, { disk: true, room: false })).toEqual({ ...NONE, ...sorted })
  })
})

describe('a ping whose row another session has locked', () => {
  it('is sent again for two seconds, and then it is unavailable, which is no error', () => {
    const at = (now: number) => sort([sent('a')], [LOCKED], { now })
    expect(at(NOON + 1_999)).toEqual({ ...NONE, again: [['a', false, true]] })
    expect(at(NOON + 2_000)).toEqual({ ...NONE, settled: [['a', 'unavailable']] })
  })

  it('is one of a hundred that are sent again', () => {
    const group = Array.from({ length: 101 }, (_, index) => sent(`${index}`))
    const sorted = sort(
      group,
      group.map(() => LOCKED),
    )
    expect([sorted.again.length, sorted.settled]).toEqual([100, [['100', 'unavailable']]])
  })

  it('is not sent after a newer one of its check that is stored', () => {
    const group = [sent('a'), sent('b'), sent('a')]
    expect(sort(group, [LOCKED, LOCKED, 'stored']).again).toEqual([['b', false, true]])
    expect(sort(group, [LOCKED, LOCKED, failure('outage')]).again).toHaveLength(2)
    expect(sort([sent('a'), sent('a')], ['stored', LOCKED]).again).toHaveLength(1)
  })
})

it('outcomes say whether the database is away, whether the connection broke, and whether a row is locked', () => {
  const outcomes: PingOutcome[] = [
    'stored',
    ...(['unsent', 'lost', 'outage', 'rejected', 'locked elsewhere'] as const).map(failure),
  ]
  expect(outcomes.map(isOut)).toEqual([false, true, true, true, false, false])
  expect(outcomes.map(isDisconnected)).toEqual([false, true, true, false, false, false])
  expect(outcomes.map(isLockedElsewhere)).toEqual([false, false, false, false, false, true])
})
