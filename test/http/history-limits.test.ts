/** M1: the limits of history, from the variables to the tables. */

import { it } from 'vitest'
import { startTestApp } from '../support/app.ts'
import { addCheck } from '../support/check.ts'
import { addTenant } from '../support/tenant.ts'
import { eventually } from '../support/until.ts'

it('HISTORY_MAX_FLIPS and HISTORY_MAX_PINGS are kept of each check, and metrics show it', async () => {
  await using app = await startTestApp({
    environment: { HISTORY_MAX_FLIPS: '5', HISTORY_MAX_PINGS: '7' },
    async prepare(database) {
      const { key } = await addCheck({ database }, await addTenant({ database }))
      await database.query(
        `with made as (select gen_random_uuid() as id, n from generate_series(1, 12) n),
          flips as (insert into flips (id, check_key, at, detected_at, from_status, to_status, reason) select id, $1, now(), now(), 1, 2, 'failed' from made)
          insert into pings (id, check_key, type, source, created_at) select id, $1, 3, 0, now() + n * interval '1 s' from made`,
        [key],
      )
    },
  })
  const limited = { flips: 5, pings: 7, events: 0, deliveries: 0 }
  await eventually('the limits are kept', async () => {
    const lines = (await (await fetch(`${app.opsUrl}/metrics`)).text()).split('\n')
    return Object.entries(limited).every(([kind, rows]) =>
      lines.includes(`heartbeat_history_rows{kind="${kind}"} ${rows}`),
    )
  })
})
