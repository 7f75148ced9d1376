import { expect, it } from 'vitest'
import { parseCron } from '../../../src/domain/cron.ts'
import { expectAfterCompletion } from '../../../src/domain/schedule.ts'
import { aSpec, DAY, SECOND } from '../../support/builders.ts'

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
