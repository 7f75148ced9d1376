/** Whether public ids name checks, for requests that are no pings: a typo in the signal gets another response where the check exists. */

import { createFindInTurn } from '../../store/ask-in-turn.ts'
import { findKeys } from '../../store/checks/states.ts'
import type { Database } from '../../store/postgres/database.ts'

/** The function throws AppError `unavailable`, or the error of PostgreSQL. `publicId`: lower case. */
export function createHasCheck(database: Database): (publicId: string) => Promise<boolean> {
  const findKey = createFindInTurn((publicIds) => findKeys(database, publicIds))
  return async (publicId) => (await findKey(publicId)) !== null
}
