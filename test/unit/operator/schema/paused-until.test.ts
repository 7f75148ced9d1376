import { expect, it } from 'vitest'
import { readPausedUntil } from '../../../../src/operator/schema/paused-until.ts'
import { aHeartbeatCheck } from '../../../support/builders.ts'

const read = (value?: string) => {
  const annotations = value === undefined ? {} : { 'heartbeat-operator.io/paused-until': value }
  return readPausedUntil(aHeartbeatCheck({ metadata: { annotations } }))
}

it('a resource without the annotation, or without any, is not paused by it', () => {
  const nothing = { pausedUntil: null, warning: null }
  expect(read()).toEqual(nothing)
  expect(readPausedUntil(aHeartbeatCheck())).toEqual(nothing)
})

it.each([
  ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31T13:00:00.5+01:00', '2030-01-31T12:00:00.500Z'],
])('%s is a time', (value, iso) => {
  expect(read(value)).toEqual({ pausedUntil: Date.parse(iso), warning: null })
})

it.each(['', 'tomorrow', '2030-01-31', '2030-01-31T12:00:00', '1896091200', '2030-13-31T12:00:00Z', 'a"b\n'])(
  '%j is none: the pause of the check is kept, and the Warning quotes it',
  (value) => {
    const { pausedUntil, warning } = read(value)
    expect(pausedUntil).toBe('kept')
    expect(warning).toMatchObject({
      reason: 'InvalidPausedUntil',
      note: expect.stringContaining(JSON.stringify(value)),
    })
    expect(warning!.id).toBe(`InvalidPausedUntil ${warning!.note}`)
    expect(read(`${value} `).warning!.id).not.toBe(warning!.id)
  },
)
