import { expect, it, vi } from 'vitest'
import * as cron from '../../../src/domain/cron.ts'
import { expectAfterCompletion } from '../../../src/domain/schedule.ts'
import { aCronSpec, DAY, SECOND } from '../../support/builders.ts'

// The real one, counted.
vi.mock('../../../src/domain/cron.ts', async (load) => {
  const real = await load<typeof cron>()
  return { ...real, nextSlot: vi.fn(real.nextSlot) }
})

it('a schedule with thousands of slots in a row is decided without walking them', () => {
  // Every minute of January, then eleven months of nothing: ten tolerances before the last slot lie 44,000 others.
  const spec = aCronSpec('* * * 1 *', { graceMs: 365 * DAY })
  const last = Date.UTC(2027, 0, 31, 23, 59)
  expect(expectAfterCompletion(spec, last - 30 * SECOND).expectedAt).toBe(last)
  const asked = vi.mocked(cron.nextSlot).mock.calls.length
  expect(asked).toBeGreaterThan(0)
  expect(asked).toBeLessThan(50)
})
