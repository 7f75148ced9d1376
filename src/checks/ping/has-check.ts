/**
 * Whether public ids name checks, for requests that are no pings: a typo in the signal gets another response where the check exists. One
 * statement is in flight at a time and the next one takes all ids that wait, so that a flood of such requests needs one connection.
 */

import { unavailable } from '../../domain/errors.ts'
import { findKeys } from '../../store/checks/states.ts'
import type { Database } from '../../store/postgres/database.ts'

const MAX_WAITING = 10_000
const MAX_AT_ONCE = 500

/** The function throws AppError `unavailable`, or the error of PostgreSQL. `publicId`: lower case. */
export function createHasCheck(database: Database): (publicId: string) => Promise<boolean> {
  let waiting: { publicId: string; resolve: (isKnown: boolean) => void; reject: (error: unknown) => void }[] = []
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_AT_ONCE)
      waiting = waiting.slice(MAX_AT_ONCE)
      try {
        const found = await findKeys(database, [...new Set(batch.map(({ publicId }) => publicId))])
        for (const { publicId, resolve } of batch) resolve(found.has(publicId))
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isRunning = false
  }

  return (publicId) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= MAX_WAITING) return reject(unavailable())
      waiting.push({ publicId, resolve, reject })
      if (!isRunning) void run()
    })
}
