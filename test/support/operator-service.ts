/** The service as an operator of a test asks it (src/operator/service.ts): the real one, of this context. */

import type { Service } from '../../src/operator/service.ts'
import { serviceOf } from '../../src/roles/operator-service.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Context } from '../../src/store/context.ts'

/** @param databaseUrl for the connection that listens; left out: nothing listens */
export const serviceWith = (context: Context, databaseUrl = ''): Service =>
  serviceOf({ context, databaseUrl, clock: systemClock })
