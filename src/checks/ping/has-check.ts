/** Whether public ids name checks, for requests that are no pings: a typo in the signal gets another response where the check exists. */

import { findKeys } from '../../store/checks/states.ts'
import type { Database } from '../../store/postgres/database.ts'
import { createAskInTurn } from '../ask-in-turn.ts'

/** The function throws AppError `unavailable`, or the error of PostgreSQL. `publicId`: lower case. */
export function createHasCheck(database: Database): (publicId: string) => Promise<boolean> {
  return createAskInTurn(async (publicIds: readonly string[]) => {
    const found = await findKeys(database, [...new Set(publicIds)])
    return publicIds.map((publicId) => found.has(publicId))
  })
}
