import { expect, it } from 'vitest'
import { parseCron } from '../../../src/domain/cron.ts'
import { countDue, expectAfterCompletion, NEVER } from '../../../src/domain/schedule.ts'
import { aCronSpec, aSpec, DAY, HOUR, MINUTE, SECOND } from '../../support/builders.ts'

it('a schedule with thousands of slots in a row is decided without walking through them', () => {
  // Every minute of January, then eleven months of nothing: 44,000 slots lie within ten tolerances before the last one.
  const cron = parseCron('* * * 1 *', 'UTC', 'kubernetes')
  let steps = 0
  const zone = {
    ...cron.zone,
    offsetAt: (at: number) => {
      steps += 1
      return cron.zone.offsetAt(at)
    },
  }
  const spec = aSpec({ schedule: { kind: 'cron', cron: { ...cron, zone } }, graceMs: 365 * DAY })
  const last = Date.UTC(2027, 0, 31, 23, 59)
  expect(expectAfterCompletion(spec, last - 30 * SECOND).expectedAt).toBe(last)
  expect(steps).toBeGreaterThan(0)
  expect(steps).toBeLessThan(1_000)
})

const START = Date.UTC(2026, 10, 21, 3)
const daily = aSpec({ schedule: { kind: 'period', periodMs: DAY }, graceMs: HOUR })

it.each<[string, number, number]>([
  ['a period and its grace time, less a millisecond', DAY + HOUR - 1, 0],
  ['a period and its grace time', DAY + HOUR, 1],
  ['two periods: the second one may still come', 2 * DAY, 1],
  ['five periods and a grace time', 5 * DAY + HOUR, 5],
  ['three years', 1_095 * DAY, 100],
  ['less than nothing', -DAY, 0],
])('after %s so many runs should have come', (_, ms, count) => {
  expect(countDue(daily, START, START + ms, 100)).toBe(count)
})

it.each<[string, number, number]>([
  ['its slot and the grace time, less a millisecond', DAY + HOUR - 1, 0],
  ['its slot and the grace time', DAY + HOUR, 1],
  ['ten days', 10 * DAY, 9],
  ['a year', 365 * DAY, 100],
])('the slots of a cron expression are counted after %s', (_, ms, count) => {
  const spec = aCronSpec('0 3 * * *', { graceMs: HOUR })
  expect(countDue(spec, START + MINUTE, START + ms, 100)).toBe(count)
})

it('no run is due without a further slot', () => {
  const spec = aSpec({ schedule: NEVER, graceMs: HOUR })
  expect(countDue(spec, START, START + 100 * DAY, 100)).toBe(0)
})
