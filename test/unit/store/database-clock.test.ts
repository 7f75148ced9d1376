import { expect, it } from 'vitest'
import { toIso } from '../../../src/domain/instant.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { createDatabaseClock } from '../../../src/store/postgres/database-clock.ts'
import { timestamp } from '../../../src/store/postgres/instants.ts'

const SECOND = Date.parse('2026-11-28T01:10:37Z')

it.each([
  [847.9992, 0, '847999'],
  [847.9996, 0, '848000'],
  [847.25, 0.7496, '848000'],
])(
  'a time at %f ms, behind the database by %f, is shown in the millisecond in which it is stored',
  async (ms, behindMs, us) => {
    const local = { now: () => SECOND + ms }
    const database = { query: async () => ({ rows: [{ at: SECOND + ms + behindMs }], rowCount: 1 }) }
    const clock = createDatabaseClock(database as unknown as Queryable, local)
    await clock.measure()
    const now = clock.now()
    expect(timestamp(now)).toBe(`2026-11-28T01:10:37.${us}Z`)
    expect(toIso(now)).toBe(`2026-11-28T01:10:37.${us.slice(0, 3)}Z`)
  },
)
