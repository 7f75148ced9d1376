import { describe, expect, it } from 'vitest'
import { readSilence } from '../../../../src/operator/schema/silence.ts'
import { silenceKind } from '../../../../src/operator/silences/silence-kind.ts'
import { describeSilence } from '../../../../src/operator/silences/silence-status.ts'
import { MINUTE, NOON } from '../../../support/builders.ts'

const silence = { id: 's1', activeUntil: null, nextStartsAt: null }

it.each([
  ['at its end', { activeUntil: NOON }, NOON],
  ['at its beginning', { nextStartsAt: NOON }, NOON],
  [
    'when the next window begins, before the one that holds ends',
    { activeUntil: NOON + MINUTE, nextStartsAt: NOON },
    NOON,
  ],
  ['at its end, before the next window', { activeUntil: NOON, nextStartsAt: NOON + MINUTE }, NOON],
  ['never again', {}, null],
])('a status changes %s', (_, times, at) => {
  const kind = silenceKind({ service: {} as never, cluster: 'default' })
  expect(kind.changesAt?.({ ...silence, ...times })).toBe(at)
})

it('a status says nothing of times where the service has no silence', () => {
  expect(describeSilence(null)).toEqual({ fields: {}, statements: [] })
})

describe('a time', () => {
  it.each(['0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'])(
    'out of the years 1 to 9999 is a fault: %s',
    (endsAt) => {
      expect(readSilence({ spec: { endsAt, comment: '' } })).toEqual({
        faults: ['spec.endsAt must lie in the years 1 to 9999 in UTC'],
      })
    },
  )
})
